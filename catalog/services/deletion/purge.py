"""What a purge may remove: only the locations of its own object, which is checked right before each batch."""

from typing import Any
from uuid import UUID

from catalog.models import occupied_locations
from lakewarden import backends
from lakewarden.storage.interface import Storage, StorageError
from lakewarden.storage.profiles import parse_profile
from tenants.models import Warehouse
from tenants.services import warehouse_secrets


def storage(warehouse_id: UUID | None, profile: dict[str, Any]) -> Storage:
    """The storage as the warehouse reaches it today: a purge may have waited for longer than a credential is valid.

    A warehouse stays at its place until its purges have ended. Jobs that an older release queued may have none, and
    are of directories.
    """
    warehouse = None if warehouse_id is None else Warehouse.objects.find(warehouse_id)
    if warehouse is None:
        return backends.storage(parse_profile(profile))
    return warehouse_secrets.storage_of(warehouse)


def ensure_own(location: str, owner: str | None) -> None:
    """Raises StorageError when another object's, a namespace's or a warehouse's location overlaps the location."""
    if foreign := occupied_locations.foreign_to_purge(location, _id(owner)):
        raise StorageError(f"{location} is, contains or is inside {foreign}: nothing in it is removed")


def settled(location: str, owner: str | None) -> None:
    """Release the location: other objects may use it from now on."""
    if identifier := _id(owner):
        occupied_locations.forget_purged(identifier, location)


def _id(owner: str | None) -> UUID | None:
    try:
        return UUID(owner or "")
    except ValueError:
        return None
