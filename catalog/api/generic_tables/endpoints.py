"""Routes of generic tables."""

from collections.abc import Mapping

from django.http import HttpResponse

from catalog import access, tabular_types
from catalog.api.generic_tables.wire_types import (
    GenericTableData,
    GenericTableList,
    ListedGenericTable,
    LoadedGenericTable,
)
from catalog.api.idempotent_replay import CatalogMutation, granted_again
from catalog.api.tables import drop_options, table_ref
from catalog.api.wire_types import Credentials, Rename, StorageCredential
from catalog.identifiers import NamespaceIdentifier, TabularIdentifier
from catalog.models import Namespace, Tabular
from catalog.services import generic_tables, tabulars
from catalog.services.client_access import client_config
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
        return _loaded(granted, generic_tables.create(granted, body))

    def repeat(self, request: ApiRequest, earlier: Outcome) -> HttpResponse:
        granted = granted_again(request, earlier)
        return _loaded(granted, generic_tables.load(granted))


class GenericTableEndpoint(CatalogMutation):
    def get(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        ref = TabularIdentifier.parse(prefix, namespace, table)
        granted = _granted(request.context, ref, GenericTableAction.GET_METADATA)
        return _loaded(granted, generic_tables.load(granted))

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
        config = _client_config(granted, granted.target)
        return json_response(Credentials(_credentials(granted.target, config)))


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


def _loaded(granted: Granted[Namespace] | Granted[Tabular], loaded: Loaded) -> HttpResponse:
    """`granted` is the table, or the namespace in which its owner has just created it."""
    config = _client_config(granted, loaded.tabular)
    credentials = _credentials(loaded.tabular, config)
    return json_response(LoadedGenericTable(GenericTableData.of(loaded), dict(config), credentials))


def _client_config(granted: Granted[Namespace] | Granted[Tabular], tabular: Tabular) -> Mapping[str, str]:
    is_owner = isinstance(granted.target, Namespace)
    reads = is_owner or granted.allows(GenericTableAction.READ_DATA)
    writes = is_owner or granted.allows(GenericTableAction.WRITE_DATA)
    return client_config(tabular.namespace.warehouse, tabular.location, reads=reads, writes=writes)


def _credentials(tabular: Tabular, config: Mapping[str, str]) -> list[StorageCredential]:
    return [StorageCredential(tabular.location, dict(config))] if config else []
