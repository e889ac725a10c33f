"""`GET T/credentials`: storage credentials for a table's files (the spec's loadCredentials)."""

from django.http import HttpResponse

from catalog import access
from catalog.api import delegation
from catalog.api.wire_types import Credentials, StorageCredential
from catalog.identifiers import TabularIdentifier
from catalog.services.client_access import Asked, client_access, level_held, properties
from lakewarden.authz.actions import TableAction
from lakewarden.http.endpoint import Endpoint
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_response
from lakewarden.storage.client_access import ClientAccess


class TableCredentialsEndpoint(Endpoint):
    """`planId` and `referenced-by` are accepted and ignored: they have no influence on the credentials."""

    def get(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        ref = TabularIdentifier.parse(prefix, namespace, table)
        granted = access.table(request.context, ref, TableAction.READ_DATA)
        tabular = granted.target
        routes = delegation.routes(request.base_uri, tabular.namespace, tabular.name, tabular.uuid)
        found = client_access(
            tabular.namespace.warehouse,
            tabular.location,
            level_held(granted.privileges),
            Asked(delegation.CREDENTIALS, routes),
        )
        return json_response(Credentials(storage_credentials(tabular.location, found)))


def storage_credentials(location: str, found: ClientAccess) -> list[StorageCredential]:
    """None without a secret in it: an engine that finds an entry expects to sign with it."""
    return [StorageCredential(location, properties(found))] if found.credentials else []
