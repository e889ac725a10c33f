"""The first rows of a table, under the caller's rights."""

from urllib.parse import quote
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse

from catalog import access, tabular_types
from catalog.identifiers import SEPARATOR
from catalog.models import Tabular
from console.pages.browse import crumbs
from console.pages.tables import number_in
from console.services import preview
from console.visits import Visit, page
from lakewarden.authz.actions import TableAction
from lakewarden.errors import LakewardenError
from lakewarden.storage.client_access import ClientRoutes
from lakewarden.storage.s3.signer_settings import signer_path


@page
def rows(visit: Visit, *, warehouse_id: UUID, table_id: UUID) -> HttpResponse:
    """For whoever may read the table's data; `snapshot` is an id, the current one without it."""
    granted = access.tabular_in(
        visit.context, str(warehouse_id), tabular_types.TABLE, str(table_id), TableAction.READ_DATA
    )
    snapshot_id = number_in(visit.query.get("snapshot"), default=None)
    found, problem = None, None
    try:
        found = preview.read(granted, snapshot_id=snapshot_id, routes=_routes(visit, granted.target))
    except LakewardenError as error:
        problem = error.message
    return visit.render(
        "parts/rows.html" if visit.is_partial else "table_rows.html",
        section="warehouses",
        table=granted.target,
        address=reverse("console:table", args=[warehouse_id, table_id]),
        crumbs=crumbs(granted.target.namespace.warehouse, granted.target.namespace),
        snapshot_id=snapshot_id,
        preview=found,
        problem=problem or (found and found.problem),
    )


def _routes(visit: Visit, found: Tabular) -> ClientRoutes:
    """As an engine gets them; the reader asks none of them."""
    path, name = quote(SEPARATOR.join(found.namespace.path), safe=""), quote(found.name, safe="")
    credentials = f"v1/{found.warehouse_id}/namespaces/{path}/tables/{name}/credentials"
    return ClientRoutes(f"{visit.base_uri}/catalog", credentials, signer_path(found.warehouse_id, found.uuid))
