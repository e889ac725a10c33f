"""`GET T/credentials`: storage credentials for a table's files (the spec's loadCredentials)."""

from django.http import HttpResponse

from catalog import access
from catalog.identifiers import TabularIdentifier
from lakewarden.authz.actions import TableAction
from lakewarden.http.endpoint import Endpoint
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_response


class TableCredentialsEndpoint(Endpoint):
    """`planId` and `referenced-by` are accepted and ignored: they have no influence on the credentials."""

    def get(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        access.table(request.context, TabularIdentifier.parse(prefix, namespace, table), TableAction.READ_DATA)
        # warehouses of type `local` are the only ones: engines reach their files as files, without credentials
        return json_response({"storage-credentials": []})
