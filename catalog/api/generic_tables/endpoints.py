"""Routes of generic tables."""

from django.http import HttpResponse

from catalog import access, tabular_types
from catalog.api import delegation
from catalog.api.credentials import storage_credentials
from catalog.api.generic_tables.wire_types import (
    GenericTableData,
    GenericTableList,
    ListedGenericTable,
    LoadedGenericTable,
)
from catalog.api.idempotent_replay import CatalogMutation, granted_again
from catalog.api.tables import drop_options, table_ref
from catalog.api.wire_types import Credentials, Rename
from catalog.identifiers import NamespaceIdentifier, TabularIdentifier
from catalog.models import Tabular
from catalog.services import generic_tables, tabulars
from catalog.services.client_access import Asked, access_to_new, client_access, level_held, properties
from catalog.services.deletion import drop_tabular
from catalog.services.generic_tables import CreateGenericTable, Loaded
from lakewarden.authz.actions import GenericTableAction, NamespaceAction
from lakewarden.authz.interface import Granted
from lakewarden.context import RequestContext
from lakewarden.http.endpoint import Endpoint
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_response, no_content
from lakewarden.idempotency.outcomes import Outcome
from lakewarden.paging import Page, next_token
from lakewarden.storage.client_access import ClientAccess


class GenericTablesEndpoint(CatalogMutation):
    def get(self, request: ApiRequest, *, prefix: str, namespace: str) -> HttpResponse:
        page = Page.parse(request.query)
        ref = NamespaceIdentifier.parse(prefix, namespace)
        granted = access.namespace(request.context, ref, NamespaceAction.LIST_GENERIC_TABLES)
        found, last = generic_tables.listed(granted, page)
        path = granted.target.path
        identifiers = [
            ListedGenericTable(path, each.name, each.id, **({} if kind is None else {"format": kind}))
            for each, kind in found
        ]
        return json_response(GenericTableList(identifiers, next_token(last) if last is not None else None))

    def post(self, request: ApiRequest, *, prefix: str, namespace: str) -> HttpResponse:
        body = request.decode(CreateGenericTable, may_be_large=True)
        ref = NamespaceIdentifier.parse(prefix, namespace)
        granted = access.namespace(request.context, ref, NamespaceAction.CREATE_GENERIC_TABLE)
        planned = generic_tables.plan(granted, body)
        # before anything is stored: a creation that is answered with an error has created nothing
        found = access_to_new(granted.target.warehouse, planned.tabular.location, _asked(request, planned.tabular))
        return _rendered(generic_tables.create(planned), found)

    def repeat(self, request: ApiRequest, earlier: Outcome) -> HttpResponse:
        granted = granted_again(request, earlier)
        return _loaded(request, granted, generic_tables.load(granted))


class GenericTableEndpoint(CatalogMutation):
    def get(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        ref = TabularIdentifier.parse(prefix, namespace, table)
        granted = _granted(request.context, ref, GenericTableAction.GET_METADATA)
        return _loaded(request, granted, generic_tables.load(granted))

    def delete(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        options = drop_options(request)
        action = GenericTableAction.FORCE_DROP if options.force else GenericTableAction.DROP
        granted = _granted(request.context, TabularIdentifier.parse(prefix, namespace, table), action)
        drop_tabular.drop(granted, options)
        return no_content()


class GenericTableCredentialsEndpoint(Endpoint):
    """`referenced-by` is accepted and ignored: no view can name a generic table."""

    def get(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        ref = TabularIdentifier.parse(prefix, namespace, table)
        granted = _granted(request.context, ref, GenericTableAction.READ_DATA)
        asked = Asked(delegation.CREDENTIALS, delegation.generic_routes(request.base_uri, granted.target))
        found = _access(granted, asked)
        return json_response(Credentials(storage_credentials(granted.target.location, found)))


class RenameGenericTableEndpoint(CatalogMutation):
    def post(self, request: ApiRequest, *, prefix: str) -> HttpResponse:
        body = request.decode(Rename)
        source = _granted(request.context, table_ref(prefix, body.source), GenericTableAction.RENAME)
        into = NamespaceIdentifier(prefix, tuple(body.destination.namespace))
        destination = access.namespace(request.context, into, NamespaceAction.CREATE_GENERIC_TABLE)
        tabulars.rename(source, destination, body.destination.name)
        return no_content()


def _granted(context: RequestContext, ref: TabularIdentifier, action: GenericTableAction) -> Granted[Tabular]:
    return access.tabular(context, ref, tabular_types.GENERIC_TABLE, action)


def _loaded(request: ApiRequest, granted: Granted[Tabular], loaded: Loaded) -> HttpResponse:
    return _rendered(loaded, _access(granted, _asked(request, loaded.tabular)))


def _rendered(loaded: Loaded, found: ClientAccess) -> HttpResponse:
    credentials = storage_credentials(loaded.tabular.location, found)
    return json_response(LoadedGenericTable(GenericTableData.of(loaded), properties(found), credentials))


def _asked(request: ApiRequest, tabular: Tabular) -> Asked:
    wanted = delegation.wanted_in(request.headers.get(delegation.HEADER, ""))
    return Asked(wanted, delegation.generic_routes(request.base_uri, tabular))


def _access(granted: Granted[Tabular], asked: Asked) -> ClientAccess:
    tabular = granted.target
    return client_access(tabular.namespace.warehouse, tabular.location, level_held(granted.privileges), asked)
