"""How locations are written, and which files they contain; `location_claims` decides whom they belong to."""

from datetime import datetime
from uuid import UUID

from catalog.models import Namespace
from lakewarden.errors import InvalidArgument, Unavailable
from lakewarden.storage.interface import OutOfReach, StorageError
from lakewarden.storage.places import is_in
from tenants.models import Warehouse
from tenants.services.warehouse_secrets import storage_of

_FOLDERS = ("data", "metadata")
MAX_LOCATION_BYTES = 1024  # of a key in an object store; the database must be able to index it


def default_location(namespace: Namespace, name: str, uuid: UUID) -> str:
    """For a table, view or generic table: below the namespace's own location, as the warehouse's layout says."""
    layout = namespace.warehouse.profile.layout
    return layout.tabular_location(namespace.properties["location"], name=name, uuid=uuid)


def namespace_location(warehouse: Warehouse, above: Namespace | None, name: str, uuid: UUID) -> str:
    """For a new namespace in `above`; raises InvalidArgument when the layout makes no valid location of its name."""
    base, layout = warehouse.location, warehouse.profile.layout
    parent = above.properties["location"] if above else None
    found = layout.namespace_location(parent, base=base, name=name, uuid=uuid)
    return found if found == base else inside(warehouse, found)


def inside(warehouse: Warehouse, location: str) -> str:
    """`location` in its normal form; raises InvalidArgument when it is not inside the warehouse, or not valid."""
    profile = warehouse.profile
    try:
        normal = profile.normal(location)
    except StorageError as error:
        raise InvalidArgument(f"Invalid location: {error}; the warehouse is at {warehouse.location}") from error
    if "//" in normal.partition("://")[2] or "/./" in normal + "/":
        raise InvalidArgument(f"Invalid location {location!r}: it contains '//' or '/./'")
    _check_length(normal, longest_name=profile.LONGEST_NAME)
    if not is_in(normal, warehouse.location):
        raise InvalidArgument(f"Invalid location {location!r}: it is not inside the warehouse at {warehouse.location}")
    return normal


def lies_in(warehouse: Warehouse, location: str, place: str) -> bool:
    """Whether `location`, in any spelling, is below `place` (in its normal form)."""
    try:
        return is_in(warehouse.profile.normal(location), place)
    except StorageError:
        return False


def _check_length(location: str, *, longest_name: int) -> None:
    if len(location.encode()) > MAX_LOCATION_BYTES:
        raise InvalidArgument(f"Invalid location {location[:80]!r}…: it is longer than {MAX_LOCATION_BYTES} bytes")
    longest = max(location.split("/"), key=lambda part: len(part.encode()))
    if len(longest.encode()) > longest_name:
        raise InvalidArgument(f"Invalid location: {longest[:80]!r}… in it is longer than {longest_name} bytes")


def is_empty(warehouse: Warehouse, location: str, *, since: datetime | None = None) -> bool:
    """Whether it contains no file (`since`: none that is older).

    Raises InvalidArgument for a location that cannot be reached, Unavailable when the storage does not answer.
    """
    try:
        return storage_of(warehouse).is_empty(location, since=since)
    except OutOfReach as error:
        raise InvalidArgument(f"Invalid location: {error}") from error
    except StorageError as error:
        raise Unavailable(f"The storage failed, nothing was changed: {error}", retry_after_s=5) from error


def is_known_missing(warehouse: Warehouse, file: str) -> bool:
    """Whether the storage knows, without a request to a server, that there is no such file."""
    return warehouse.profile.SEES_MISSING_FILES and storage_of(warehouse).is_known_missing(file)


def may_hold_files(warehouse: Warehouse) -> bool:
    """Whether the warehouse contains any file, or its storage does not answer."""
    try:
        return not storage_of(warehouse).is_empty(warehouse.location)
    except StorageError:
        return True


def ensure_empty(warehouse: Warehouse, location: str) -> None:
    """Raises InvalidArgument when it contains files, and as `is_empty`."""
    if not is_empty(warehouse, location):
        raise InvalidArgument(f"The location {location} is not empty: a new table needs a location of its own")


def folder_that_stays(warehouse: Warehouse, namespace: Namespace, location: str) -> str:
    """The folder below which a purge of `location` removes empty folders: the namespace's, or else the warehouse's."""
    own = warehouse.profile.normal(namespace.properties["location"])
    return own if is_in(location, own) else warehouse.location


def make_folders(warehouse: Warehouse, location: str) -> None:
    """Make the folders of a table to which engines write before its creation is committed.

    Raises Unavailable when the storage fails.
    """
    try:
        store = storage_of(warehouse)
        for folder in _FOLDERS:
            store.make_folder(f"{location}/{folder}")
    except StorageError as error:
        raise Unavailable(f"The storage failed, nothing was created: {error}", retry_after_s=5) from error


def remove_folders(warehouse: Warehouse, location: str) -> None:
    """Remove what `make_folders` made, as far as nothing is in it."""
    for folder in _FOLDERS:
        storage_of(warehouse).remove_empty(f"{location}/{folder}", inside=warehouse.location)
