"""Table routes of the Iceberg REST API."""

from django.http import HttpResponse

from catalog import access
from catalog.api import delegation, etags
from catalog.api.idempotent_replay import CatalogMutation, granted_again, stored_again
from catalog.api.rendering import COMMIT_SUFFIX, render_stored, tagged
from catalog.api.wire_types import Identifier, MetricsReport, Register, Rename, asked_details, identifiers_body
from catalog.documents import unpacked
from catalog.identifiers import NamespaceIdentifier, TabularIdentifier
from catalog.models import Tabular
from catalog.models.tabular import ListedTabular
from catalog.services import metrics, tables, tabulars
from catalog.services.client_access import (
    NOTHING,
    Addition,
    addition,
    addition_to_new,
    addition_to_registered,
    level_held,
)
from catalog.services.deletion import drop_tabular
from catalog.services.deletion.drop import DropOptions
from catalog.services.kept_additions import ADDITIONS, loaded
from catalog.services.pointer import Stored, load
from catalog.services.tables import CommitTable, CreateTable
from lakewarden.authz.actions import NamespaceAction, TableAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import BadRequest
from lakewarden.http.endpoint import Endpoint
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_bytes, no_content
from lakewarden.idempotency.outcomes import Outcome
from lakewarden.paging import Page


class TablesEndpoint(CatalogMutation):
    def get(self, request: ApiRequest, *, prefix: str, namespace: str) -> HttpResponse:
        page = Page.parse(request.query)
        ref = NamespaceIdentifier.parse(prefix, namespace)
        granted = access.namespace(request.context, ref, NamespaceAction.LIST_TABLES)
        return identifiers(request, granted.target.path, *tabulars.listed(granted, Tabular.Kind.TABLE, page))

    def post(self, request: ApiRequest, *, prefix: str, namespace: str) -> HttpResponse:
        body = request.decode(CreateTable, may_be_large=True)
        ref = NamespaceIdentifier.parse(prefix, namespace)
        granted = access.namespace(request.context, ref, NamespaceAction.CREATE_TABLE)
        planned = tables.plan(granted, body, request.body)
        # before anything is stored: a creation that is answered with an error has created nothing
        asked = delegation.asked_for(request, granted.target, planned.name, planned.uuid)
        added = addition_to_new(granted.target.warehouse, planned.location, asked)
        if body.stage_create:
            return json_bytes(b'{"metadata":' + tables.stage(planned) + added.suffix)
        return render_stored(request, tables.create(planned), suffix=added.suffix, mark=added.mark)

    def repeat(self, request: ApiRequest, earlier: Outcome) -> HttpResponse:
        return _loaded_again(request, earlier)


