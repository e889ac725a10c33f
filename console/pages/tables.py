"""The page of a table, in tabs: schema, snapshots, properties, how to connect, and the metadata itself."""

from typing import Any, Final
from uuid import UUID

import msgspec
from django.http import HttpResponse
from django.urls import reverse

from catalog import tabular_types
from catalog.models import Tabular
from catalog.services import locations, pointer
from console import documents, drawings
from console.documents import SnapshotView
from console.pages.browse import Crumb, crumbs, readable
from console.services import provider
from console.snippets import Connection, all_snippets
from console.visits import Visit, page
from lakewarden import config
from lakewarden.authz.actions import TableAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import NotFound
from lakewarden.memory import hold

COLUMNS: Final = 500
"""Rows of a schema on a page."""
SNAPSHOTS: Final = 50
LOGGED: Final = 10
"""Earlier metadata files on a page."""
_CHARTED: Final = 400
"""Most points of a chart."""
_PRETTY: Final = 512 * 1024
"""Bytes of metadata that a page shows; longer one is only for download."""
_PARSED: Final = 8
"""Memory of parsed JSON, as a multiple of its length."""
_TABS: Final = {
    "schema": "Schema",
    "data": "Data",
    "snapshots": "Snapshots",
    "properties": "Properties",
    "connect": "Connect",
    "metadata": "Metadata",
}


@page
def table(visit: Visit, *, warehouse_id: UUID, table_id: UUID) -> HttpResponse:
    granted = readable(visit, warehouse_id, tabular_types.TABLE, table_id)
    tab = visit.query.get("tab", "schema")
    if tab not in _TABS:
        raise NotFound(f"There is no tab {tab[:80]!r}: {', '.join(_TABS)} are there")
    stored = pointer.load(granted)
    metadata = parsed(stored)
    found = stored.tabular
    shown: dict[str, object] = _SHOWN[tab](visit, granted, metadata)
    return visit.render(
        f"table_{tab}.html",
        section="warehouses",
        table=granted.target,
        metadata_location=found.metadata_location,
        version=found.version,
        format_version=metadata.get("format-version"),
        address=reverse("console:table", args=[warehouse_id, table_id]),
        tabs=_TABS.items(),
        tab=tab,
        crumbs=_crumbs(granted.target),
        **shown,
    )


