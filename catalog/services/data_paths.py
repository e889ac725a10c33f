"""Checks the properties of a table that say where engines write its files: they must be inside its own location."""

from collections.abc import Mapping

from catalog.services.locations import lies_in
from lakewarden.errors import InvalidArgument
from tenants.models import Warehouse

_PATHS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")


def check(warehouse: Warehouse, location: str, properties: Mapping[str, str], *, before: Mapping[str, str]) -> None:
    """Raises InvalidArgument for a new path outside of `location`; a registered table keeps the paths that it has."""
    for name in _PATHS:
        path = properties.get(name)
        if path and path != before.get(name) and not lies_in(warehouse, path, location):
            raise InvalidArgument(f"Invalid {name} {path!r}: it is not inside the location {location}")