class TableEndpoint(CatalogMutation):
    def get(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        mode = request.query.get("snapshots", "all")
        if mode not in {"all", "refs"}:
            raise BadRequest(f"Invalid query parameter snapshots={mode!r}: all or refs is expected")
        ref = TabularIdentifier.parse(prefix, namespace, table)
        granted = access.table(request.context, ref, TableAction.GET_METADATA)
        stored = load(granted)
        if mode == "all":
            return _loaded(request, granted, stored)
        added = _addition(request, granted, stored)
        tag = etags.of(stored.tabular.id, stored.tabular.version, snapshots=mode, mark=added.mark)
        if etags.matches(request.headers.get("if-none-match"), tag):
            return tagged(no_content(status=304), tag)
        body = unpacked(stored.tabular.metadata_location, tables.referenced_only(stored))
        return tagged(json_bytes(body + added.suffix), tag)

    def head(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        access.table(request.context, TabularIdentifier.parse(prefix, namespace, table), TableAction.GET_METADATA)
        return no_content()

    def post(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        body = request.decode(CommitTable, may_be_large=True)
        if tables.is_creation(body.requirements):
            ref = NamespaceIdentifier.parse(prefix, namespace)
            into = access.namespace(request.context, ref, NamespaceAction.CREATE_TABLE)
            return render_stored(request, tables.create_by_commit(into, table, body), suffix=COMMIT_SUFFIX)
        granted = access.table(request.context, TabularIdentifier.parse(prefix, namespace, table), TableAction.COMMIT)
        return render_stored(request, tables.commit(granted, body), suffix=COMMIT_SUFFIX)

    def delete(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        options = drop_options(request)
        action = TableAction.FORCE_DROP if options.force else TableAction.DROP
        granted = access.table(request.context, TabularIdentifier.parse(prefix, namespace, table), action)
        drop_tabular.drop(granted, options)
        return no_content()

    def repeat(self, request: ApiRequest, earlier: Outcome) -> HttpResponse:
        if request.method == "DELETE":
            return no_content()
        return stored_again(request, earlier, suffix=COMMIT_SUFFIX)


class RegisterTableEndpoint(CatalogMutation):
    def post(self, request: ApiRequest, *, prefix: str, namespace: str) -> HttpResponse:
        body = request.decode(Register)
        ref = NamespaceIdentifier.parse(prefix, namespace)
        granted = access.namespace(request.context, ref, NamespaceAction.CREATE_TABLE)
        replaced = TabularIdentifier(ref, body.name)
        replacing = access.find_table(request.context, replaced, TableAction.DROP) if body.overwrite else None
        stored = tables.register(granted, body.name, body.metadata_location, replacing=replacing)
        added = addition_to_registered(granted.context, stored.tabular, delegation.asked(request, stored.tabular))
        return render_stored(request, stored, suffix=added.suffix, mark=added.mark)

    def repeat(self, request: ApiRequest, earlier: Outcome) -> HttpResponse:
        return _loaded_again(request, earlier)


class RenameTableEndpoint(CatalogMutation):
    def post(self, request: ApiRequest, *, prefix: str) -> HttpResponse:
        body = request.decode(Rename)
        source = access.table(request.context, table_ref(prefix, body.source), TableAction.RENAME)
        into = NamespaceIdentifier(prefix, tuple(body.destination.namespace))
        destination = access.namespace(request.context, into, NamespaceAction.CREATE_TABLE)
        tabulars.rename(source, destination, body.destination.name)
        return no_content()


class TableMetricsEndpoint(Endpoint):
    def post(self, request: ApiRequest, *, prefix: str, namespace: str, table: str) -> HttpResponse:
        report = request.decode(MetricsReport, may_be_large=True)
        granted = access.table(
            request.context, TabularIdentifier.parse(prefix, namespace, table), TableAction.READ_DATA
        )
        metrics.keep(granted, report.report_type, request.body)
        return no_content()


def _loaded(request: ApiRequest, granted: Granted[Tabular], stored: Stored) -> HttpResponse:
    added = _addition(request, granted, stored)
    return render_stored(request, stored, suffix=added.suffix, mark=added.mark)


def _loaded_again(request: ApiRequest, earlier: Outcome) -> HttpResponse:
    granted = granted_again(request, earlier)
    return _loaded(request, granted, load(granted))


def _addition(request: ApiRequest, granted: Granted[Tabular], stored: Stored) -> Addition:
    tabular, level = stored.tabular, level_held(granted.privileges)
    warehouse = tabular.namespace.warehouse
    if not warehouse.profile.CLIENTS_NEED_CONFIG:
        return NOTHING
    asked = delegation.asked(request, tabular)
    added = addition(warehouse, tabular.location, level, asked)
    ADDITIONS.keep(loaded(tabular, level, asked.wanted, request.base_uri), added)
    return added


def drop_options(request: ApiRequest) -> DropOptions:
    """The options of a drop: `purgeRequested` (see `DropOptions`) and `force`."""
    return DropOptions(purge=request.flag("purgeRequested"), force=request.flag("force") or False)


def table_ref(prefix: str, identifier: Identifier) -> TabularIdentifier:
    return TabularIdentifier(NamespaceIdentifier(prefix, tuple(identifier.namespace)), identifier.name)


def identifiers(request: ApiRequest, path: list[str], listed: list[ListedTabular], last: str | None) -> HttpResponse:
    extra = asked_details(request, listed, uuids="table_uuids")
    return json_bytes(identifiers_body(path, [each.name for each in listed], last, extra))
