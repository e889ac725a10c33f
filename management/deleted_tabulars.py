"""Dropped objects that can be restored: `GET …/deleted-tabulars`, `GET …/deleted-namespaces`, `POST …/undrop`."""

from typing import Any
from uuid import UUID

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from catalog import access as catalog_access
from catalog.services.deletion import listing, undrop
from catalog.services.deletion.listing import DeletedObject
from catalog.services.deletion.undrop import Target
from catalog.tabular_types import TABULAR_TYPES
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from lakewarden.errors import BadRequest
from lakewarden.paging import next_token
from management.api import ManagementView
from management.base_serializers import Body, Kebab, Shape
from tenants import access

MAX_TARGETS = 100
PAGING = [
    OpenApiParameter("pageToken", str, description="The `next-page-token` of the previous page."),
    OpenApiParameter("pageSize", int, description="The maximum number of entries; 100 by default."),
]


class DeletedShape(Shape):
    id = serializers.UUIDField()
    name = serializers.CharField()
    namespace = serializers.ListField(child=serializers.CharField())
    typ = serializers.ChoiceField(choices=[*TABULAR_TYPES, "namespace"], source="kind")
    created_at = serializers.DateTimeField()
    deleted_at = serializers.DateTimeField()
    expiration_date = serializers.DateTimeField(source="expires_at")
    time_left_seconds = serializers.IntegerField(source="time_left_s")
    warehouse_id = serializers.UUIDField()
    deleted_by = serializers.CharField()
    dropped_with_namespace = serializers.UUIDField(
        source="dropped_with",
        required=False,
        help_text="The namespace with which the object was dropped; restore it to restore the object.",
    )


class DeletedTabularsShape(Shape):
    tabulars = DeletedShape(many=True)
    next_page_token = serializers.CharField(required=False)


class DeletedNamespacesShape(Shape):
    namespaces = DeletedShape(many=True)
    next_page_token = serializers.CharField(required=False)


class TargetBody(Kebab):
    type = serializers.ChoiceField(choices=[*TABULAR_TYPES, "namespace"])
    id = serializers.UUIDField()


class UndropBody(Body):
    targets = TargetBody(many=True, allow_empty=False)


class DeletedTabulars(ManagementView):
    @extend_schema(
        responses={200: DeletedTabularsShape},
        parameters=[OpenApiParameter("namespaceId", UUID, description="Only objects in this namespace."), *PAGING],
    )
    def get(self, _request: Request, warehouse_id: str) -> Response:
        """List the dropped tables, views and generic tables that can be restored, the most recently dropped first."""
        namespace_id = _namespace_id(self.call.query.get("namespaceId"))
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.USE)
        found, last = listing.tabulars(granted, self.page, namespace_id=namespace_id)
        return _answer(DeletedTabularsShape, "tabulars", found, last)


class DeletedNamespaces(ManagementView):
    @extend_schema(responses={200: DeletedNamespacesShape}, parameters=PAGING)
    def get(self, _request: Request, warehouse_id: str) -> Response:
        """List the dropped namespaces that can be restored, the most recently dropped first.

        Restoring a namespace also restores everything that was dropped with it.
        """
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.USE)
        found, last = listing.namespaces(granted, self.page)
        return _answer(DeletedNamespacesShape, "namespaces", found, last)


class Undrop(ManagementView):
    @extend_schema(request=UndropBody, responses={204: None})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Restore dropped tables, views, generic tables and namespaces.

        Either all of them are restored or none. A namespace is restored with everything that was dropped with it.
        """
        asked = self.body(UndropBody).get("targets")
        if len(asked) > MAX_TARGETS:
            raise BadRequest(f"targets: {len(asked)} in one request, at most {MAX_TARGETS} are allowed")
        warehouse = access.warehouse(self.context, warehouse_id, WarehouseAction.USE).target
        targets = [self._target(warehouse_id, each) for each in asked]
        undrop.undrop(targets, warehouse_id=warehouse.id, context=self.context)
        return Response(status=204)

    def _target(self, warehouse_id: str, asked: dict[str, Any]) -> Target:
        kind, identifier = asked["type"], str(asked["id"])
        if kind == "namespace":
            action = NamespaceAction.UNDROP
            return catalog_access.dropped_namespace_in(self.context, warehouse_id, identifier, action)
        wanted = TABULAR_TYPES[kind]
        return catalog_access.dropped_tabular_in(self.context, warehouse_id, wanted, identifier, wanted.actions.UNDROP)


def _answer(shape: type[Shape], name: str, found: list[DeletedObject], last: str | None) -> Response:
    token = next_token(last) if last is not None else None
    return Response(shape.of({name: [each._asdict() for each in found], "next_page_token": token}))


def _namespace_id(given: str | None) -> UUID | None:
    if given is None:
        return None
    try:
        return UUID(given)
    except ValueError:
        raise BadRequest(f"Invalid query parameter namespaceId={given[:80]!r}: an id is expected") from None


routes = [
    path("warehouse/<str:warehouse_id>/deleted-tabulars", DeletedTabulars.as_view()),
    path("warehouse/<str:warehouse_id>/deleted-tabulars/undrop", Undrop.as_view()),
    path("warehouse/<str:warehouse_id>/deleted-namespaces", DeletedNamespaces.as_view()),
]
