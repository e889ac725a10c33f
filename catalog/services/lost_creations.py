"""Finds the file of a table or view that was never created, because its server was killed; for `orphan_files`.

Such a file lies alone in a folder that the catalog named at the same moment, below the location of a namespace.
Whatever differs from that in anything is somebody else's, and is left alone.
"""

import logging
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final
from uuid import UUID

import msgspec

from catalog.models import Namespace, Tabular, occupied_locations
from catalog.models.occupied_locations import Kind
from catalog.services.location_claims import hold_locations
from lakewarden import config
from lakewarden.db_transaction import changing
from lakewarden.storage.interface import Storage, StorageError
from lakewarden.storage.places import is_in
from lakewarden.storage.removal import Found
from tenants.models import Warehouse

logger = logging.getLogger(__name__)

_PAGE: Final = 500
_FEW: Final = 8
"""Things in such a folder, at most: the file, and folders."""
_AT_ONCE: Final = timedelta(minutes=1)
"""Between the names of folder and file."""
_UNDER_WAY: Final = timedelta(hours=1)
"""No creation takes as long, whatever age is asked for."""
_GZIP: Final = 31
_HEX: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Parse = Callable[[str], tuple[int, datetime] | None]


@dataclass(frozen=True, slots=True)
class LostCreation:
    """`size` is in bytes; `named_at`: when the catalog chose the file's name, just before it was written."""

    namespace: Namespace
    folder: str
    location: str
    size: int
    named_at: datetime
    found: tuple[Found, ...]
    is_removed: bool = False

    def __str__(self) -> str:
        hours = (datetime.now(UTC) - self.named_at) // timedelta(hours=1)
        what = f"never created in namespace {self.namespace}"
        return f"{self.location}  {what}  {self.size} bytes  {hours} hours old"

    def plain(self) -> dict[str, object]:
        """As a JSON object."""
        return {
            "warehouse-id": str(self.namespace.warehouse_id),
            "namespace-id": str(self.namespace.id),
            "namespace": str(self.namespace),
            "location": self.location,
            "size": self.size,
            "named-at": self.named_at.isoformat(),
            "removed": self.is_removed,
        }


def find(
    store: Storage, warehouse: Warehouse, *, before: datetime, parse: Parse, remove: bool
) -> Iterator[LostCreation]:
    """Those in the warehouse whose files were named before `before`; `parse` reads version and time of a file's name.

    With `remove` they are removed. Raises StorageError.
    """
    before = min(before, datetime.now(UTC) - _UNDER_WAY)
    for namespace, place in _places(warehouse):
        named = (f"{place}/{name}" for name in store.folders(place) if _named_at(name) is not None)
        while folders := set(islice(named, _PAGE)):
            known = Tabular.everything.filter(warehouse=warehouse, location__in=folders)
            for folder in sorted(folders - set(known.values_list("location", flat=True))):
                lost = _lost(store, namespace, folder, place=place, parse=parse)
                if lost is not None and lost.named_at < before and not _is_occupied(warehouse, folder):
                    yield _removed(store, warehouse, lost, place) if remove else lost


def _lost(store: Storage, namespace: Namespace, folder: str, *, place: str, parse: Parse) -> LostCreation | None:
    try:
        found = tuple(islice(store.survey(folder, within=place), _FEW))
    except StorageError:
        return None  # it is reached through a link, or its store fails: whoever asks for the next one finds that again
    files = [each for each in found if not each.is_folder]
    if len(files) != 1 or len(found) == _FEW:
        return None
    name, _, file = files[0].path.partition("/")
    inner, _, file = file.partition("/")
    version, named_at = parse(file) or (None, None)
    folder_at = _named_at(name)
    if (inner, version) != ("metadata", 0) or named_at is None or folder_at is None:
        return None
    location = f"{folder}/metadata/{file}"
    if abs(named_at - folder_at) > _AT_ONCE or not _is_first(store, location, folder, namespace.warehouse):
        return None
    return LostCreation(namespace, folder, location, files[0].size, named_at, found)


def _is_first(store: Storage, location: str, folder: str, warehouse: Warehouse) -> bool:
    """Whether its content is the metadata of what was to be created there, or the beginning of that."""
    try:
        content = store.read(location, limit=config.current().catalog.max_metadata_bytes)
        if location.endswith(".gz.metadata.json"):
            content = zlib.decompressobj(_GZIP).decompress(content, config.current().catalog.max_metadata_bytes)
        told = msgspec.json.decode(content)
    except (StorageError, zlib.error):
        return False
    except msgspec.DecodeError as error:
        return "truncated" in str(error)
    if not isinstance(told, dict):
        return False
    uuid, place = told.get("table-uuid", told.get("view-uuid")), str(told.get("location"))
    try:
        is_its_place = warehouse.profile.normal(place) == folder
    except StorageError:
        return False
    return is_its_place and uuid in _HEX.findall(folder.rpartition("/")[2]) and not told.get("metadata-log")


def _removed(store: Storage, warehouse: Warehouse, lost: LostCreation, place: str) -> LostCreation:
    """Nobody can register the file meanwhile: registrations take the same lock."""
    with changing():
        hold_locations(warehouse)
        if _is_occupied(warehouse, lost.folder):
            return lost
        removed = store.remove(lost.found, within=place, at_once=1)
        if removed.error is not None:
            raise removed.error
    logger.info("Removed %s, the file of a table or view that was never created", lost.location)
    return replace(lost, is_removed=any(not each.is_folder for each in removed.gone))


def _is_occupied(warehouse: Warehouse, folder: str) -> bool:
    """Whether it belongs to anything that is, was, or may come: only namespaces may lie around it."""
    found = occupied_locations.overlapping(warehouse.id, folder, base=warehouse.location, but=None)
    return any(each.kind is not Kind.NAMESPACE or not is_in(folder, each.location) for each in found)


def _named_at(name: str) -> datetime | None:
    """When the catalog has named a folder: the time in the only UUID (version 7) in its name."""
    found = _HEX.findall(name)
    if len(found) != 1 or UUID(found[0]).version != 7:  # noqa: PLR2004 the one with a time in it
        return None
    try:
        return datetime.fromtimestamp((UUID(found[0]).int >> 80) / 1000, UTC)
    except (OverflowError, ValueError):
        return None  # later than the year 9999


def _places(warehouse: Warehouse) -> Iterator[tuple[Namespace, str]]:
    """Namespaces with a folder of their own, also dropped ones; the warehouse's own may hold what others put there."""
    rows = Namespace.everything.filter(warehouse=warehouse).order_by("id")
    page = list(rows[:_PAGE])
    while page:
        for namespace in page:
            namespace.warehouse = warehouse
            place = warehouse.profile.normal(str(namespace.properties.get("location", "")))
            if is_in(place, warehouse.location) and place != warehouse.location:
                yield namespace, place
        page = list(rows.filter(id__gt=page[-1].id)[:_PAGE])
