"""Metadata files that no state of their table names, as a killed server leaves them; for `lakewarden orphan-files`."""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from uuid import UUID

from catalog.documents import metadata_of
from catalog.iceberg.tables import TableMetadata
from catalog.models import Tabular
from catalog.services import locations, lost_creations, pointer
from catalog.services.lost_creations import LostCreation
from lakewarden import config
from lakewarden.db_transaction import changing
from lakewarden.errors import BadRequest, NotFound
from lakewarden.storage.interface import OutOfReach, Storage, StorageError
from tenants.models import Warehouse
from tenants.services.warehouse_secrets import storage_of

logger = logging.getLogger(__name__)

_UUIDV7 = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_NAME = re.compile(rf"([0-9]{{5,}})-({_UUIDV7})(?:\.gz)?\.metadata\.json")
_PAGE = 500
_REMOVED_AT_ONCE = 20
"""A small number, because commits to the table wait while its row is locked."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """`size` is in bytes; `named_at`: when the catalog chose its name, just before it was written."""

    table: Tabular
    location: str
    size: int
    named_at: datetime
    is_removed: bool = False

    def __str__(self) -> str:
        hours = (datetime.now(UTC) - self.named_at) // timedelta(hours=1)
        return f"{self.location}  table {self.table}  {self.size} bytes  {hours} hours old"

    def plain(self) -> dict[str, object]:
        """As a JSON object."""
        return {
            "warehouse-id": str(self.table.warehouse_id),
            "table-id": str(self.table.uuid),
            "table": str(self.table),
            "location": self.location,
            "size": self.size,
            "named-at": self.named_at.isoformat(),
            "removed": self.is_removed,
        }


@dataclass(frozen=True, slots=True)
class Skipped:
    """A table or a whole warehouse that could not be searched, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class _State:
    """A table, and the files in its pointer and its metadata log: their `names`, and the `versions` in these names."""

    table: Tabular
    names: frozenset[str]
    versions: frozenset[int]

    def orphaned_since(self, name: str) -> datetime | None:
        """When the file was named, if it is certainly an orphan; otherwise None.

        Its version must be one that another file has, or one that the table has not reached. Any other file may have
        been a state that is no longer in the log, or that a registration has replaced; so may any file that is older
        than the row, because each row starts with version 1.
        """
        parsed = _parse(name)
        if parsed is None or name in self.names:
            return None
        version, named_at = parsed
        is_lost = version in self.versions or version >= self.table.version
        return named_at if is_lost and named_at >= self.table.created_at else None


def find(
    *, older_than: timedelta, warehouse_id: UUID | None = None, remove: bool = False
) -> Iterator[Orphan | LostCreation | Skipped]:
    """A stream of all orphans in one warehouse or in all of them, and of what could not be searched.

    With `remove` the files are removed. Tables that are dropped, created or moved meanwhile may be missed. Raises
    NotFound for an unknown warehouse.
    """
    if warehouse_id is not None and not Warehouse.objects.filter(id=warehouse_id).exists():
        raise NotFound(f"Warehouse does not exist: {warehouse_id}")
    before = datetime.now(UTC) - older_than
    for warehouse in _warehouses(warehouse_id):
        try:
            store = storage_of(warehouse)
            for table in _tables(warehouse):
                yield from _in_table(store, table, before=before, remove=remove)
            yield from lost_creations.find(store, warehouse, before=before, parse=_parse, remove=remove)
        except (StorageError, BadRequest) as error:
            yield Skipped(f"warehouse {warehouse.name!r} ({warehouse.id})", str(error))


def _in_table(store: Storage, table: Tabular, *, before: datetime, remove: bool) -> Iterator[Orphan | Skipped]:
    state = _read(table)
    if state is None:
        return
    warehouse, current = table.namespace.warehouse, state.table.metadata_location
    if not locations.lies_in(warehouse, current, state.table.location):
        return  # it was registered from another location: files beside its metadata file may belong to other tables
    folder = warehouse.profile.normal(current).rpartition("/")[0]
    try:
        found = _listed(store, state, folder, before=before)
        while batch := list(islice(found, _REMOVED_AT_ONCE)):
            yield from _removed(store, table, batch) if remove else batch
    except OutOfReach as error:
        yield Skipped(f"table {table} ({table.uuid})", str(error))


def _listed(store: Storage, state: _State, folder: str, *, before: datetime) -> Iterator[Orphan]:
    """The orphans directly in `folder`."""
    for found in store.survey(folder, within=folder.rpartition("/")[0]):
        _, *below = found.path.split("/")
        if found.is_folder or len(below) != 1:
            continue
        location, named_at = f"{folder}/{below[0]}", state.orphaned_since(below[0])
        if named_at is not None and named_at < before and _is_file(store, location):
            yield Orphan(state.table, location, found.size, named_at)


def _removed(store: Storage, table: Tabular, orphans: Sequence[Orphan]) -> list[Orphan]:
    """Remove those that are still orphans, with the row locked: no commit can make one of them the state meanwhile."""
    with changing():
        pointer.lock_row(table)
        state = _read(table)
        still = [] if state is None else [each for each in orphans if state.orphaned_since(_name(each.location))]
        for each in still:
            store.delete(each.location)
            logger.info("Removed the metadata file %s, which no state of %s names", each.location, table)
    return [replace(each, is_removed=True) for each in still]


def _read(table: Tabular) -> _State | None:
    """None if it is dropped: then its files are removed with it, or it is restored."""
    found = Tabular.objects.with_document(table.id, ask=lambda _: None)
    if found is None:
        return None
    now, document = found
    now.namespace = table.namespace
    logged = TableMetadata.decode(metadata_of(document, now.metadata_location)).metadata_files
    names = frozenset(_name(each) for each in (*logged, now.metadata_location))
    return _State(now, names, frozenset(parsed[0] for parsed in map(_parse, names) if parsed))


def _is_file(store: Storage, location: str) -> bool:
    """Whether it can be read like a metadata file; a link, which the catalog never creates, cannot."""
    try:
        store.read(location, limit=config.current().catalog.max_metadata_bytes)
    except StorageError:
        return False
    return True


def _name(location: str) -> str:
    return location.rpartition("/")[2]


def _parse(name: str) -> tuple[int, datetime] | None:
    """Version and time in the name of a metadata file; None for names that this catalog does not generate (UUIDv7)."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        return int(match[1]), datetime.fromtimestamp((UUID(match[2]).int >> 80) / 1000, UTC)
    except (OverflowError, ValueError):
        return None  # later than the year 9999


def _warehouses(only: UUID | None) -> Iterator[Warehouse]:
    chosen = Warehouse.objects.order_by("id") if only is None else Warehouse.objects.filter(id=only)
    page = list(chosen[:_PAGE])
    while page:
        yield from page
        page = list(chosen.filter(id__gt=page[-1].id)[:_PAGE])


def _tables(warehouse: Warehouse) -> Iterator[Tabular]:
    """Sorted by location, for which there is an index."""
    rows = Tabular.objects.filter(warehouse=warehouse, kind=Tabular.Kind.TABLE).order_by("location")
    rows = rows.select_related("namespace")
    page = list(rows[:_PAGE])
    while page:
        for table in page:
            table.namespace.warehouse = warehouse
            yield table
        page = list(rows.filter(location__gt=page[-1].location)[:_PAGE])
