"""Where tables and views may lie: inside their warehouse, apart from each other, in an empty place."""

import zlib
from uuid import UUID

from django.db import connection
from django.db.models import Q
from procrastinate.contrib.django.models import ProcrastinateJob

from catalog.models import Namespace, Tabular
from catalog.models.tabular import around
from lakewarden import backends
from lakewarden.errors import AlreadyExists, InvalidArgument, Unavailable
from lakewarden.storage.interface import OutOfReach, Storage, StorageError
from lakewarden.storage.profiles import SCHEME, local_path
from lakewarden.tasks import purge
from tenants.models import Warehouse

MAX_LOCATION_BYTES = 1024  # of a key in an object store; the database must be able to index it
MAX_NAME_BYTES = 255  # of a folder


def default_location(namespace: Namespace, tabular_id: UUID) -> str:
    """Below the namespace's own location; never reused."""
    return f"{namespace.properties['location']}/{tabular_id}"


def inside(warehouse: Warehouse, location: str) -> str:
    """`location` in its normal form; raises InvalidArgument when it is not inside the warehouse, or cannot be."""
    try:
        normal = SCHEME + local_path(location).rstrip("/")
    except StorageError as error:
        raise InvalidArgument(f"Invalid location: {error}; the warehouse lies at {warehouse.location}") from error
    if "//" in normal.removeprefix(SCHEME) or "/./" in normal + "/":
        raise InvalidArgument(f"Invalid location {location!r}: it holds '//' or '/./'")
    _check_length(normal)
    if not normal.startswith(warehouse.location + "/"):
        raise InvalidArgument(f"Invalid location {location!r}: it is not inside the warehouse at {warehouse.location}")
    return normal


def lies_in(location: str, place: str) -> bool:
    """Whether `place` is below `location` (in its normal form)."""
    try:
        return (SCHEME + local_path(place)).startswith(location + "/")
    except StorageError:
        return False


def _check_length(location: str) -> None:
    if len(location.encode()) > MAX_LOCATION_BYTES:
        raise InvalidArgument(f"Invalid location {location[:80]!r}…: it is longer than {MAX_LOCATION_BYTES} bytes")
    longest = max(location.split("/"), key=lambda part: len(part.encode()))
    if len(longest.encode()) > MAX_NAME_BYTES:
        raise InvalidArgument(f"Invalid location: {longest[:80]!r}… in it is longer than {MAX_NAME_BYTES} bytes")


def ensure_empty(warehouse: Warehouse, location: str) -> None:
    """Raises InvalidArgument when files lie there already, Unavailable when the storage cannot say."""
    try:
        empty = storage_of(warehouse).is_empty(location)
    except OutOfReach as error:
        raise InvalidArgument(f"Invalid location: {error}") from error
    except StorageError as error:
        raise Unavailable(f"The storage failed, nothing was changed: {error}", retry_after_s=5) from error
    if not empty:
        raise InvalidArgument(f"The location {location} is not empty: a new table needs a place of its own")


def ensure_apart(warehouse: Warehouse, location: str, *, exclusive: bool, but: UUID | None = None) -> None:
    """Raises AlreadyExists when another table or view lies at, in or around `location`, Unavailable while one goes.

    Part of the transaction that takes the location. Places chosen by callers exclude every other creation in the
    warehouse meanwhile (`exclusive`); generated ones cannot meet each other and share the lock.
    """
    key = zlib.crc32(warehouse.id.bytes)
    lock = "pg_advisory_xact_lock" if exclusive else "pg_advisory_xact_lock_shared"
    with connection.cursor() as cursor:
        cursor.execute(f"select {lock}(%s, %s)", [0x10C8, key - (1 << 31)])
    others = Tabular.objects.overlapping(warehouse.id, location)
    if but is not None:
        others = others.exclude(id=but)
    if others.exists():
        raise AlreadyExists(
            f"The location {location} overlaps another table's or view's: each needs a place of its own"
        )
    if _is_being_purged(location):
        raise Unavailable(f"At {location} the files of a dropped table are still being removed", retry_after_s=1)


def _is_being_purged(location: str) -> bool:
    """A removal that is queued would take the files of whoever lies there by then."""
    overlaps = Q(lock__in=around(location)) | Q(lock__startswith=location + "/")
    waiting = ProcrastinateJob.objects.filter(queue_name=purge.QUEUE, status__in=["todo", "doing", "failed"])
    return waiting.filter(overlaps).exists()


def storage_of(warehouse: Warehouse) -> Storage:
    return backends.storage(warehouse.profile)
