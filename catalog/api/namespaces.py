"""Namespace routes of the Iceberg REST API."""

from urllib.parse import unquote_plus

from django.http import HttpResponse
from msgspec import UNSET

from catalog import access
from catalog.api.idempotent_replay import CatalogMutation, namespace_again
from catalog.api.wire_types import CreateNamespace, UpdateProperties, asked_details, namespace_body, namespaces_body
from catalog.identifiers import NamespaceIdentifier
from catalog.models import Namespace
from catalog.services import namespaces
from catalog.services.deletion import drop_namespace
from catalog.services.deletion.drop import DropOptions
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import BadRequest, NoSuchNamespace
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_bytes, json_response, no_content
from lakewarden.idempotency.outcomes import Outcome
from lakewarden.paging import Page


class NamespacesEndpoint(CatalogMutation):
    def get(self, request: ApiRequest, *, prefix: str) -> HttpResponse:
        page = Page.parse(request.query)
        parent = request.query.get("parent")
        if parent:
            above = self._parent(request, prefix, parent)
            found, last = namespaces.children(above, page)
        else:
            top = access.warehouse(request.context, prefix, WarehouseAction.LIST_NAMESPACES)
            found, last = namespaces.children(top, page)
        extra = asked_details(request, found, uuids="namespace_uuids")
        return json_bytes(namespaces_body([each.path for each in found], last, extra))

    def _parent(self, request: ApiRequest, prefix: str, parent: str) -> Granted[Namespace]:
        """The parent of a list. Java and PyIceberg encode it twice (as a path and as a query), other clients once."""
        action = NamespaceAction.LIST_NAMESPACES
        try:
            return access.namespace(request.context, NamespaceIdentifier.parse(prefix, unquote_plus(parent)), action)
        except NoSuchNamespace:
            return access.namespace(request.context, NamespaceIdentifier.parse(prefix, parent), action)

    def post(self, request: ApiRequest, *, prefix: str) -> HttpResponse:
        body = request.decode(CreateNamespace)
        namespaces.check_path(body.namespace)
        properties = body.properties or {}
        if len(body.namespace) > 1:
            above = NamespaceIdentifier(prefix, tuple(body.namespace[:-1]))
            parent = access.namespace(request.context, above, NamespaceAction.CREATE_NAMESPACE)
            created = namespaces.create(parent, body.namespace, properties)
        else:
            top = access.warehouse(request.context, prefix, WarehouseAction.CREATE_NAMESPACE)
            created = namespaces.create(top, body.namespace, properties)
        return json_bytes(namespace_body(created.path, created.properties))

    def repeat(self, request: ApiRequest, earlier: Outcome) -> HttpResponse:
        return namespace_again(request, earlier)


class NamespaceEndpoint(CatalogMutation):
    def get(self, request: ApiRequest, *, prefix: str, namespace: str) -> HttpResponse:
        ref = NamespaceIdentifier.parse(prefix, namespace)
        found = access.namespace(request.context, ref, NamespaceAction.GET_METADATA).target
        identifier = found.id if request.flag("returnUuid") else UNSET
        return json_bytes(namespace_body(found.path, found.properties, identifier))

    def head(self, request: ApiRequest, *, prefix: str, namespace: str) -> HttpResponse:
        access.namespace(request.context, NamespaceIdentifier.parse(prefix, namespace), NamespaceAction.GET_METADATA)
        return no_content()

    def delete(self, request: ApiRequest, *, prefix: str, namespace: str) -> HttpResponse:
        ref = NamespaceIdentifier.parse(prefix, namespace)
        options = DropOptions(
            purge=_purge(request),
            force=request.flag("force") or False,
            recursive=request.flag("recursive") or False,
        )
        drop_namespace.drop(access.namespace(request.context, ref, _drop_action(options)), options)
        return no_content()


def _drop_action(options: DropOptions) -> NamespaceAction:
    if not options.force:
        return NamespaceAction.DELETE
    return NamespaceAction.FORCE_DROP_ALL if options.recursive else NamespaceAction.FORCE_DROP


def _purge(request: ApiRequest) -> bool | None:
    """`purgeRequested`, as for tables, or `purge`; raises BadRequest if both are sent with different values."""
    asked = {name: request.flag(name) for name in ("purgeRequested", "purge")}
    given = {value for value in asked.values() if value is not None}
    if len(given) > 1:
        raise BadRequest("The query parameters purge and purgeRequested contradict each other: send one of them")
    return given.pop() if given else None


class NamespacePropertiesEndpoint(CatalogMutation):
    def post(self, request: ApiRequest, *, prefix: str, namespace: str) -> HttpResponse:
        body = request.decode(UpdateProperties)
        ref = NamespaceIdentifier.parse(prefix, namespace)
        granted = access.namespace(request.context, ref, NamespaceAction.UPDATE_PROPERTIES)
        return json_response(
            namespaces.update_properties(granted, removals=body.removals or [], updates=body.updates or {})
        )

    def repeat(self, request: ApiRequest, earlier: Outcome) -> HttpResponse:
        changed = {key: earlier.data[key] for key in ("updated", "removed")}
        asked = request.decode(UpdateProperties).removals or []
        missing = [key for key in dict.fromkeys(asked) if key not in set(changed["removed"])]
        return json_response({**changed, "missing": missing})
