"""What tables hold, as the summaries of their current snapshots say (table spec, `Snapshots`). No file is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec

from catalog import access
from catalog.documents import metadata_of
from catalog.models import Tabular
from lakewarden.authz.actions import TableAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.authz.model import is_allowed
from lakewarden.memory import hold
from lakewarden.paging import Page
from tenants import access as tenants_access
from tenants.models import Warehouse

MOST_TABLES: Final = 100
MOST_BYTES: Final = 32 * 1024 * 1024
"""Of metadata that is read for a page: after that it ends early."""
_LONGEST: Final = 18
"""Digits that always fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Figures are None if the writer of the snapshot did not give them; `properties` are the table's.

    `records` are those in the data files, of which `position_deletes` are deleted.
    """

    path: list[str]
    name: str
    uuid: UUID
    properties: Mapping[str, str]
    records: int | None
    position_deletes: int | None
    data_files: int | None
    delete_files: int | None
    bytes: int | None
    snapshot_id: int | None
    snapshot_ms: int | None
    summary: Mapping[str, Any]


class _Snapshot(msgspec.Struct, rename="kebab"):
    snapshot_id: int
    timestamp_ms: int | None = None
    summary: dict[str, Any] | None = None


class _Metadata(msgspec.Struct, rename="kebab"):
    current_snapshot_id: int | None = None
    snapshots: list[_Snapshot] | None = None
    properties: dict[str, str] | None = None


_METADATA: Final = msgspec.json.Decoder(_Metadata)
_FIGURES: Final = ("records", "position-deletes", "data-files", "delete-files", "files-size")
_EMPTY: Final = {f"total-{name}": "0" for name in _FIGURES}


def listed(granted: Granted[Warehouse], page: Page) -> tuple[list[Contents], str | None]:
    """The tables of the warehouse whose metadata the caller may read, in the order of their uuids.

    Also the key behind which the next page starts. A page may hold fewer tables than asked for, even none, and not be
    the last one.
    """
    limit = min(page.size or MOST_TABLES, MOST_TABLES)
    rows = Tabular.objects.placed().filter(warehouse=granted.target, kind=Tabular.Kind.TABLE)
    if (after := _uuid(page.after)) is not None:
        rows = rows.filter(uuid__gt=after)
    sees_all = granted.allows(WarehouseAction.LIST_EVERYTHING)
    found: list[Contents] = []
    read, last = 0, ""
    for number, tabular in enumerate(rows.order_by("uuid")[: limit + 1]):
        if number == limit or read > MOST_BYTES:
            return found, last
        last = str(tabular.uuid)
        if sees_all or _may_read(granted, tabular):
            contents, length = _read(tabular)
            found += contents
            read += length
    return found, None


def _may_read(granted: Granted[Warehouse], tabular: Tabular) -> bool:
    chain = access.tabular_chain(tabular)
    held = tenants_access.privileges(granted.context, chain=chain, project=tabular.namespace.warehouse.project)
    return is_allowed(TableAction.GET_METADATA, held)


def _read(tabular: Tabular) -> tuple[list[Contents], int]:
    """Nothing if it was dropped meanwhile."""
    stored = Tabular.objects.with_document(tabular.id, ask=lambda length: hold("contents", 2 * length))
    if stored is None:
        return [], 0
    row, document = stored
    metadata = _METADATA.decode(metadata_of(document, row.metadata_location))
    return [_contents(tabular, metadata)], document.length


def _contents(tabular: Tabular, metadata: _Metadata) -> Contents:
    wanted = metadata.current_snapshot_id
    current = next((each for each in metadata.snapshots or () if each.snapshot_id == wanted), None)
    summary = _EMPTY if current is None else current.summary or {}
    return Contents(
        path=tabular.namespace.path,
        name=tabular.name,
        uuid=tabular.uuid,
        properties=metadata.properties or {},
        records=_number(summary, "total-records"),
        position_deletes=_number(summary, "total-position-deletes"),
        data_files=_number(summary, "total-data-files"),
        delete_files=_number(summary, "total-delete-files"),
        bytes=_number(summary, "total-files-size"),
        snapshot_id=None if current is None else current.snapshot_id,
        snapshot_ms=None if current is None else current.timestamp_ms,
        summary=summary,
    )


def _number(summary: Mapping[str, Any], name: str) -> int | None:
    text = str(summary.get(name, ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST else None


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