@page
def download(visit: Visit, *, warehouse_id: UUID, table_id: UUID) -> HttpResponse:
    """The metadata, byte for byte, as a file."""
    stored = pointer.load(readable(visit, warehouse_id, tabular_types.TABLE, table_id))
    hold("metadata", stored.metadata_length)
    response = HttpResponse(stored.metadata, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{stored.tabular.uuid}.metadata.json"'
    return response


def parsed(stored: pointer.Stored) -> dict[str, Any]:
    """The metadata as JSON. Raises Unavailable if there is no memory for it now."""
    hold("page", _PARSED * stored.metadata_length)
    found: dict[str, Any] = msgspec.json.decode(stored.metadata)
    return found


def _crumbs(found: Tabular) -> list[Crumb]:
    return crumbs(found.namespace.warehouse, found.namespace)


def _schema(visit: Visit, _granted: Granted[Tabular], metadata: dict[str, Any]) -> dict[str, object]:
    schemas = metadata.get("schemas") or []
    number = number_in(visit.query.get("schema"), default=metadata.get("current-schema-id"))
    schema = documents.current(schemas, "schema-id", number)
    against = number_in(visit.query.get("against"), default=None)
    fields, start = documents.columns(schema), max(0, number_in(visit.query.get("from"), default=0) or 0)
    return {
        "schema_id": number,
        "schema_ids": [each.get("schema-id") for each in schemas],
        "columns": fields[start : start + COLUMNS],
        "columns_in_all": len(fields),
        "columns_from": start,
        "columns_next": start + COLUMNS if start + COLUMNS < len(fields) else None,
        "against": against,
        "differences": None
        if against is None
        else documents.differences(documents.current(schemas, "schema-id", against), schema),
        "partitioning": documents.partitioning(metadata, schema),
        "sorting": documents.sort_fields(metadata, schema),
    }


def _snapshots(visit: Visit, granted: Granted[Tabular], metadata: dict[str, Any]) -> dict[str, object]:
    found, start = documents.snapshots(metadata), max(0, number_in(visit.query.get("from"), default=0) or 0)
    shown = found[start : start + SNAPSHOTS]
    heads = {name: ref["snapshot-id"] for name, ref in (metadata.get("refs") or {}).items()}
    chosen = [number_in(visit.query.get(name), default=None) for name in ("a", "b")]
    compared = [next((each for each in found if each.id == identifier), None) for identifier in chosen]
    return {
        "graph": drawings.snapshot_graph(shown, heads),
        "restore": reverse("console:restore", args=[granted.target.warehouse_id, granted.target.uuid]),
        "snapshots_in_all": len(found),
        "snapshots_from": start,
        "snapshots_next": start + SNAPSHOTS if start + SNAPSHOTS < len(found) else None,
        "charts": [] if start else _charts(found),
        "compared": compared if all(compared) else None,
        "comparison": _comparison(compared[0], compared[1]) if compared[0] and compared[1] else [],
        "chosen": chosen,
    }


def _charts(found: list[SnapshotView]) -> list[drawings.Chart]:
    figures = {
        "Records": [(each, each.total_records, "records") for each in found],
        "Size of the data files": [(each, each.total_bytes, "bytes") for each in found],
    }
    charts = []
    for title, series in figures.items():
        known = [(each, value, unit) for each, value, unit in reversed(series) if value is not None]
        known = known[:: max(1, len(known) // _CHARTED)]
        points = [
            (each.at.timestamp(), float(value), f"{each.at:%Y-%m-%d %H:%M} UTC: {value:,} {unit}")
            for each, value, unit in known
        ]
        if points:
            most = max(value for _, value, _ in known)
            drawn = drawings.chart(
                title,
                points,
                top=f"{most:,} {known[0][2]}",
                first=f"{known[0][0].at:%Y-%m-%d}",
                last=f"{known[-1][0].at:%Y-%m-%d}",
            )
            charts += [drawn] if drawn else []
    return charts


def _comparison(before: SnapshotView, after: SnapshotView) -> list[tuple[str, str, str]]:
    names = sorted({*before.summary, *after.summary})
    return [(name, before.summary.get(name, ""), after.summary.get(name, "")) for name in names]


def _data(visit: Visit, granted: Granted[Tabular], metadata: dict[str, Any]) -> dict[str, object]:
    asked = number_in(visit.query.get("snapshot"), default=None)
    snapshot_id = metadata.get("current-snapshot-id") if asked is None else asked
    return {
        "snapshot_id": asked,
        "is_written": snapshot_id not in {None, -1},
        "may_read": granted.allows(TableAction.READ_DATA),
        "granters": visit.granters(granted, TableAction.READ_DATA),
        "most": config.current().console.preview_rows,
    }


def _properties(_visit: Visit, _granted: Granted[Tabular], metadata: dict[str, Any]) -> dict[str, object]:
    return {"properties": sorted((metadata.get("properties") or {}).items())}


def _connect(visit: Visit, granted: Granted[Tabular], _metadata: dict[str, Any]) -> dict[str, object]:
    found = granted.target
    connection = Connection(
        base_uri=visit.base_uri,
        warehouse=found.namespace.warehouse.name,
        table=".".join([*found.namespace.path, found.name]),
        **provider.known_token_endpoint(),
    )
    return {"snippets": all_snippets(connection)}


def _metadata(visit: Visit, granted: Granted[Tabular], metadata: dict[str, Any]) -> dict[str, object]:
    encoded = msgspec.json.encode(metadata)
    pretty = msgspec.json.format(encoded, indent=2).decode() if len(encoded) <= _PRETTY else None
    found = granted.target
    return {
        "pretty": pretty,
        "size": len(encoded),
        "file": reverse("console:table-file", args=[found.warehouse_id, found.uuid]),
        "restore": reverse("console:restore-metadata", args=[found.warehouse_id, found.uuid]),
        **_earlier(visit, found, metadata),
    }


def _earlier(visit: Visit, found: Tabular, metadata: dict[str, Any]) -> dict[str, object]:
    """A page of the metadata log, newest first; the storage may know of files that are gone."""
    log = (metadata.get("metadata-log") or [])[::-1]
    start, warehouse = max(0, number_in(visit.query.get("from"), default=0) or 0), found.namespace.warehouse
    files = [(documents.moment(each["timestamp-ms"]), each["metadata-file"]) for each in log[start : start + LOGGED]]
    return {
        "log": [
            (at, file, file.rpartition("/")[2], locations.is_known_missing(warehouse, file))
            for at, file in files
            if locations.lies_in(warehouse, file, found.location)
        ],
        "log_next": start + LOGGED if start + LOGGED < len(log) else None,
    }


_SHOWN: Final = {
    "schema": _schema,
    "data": _data,
    "snapshots": _snapshots,
    "properties": _properties,
    "connect": _connect,
    "metadata": _metadata,
}


def number_in(text: str | None, *, default: int | None) -> int | None:
    """A whole number of the query; the default for anything else."""
    digits = (text or "").removeprefix("-")
    return int(text or "") if digits.isascii() and digits.isdigit() and len(digits) <= 19 else default  # noqa: PLR2004 digits of 64 bits
