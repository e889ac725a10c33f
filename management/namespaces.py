"""Operations on namespaces that the Iceberg REST API does not have: protection, and moving to
another name or parent.
"""

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from catalog import access
from catalog.identifiers import NamespaceIdentifier
from catalog.services import namespace_moves, protection
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from management.api import ManagementView
from management.base_serializers import Body, Shape

_NAMES = serializers.CharField(trim_whitespace=False, allow_blank=True)


class ProtectionShape(Shape):
    also_in_snake_case = frozenset({"updated_at"})

    protected = serializers.BooleanField()
    protected_by = serializers.CharField(source="by", required=False)
    protected_at = serializers.DateTimeField(source="at", required=False)
    reason = serializers.CharField(required=False)
    updated_at = serializers.DateTimeField(required=False)


class ProtectionBody(Body):
    protected = serializers.BooleanField()
    reason = serializers.CharField(required=False, trim_whitespace=False, allow_blank=True)


class MoveBody(Body):
    destination = serializers.ListField(child=_NAMES, allow_empty=False)
    force = serializers.BooleanField(default=False, help_text="Move the namespace even if it is protected.")


class MovedShape(Shape):
    namespace_id = serializers.UUIDField(source="id")
    namespace = serializers.ListField(child=serializers.CharField(), source="path")
    parent_namespace_id = serializers.UUIDField(source="parent_id", required=False)


class NamespaceProtection(ManagementView):
    @extend_schema(responses={200: ProtectionShape})
    def get(self, _request: Request, warehouse_id: str, namespace_id: str) -> Response:
        """Read whether the namespace is protected from deletion."""
        granted = access.namespace_in(self.context, warehouse_id, namespace_id, NamespaceAction.GET_METADATA)
        return Response(ProtectionShape.of(protection.of(granted)))

    @extend_schema(request=ProtectionBody, responses={200: ProtectionShape})
    def post(self, _request: Request, warehouse_id: str, namespace_id: str) -> Response:
        """Protect the namespace from deletion, or remove the protection.

        Objects in it are only protected by a protection of their own.
        """
        body = self.body(ProtectionBody)
        granted = access.namespace_in(self.context, warehouse_id, namespace_id, NamespaceAction.SET_PROTECTION)
        now = protection.set_on_namespace(granted, protected=body.get("protected"), reason=body.get("reason"))
        return Response(ProtectionShape.of(now))


class NamespaceMove(ManagementView):
    @extend_schema(request=MoveBody, responses={200: MovedShape})
    def post(self, _request: Request, warehouse_id: str, namespace_id: str) -> Response:
        """Move the namespace to the full path `destination`, with everything in it.

        Its id, its locations and its direct grants do not change. A protected namespace is only moved with `force`.
        """
        body = self.body(MoveBody)
        destination: list[str] = body.get("destination")
        granted = access.namespace_in(self.context, warehouse_id, namespace_id, NamespaceAction.MOVE)
        namespace_moves.check_destination(granted.target, destination)
        parent: namespace_moves.NewParent
        if len(destination) > 1:
            above = NamespaceIdentifier(str(granted.target.warehouse_id), tuple(destination[:-1]))
            parent = access.namespace(self.context, above, NamespaceAction.ACCEPT_MOVED_NAMESPACE)
        else:
            parent = access.warehouse(self.context, warehouse_id, WarehouseAction.ACCEPT_MOVED_NAMESPACE)
        return Response(MovedShape.of(namespace_moves.move(granted, destination, parent, force=body.get("force"))))


_NAMESPACE = "warehouse/<str:warehouse_id>/namespace/<str:namespace_id>"

routes = [
    path(f"{_NAMESPACE}/protection", NamespaceProtection.as_view()),
    path(f"{_NAMESPACE}/move", NamespaceMove.as_view()),
]
