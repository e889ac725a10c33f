"""View routes of the Iceberg REST API."""

from django.http import HttpResponse

from catalog import access
from catalog.api.idempotent_replay import CatalogMutation, stored_again
from catalog.api.rendering import render_stored
from catalog.api.tables import drop_options, identifiers
from catalog.api.wire_types import RegisterView, Rename
from catalog.identifiers import NamespaceIdentifier, TabularIdentifier
from catalog.models import Tabular
from catalog.services import tabulars, views
from catalog.services.client_access import NO_CONFIG
from catalog.services.deletion import drop_tabular
from catalog.services.pointer import load
from catalog.services.views import CommitView, CreateView
from lakewarden.authz.actions import NamespaceAction, ViewAction
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import no_content
from lakewarden.idempotency.outcomes import Outcome
from lakewarden.paging import Page


class ViewsEndpoint(CatalogMutation):
    def get(self, request: ApiRequest, *, prefix: str, namespace: str) -> HttpResponse:
        page = Page.parse(request.query)
        ref = NamespaceIdentifier.parse(prefix, namespace)
        granted = access.namespace(request.context, ref, NamespaceAction.LIST_VIEWS)
        return identifiers(request, granted.target.path, *tabulars.listed(granted, Tabular.Kind.VIEW, page))

    def post(self, request: ApiRequest, *, prefix: str, namespace: str) -> HttpResponse:
        body = request.decode(CreateView, may_be_large=True)
        ref = NamespaceIdentifier.parse(prefix, namespace)
        granted = access.namespace(request.context, ref, NamespaceAction.CREATE_VIEW)
        return render_stored(request, views.create(granted, body, request.body), suffix=NO_CONFIG)

    def repeat(self, request: ApiRequest, earlier: Outcome) -> HttpResponse:
        return stored_again(request, earlier, suffix=NO_CONFIG)


class ViewEndpoint(CatalogMutation):
    def get(self, request: ApiRequest, *, prefix: str, namespace: str, view: str) -> HttpResponse:
        ref = TabularIdentifier.parse(prefix, namespace, view)
        return render_stored(
            request, load(access.view(request.context, ref, ViewAction.GET_METADATA)), suffix=NO_CONFIG
        )

    def head(self, request: ApiRequest, *, prefix: str, namespace: str, view: str) -> HttpResponse:
        access.view(request.context, TabularIdentifier.parse(prefix, namespace, view), ViewAction.GET_METADATA)
        return no_content()

    def post(self, request: ApiRequest, *, prefix: str, namespace: str, view: str) -> HttpResponse:
        body = request.decode(CommitView, may_be_large=True)
        granted = access.view(request.context, TabularIdentifier.parse(prefix, namespace, view), ViewAction.COMMIT)
        return render_stored(request, views.replace(granted, body), suffix=NO_CONFIG)

    def delete(self, request: ApiRequest, *, prefix: str, namespace: str, view: str) -> HttpResponse:
        options = drop_options(request)
        action = ViewAction.FORCE_DROP if options.force else ViewAction.DROP
        granted = access.view(request.context, TabularIdentifier.parse(prefix, namespace, view), action)
        drop_tabular.drop(granted, options)
        return no_content()

    def repeat(self, request: ApiRequest, earlier: Outcome) -> HttpResponse:
        if request.method == "DELETE":
            return no_content()
        return stored_again(request, earlier, suffix=NO_CONFIG)


class RegisterViewEndpoint(CatalogMutation):
    def post(self, request: ApiRequest, *, prefix: str, namespace: str) -> HttpResponse:
        body = request.decode(RegisterView)
        ref = NamespaceIdentifier.parse(prefix, namespace)
        granted = access.namespace(request.context, ref, NamespaceAction.CREATE_VIEW)
        return render_stored(request, views.register(granted, body.name, body.metadata_location), suffix=NO_CONFIG)

    def repeat(self, request: ApiRequest, earlier: Outcome) -> HttpResponse:
        return stored_again(request, earlier, suffix=NO_CONFIG)


class RenameViewEndpoint(CatalogMutation):
    def post(self, request: ApiRequest, *, prefix: str) -> HttpResponse:
        body = request.decode(Rename)
        ref = NamespaceIdentifier(prefix, tuple(body.source.namespace))
        source = access.view(request.context, TabularIdentifier(ref, body.source.name), ViewAction.RENAME)
        into = NamespaceIdentifier(prefix, tuple(body.destination.namespace))
        destination = access.namespace(request.context, into, NamespaceAction.CREATE_VIEW)
        tabulars.rename(source, destination, body.destination.name)
        return no_content()
