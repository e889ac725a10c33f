"""What `/analytics/status` shows of tables."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from catalog.services import table_contents
from catalog.services.table_contents import Contents
from lakewarden.authz.actions import WarehouseAction
from lakewarden.context import RequestContext
from lakewarden.http.request_threads import ask
from lakewarden.paging import Page, next_token
from tenants import access

_KIND: Final = "lakewarden.cdc.kind"
_POSITION: Final = "lakewarden.ingest.to-position"
"""Written by the pipeline: into a table's properties, and into the summary of each of its snapshots."""


async def read(context: RequestContext, warehouse_id: UUID, page: Page) -> dict[str, Any]:
    """A page of those whose metadata the caller may read."""

    def listed() -> dict[str, Any]:
        granted = access.warehouse(context, warehouse_id, WarehouseAction.USE)
        return _page(*table_contents.listed(granted, page))

    return await ask(context.caller.id, listed)


def _page(found: Sequence[Contents], after: str | None) -> dict[str, Any]:
    return {
        "tables": [_table(each) for each in found],
        "next-page-token": None if after is None else next_token(after),
    }


def _table(table: Contents) -> dict[str, Any]:
    return {
        "namespace": table.path,
        "name": table.name,
        "id": str(table.uuid),
        "kind": table.properties.get(_KIND),
        "records": table.records,
        "positionDeletes": table.position_deletes,
        "dataFiles": table.data_files,
        "deleteFiles": table.delete_files,
        "bytes": table.bytes,
        "snapshotId": table.snapshot_id,
        "snapshotAt": table.snapshot_ms,
        "upToPosition": table.summary.get(_POSITION),
    }
