"""Changes of a warehouse: name, status, delete profile, format versions, protection, managed-by."""

from datetime import datetime

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import WarehouseAction
from management.api import ManagementView
from management.base_serializers import Body, Shape
from management.warehouses import DeleteProfileField, WarehouseShape, delete_profile
from tenants import access
from tenants.models import Warehouse
from tenants.models.format_policy import FormatVersionPolicy
from tenants.services import warehouse_states


class RenameWarehouseBody(Body):
    new_name = serializers.CharField(trim_whitespace=False)


class DeleteProfileBody(Body):
    delete_profile = DeleteProfileField()


class FormatVersionPolicyBody(Body):
    allowed_format_versions = serializers.ListField(child=serializers.IntegerField())
    default_format_version = serializers.IntegerField(required=False)


class WarehouseProtectionBody(Body):
    protected = serializers.BooleanField()
    reason = serializers.CharField(required=False, trim_whitespace=False, allow_blank=True)


class ManagedByBody(Body):
    managed_by = serializers.CharField()


class WarehouseProtectionShape(Shape):
    also_in_snake_case = frozenset({"updated_at"})

    protected = serializers.BooleanField()
    protected_by = serializers.CharField(required=False)
    protected_at = serializers.DateTimeField(required=False)
    reason = serializers.CharField(required=False)
    updated_at = serializers.DateTimeField(required=False)


class RenameWarehouse(ManagementView):
    @extend_schema(request=RenameWarehouseBody, responses={200: WarehouseShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Rename the warehouse. Clients must use the new name from then on."""
        body = self.body(RenameWarehouseBody)
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.RENAME)
        return Response(WarehouseShape.of(warehouse_states.rename(granted, body.get("new_name"))))


class ActivateWarehouse(ManagementView):
    @extend_schema(request=None, responses={200: WarehouseShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Activate the warehouse. The catalog serves it again."""
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.ACTIVATE)
        return Response(WarehouseShape.of(warehouse_states.set_status(granted, Warehouse.Status.ACTIVE)))


class DeactivateWarehouse(ManagementView):
    @extend_schema(request=None, responses={200: WarehouseShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Deactivate the warehouse.

        The catalog refuses all further requests for it; the management API still serves it.
        """
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.DEACTIVATE)
        return Response(WarehouseShape.of(warehouse_states.set_status(granted, Warehouse.Status.INACTIVE)))


class WarehouseDeleteProfile(ManagementView):
    @extend_schema(request=DeleteProfileBody, responses={200: WarehouseShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Set what happens when objects in the warehouse are dropped.

        Objects that are already dropped are not affected. The profile is `{"type": "hard"}` or `{"type": "soft",
        "expiration-seconds": N}`, from one minute to ten years.
        """
        profile = delete_profile(self.body(DeleteProfileBody).get("delete_profile"))
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.MODIFY_SOFT_DELETION)
        return Response(WarehouseShape.of(warehouse_states.set_delete_profile(granted, profile)))


class WarehouseFormatVersionPolicy(ManagementView):
    @extend_schema(request=FormatVersionPolicyBody, responses={200: WarehouseShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Set which Iceberg format versions tables in the warehouse may have, and the default for new tables."""
        body = self.body(FormatVersionPolicyBody)
        policy = FormatVersionPolicy.parse(body.get("allowed_format_versions"), body.get("default_format_version"))
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.SET_FORMAT_VERSION_POLICY)
        return Response(WarehouseShape.of(warehouse_states.set_format_policy(granted, policy)))


class WarehouseProtection(ManagementView):
    @extend_schema(request=None, responses={200: WarehouseProtectionShape})
    def get(self, _request: Request, warehouse_id: str) -> Response:
        """Read whether the warehouse is protected from deletion, since when, by whom and why."""
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.GET_METADATA)
        return _protection(granted.target)

    @extend_schema(request=WarehouseProtectionBody, responses={200: WarehouseProtectionShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Protect the warehouse from deletion, or remove the protection."""
        body = self.body(WarehouseProtectionBody)
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.SET_PROTECTION)
        changed = warehouse_states.set_protection(granted, protected=body.get("protected"), reason=body.get("reason"))
        return _protection(changed)


class WarehouseManagedBy(ManagementView):
    @extend_schema(request=ManagedByBody, responses={200: WarehouseShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Set who may change the warehouse.

        `instance-admin`: only administrators of the server; `self-managed`: the warehouse's owners too.
        """
        body = self.body(ManagedByBody)
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.GET_METADATA)
        return Response(WarehouseShape.of(warehouse_states.set_managed_by(granted, body.get("managed_by"))))


def _protection(warehouse: Warehouse) -> Response:
    kept = warehouse.protection or {}
    plain = {
        "protected": warehouse.is_protected,
        "protected_by": kept.get("by"),
        "protected_at": datetime.fromisoformat(kept["at"]) if kept else None,
        "reason": kept.get("reason"),
        "updated_at": warehouse.updated_at,
    }
    return Response(WarehouseProtectionShape.of(plain))


routes = [
    path("warehouse/<str:warehouse_id>/rename", RenameWarehouse.as_view()),
    path("warehouse/<str:warehouse_id>/activate", ActivateWarehouse.as_view()),
    path("warehouse/<str:warehouse_id>/deactivate", DeactivateWarehouse.as_view()),
    path("warehouse/<str:warehouse_id>/delete-profile", WarehouseDeleteProfile.as_view()),
    path("warehouse/<str:warehouse_id>/format-version-policy", WarehouseFormatVersionPolicy.as_view()),
    path("warehouse/<str:warehouse_id>/protection", WarehouseProtection.as_view()),
    path("warehouse/<str:warehouse_id>/managed-by", WarehouseManagedBy.as_view()),
]
