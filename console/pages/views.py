"""The pages of a view, with the SQL of its versions, and of a generic table."""

from typing import Final
from uuid import UUID

from django.http import HttpResponse

from catalog import tabular_types
from catalog.services import generic_tables, pointer
from console import documents
from console.pages.browse import crumbs, readable
from console.pages.tables import parsed
from console.visits import Visit, page

_VERSIONS: Final = 100
_COLUMNS: Final = 1000


@page
def view(visit: Visit, *, warehouse_id: UUID, view_id: UUID) -> HttpResponse:
    granted = readable(visit, warehouse_id, tabular_types.VIEW, view_id)
    metadata = parsed(pointer.load(granted))
    versions = sorted(metadata.get("versions") or [], key=lambda each: -each["version-id"])
    now = documents.current(versions, "version-id", metadata.get("current-version-id"))
    schema = documents.current(metadata.get("schemas") or [], "schema-id", now.get("schema-id"))
    return visit.render(
        "view.html",
        section="warehouses",
        view=granted.target,
        crumbs=crumbs(granted.target.namespace.warehouse, granted.target.namespace),
        versions=[
            (each["version-id"], each, documents.moment(each["timestamp-ms"]), each is now) for each in versions[:100]
        ],
        versions_in_all=len(versions),
        columns=documents.columns(schema)[:_COLUMNS],
        properties=sorted((metadata.get("properties") or {}).items()),
    )


@page
def generic_table(visit: Visit, *, warehouse_id: UUID, table_id: UUID) -> HttpResponse:
    granted = readable(visit, warehouse_id, tabular_types.GENERIC_TABLE, table_id)
    return visit.render(
        "generic_table.html",
        section="warehouses",
        table=granted.target,
        details=generic_tables.load(granted),
        crumbs=crumbs(granted.target.namespace.warehouse, granted.target.namespace),
    )
