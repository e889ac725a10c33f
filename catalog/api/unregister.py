"""`POST T/unregister`: removes a table from the catalog without its files (spec: unregisterTable)."""

from django.http import HttpResponse

from catalog import access
from catalog.api.idempotent_replay import CatalogMutation
from catalog.api.rendering import COMMIT_SUFFIX
from catalog.documents import unpacked
from catalog.identifiers import TabularIdentifier
from catalog.services import tables
from catalog.services.deletion import drop_tabular
from lakewarden.authz.actions import TableAction, WarehouseAction
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_bytes
from lakewarden.idempotency.outcomes import Outcome


class UnregisterTableEndpoint(CatalogMutation):
    def post(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        # it cannot be restored, so it requires the same right as a forced drop
        granted = access.table(
            request.context, TabularIdentifier.parse(prefix, namespace, table), TableAction.FORCE_DROP
        )
        last = drop_tabular.unregister(granted)
        return _last_state(last.tabular.metadata_location, last.metadata)

    def repeat(self, request: ApiRequest, earlier: Outcome) -> HttpResponse:
        """Read the metadata file again: the table's row is gone, so only rights on the warehouse can be checked."""
        warehouse = access.warehouse(request.context, earlier.data["warehouse-id"], WarehouseAction.USE)
        file = earlier.data["metadata-location"]
        return _last_state(file, tables.metadata_at(warehouse, file))


def _last_state(metadata_location: str, metadata: bytes) -> HttpResponse:
    """The JSON of an UnregisterTableResult (spec)."""
    return json_bytes(unpacked(metadata_location, metadata) + COMMIT_SUFFIX)
