"""Responses to repeated mutations (`Idempotency-Key`): built from the current state, after a new authorization."""

from uuid import UUID

from django.http import HttpResponse

from catalog import access
from catalog.api.rendering import render_stored
from catalog.api.wire_types import namespace_body
from catalog.models import Tabular
from catalog.services.pointer import load
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.http.repeatable import RepeatableEndpoint
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_bytes, no_content
from lakewarden.idempotency.outcomes import Outcome


class CatalogMutation(RepeatableEndpoint):
    """The base of endpoints with mutations; those whose response has a body override `repeat`."""

    def replay(self, request: ApiRequest, earlier: Outcome, **path: str) -> HttpResponse:
        access.warehouse(request.context, path["prefix"], WarehouseAction.USE)
        if earlier.refusal is not None:
            status, body = earlier.refusal
            return json_bytes(body, status=status)
        return self.repeat(request, earlier)

    def repeat(self, request: ApiRequest, earlier: Outcome) -> HttpResponse:  # noqa: ARG002 overridden where the response has a body
        return no_content()


def granted_again(request: ApiRequest, earlier: Outcome) -> Granted[Tabular]:
    """The table or view that was changed; raises its own 404 when it is gone or no longer visible."""
    return access.tabular_of_id(request.context, earlier.data["warehouse-id"], earlier.object_id)


def stored_again(request: ApiRequest, earlier: Outcome, *, suffix: bytes) -> HttpResponse:
    """As it is now; raises as `granted_again`."""
    return render_stored(request, load(granted_again(request, earlier)), suffix=suffix)


def namespace_again(request: ApiRequest, earlier: Outcome) -> HttpResponse:
    found = access.namespace_of_id(request.context, UUID(earlier.object_id), NamespaceAction.GET_METADATA).target
    return json_bytes(namespace_body(found.path, found.properties))
