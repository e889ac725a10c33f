"""What a purge may remove: only the locations of its own object, which is checked right before each batch."""

from uuid import UUID

from catalog.models import occupied_locations
from lakewarden.storage.interface import StorageError


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
