"""Where tables and views may lie: inside their warehouse, apart from each other, in an empty place."""

import zlib
from uuid import UUID

from catalog.models import Namespace, Tabular
from catalog.models.tabular import around
from lakewarden import backends
from lakewarden.errors import AlreadyExists, InvalidArgument, Unavailable
from lakewarden.prepared import fetch
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


def check_apart(warehouse: Warehouse, location: str, *, but: UUID | None = None) -> None:
    """Raises AlreadyExists when another table or view lies at, in or around `location` now; nothing is held."""
    if Tabular.objects.has_overlap(warehouse.id, location, but=but):
        raise AlreadyExists(
            f"The location {location} overlaps another table's or view's: each needs a place of its own"
        )


def ensure_apart(warehouse: Warehouse, location: str, *, exclusive: bool, but: UUID | None = None) -> None:
    """Raises AlreadyExists when another table or view lies at, in or around `location`, Unavailable while one goes.

    Part of the transaction that takes the location. Places chosen by callers exclude every other creation in the
    warehouse meanwhile (`exclusive`); generated ones cannot meet each other and share the lock.
    """
    key = zlib.crc32(warehouse.id.bytes)
    fetch(_EXCLUSIVE if exclusive else _SHARED, [_LOCK, key - (1 << 31)])
    check_apart(warehouse, location, but=but)
    if _is_being_purged(location):
        raise Unavailable(f"At {location} the files of a dropped table are still being removed", retry_after_s=1)


def folder_that_stays(warehouse: Warehouse, namespace: Namespace, location: str) -> str:
    """Up to where a purge of `location` removes folders that are empty then: its namespace's, else the warehouse's."""
    own = SCHEME + local_path(namespace.properties["location"]).rstrip("/")
    return own if location.startswith(own + "/") else warehouse.location


def _is_being_purged(location: str) -> bool:
    """A removal that is still to be done would take the files of whoever lies there by then.

    Its task says so, not its job: a task that is over never runs again, even if its worker dies before the job is gone.
    """
    return bool(fetch(_PURGED, [around(location), location + "/", location + "0"]))  # '0' follows '/'


_LOCK = 0x10C8
_EXCLUSIVE = "select pg_advisory_xact_lock(%s::int, %s::int)"
_SHARED = "select pg_advisory_xact_lock_shared(%s::int, %s::int)"
# the form that the index task_purge_place has
_PURGED = f"""
    select 1 from task
    where queue_name = '{purge.QUEUE}' and (outcome is null or outcome = 'FAILED')
        and (lock = any(%s) or (lock ~>=~ %s and lock ~<~ %s))
    limit 1
"""  # noqa: S608 text of our own


def storage_of(warehouse: Warehouse) -> Storage:
    return backends.storage(warehouse.profile)
