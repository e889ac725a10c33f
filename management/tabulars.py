"""Tables and views beyond the catalog's own routes: their protection."""

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from catalog import access
from catalog.services import protection
from lakewarden.authz.actions import TableAction, ViewAction
from management.api import ManagementView
from management.namespaces import ProtectionBody, ProtectionShape


class TableProtection(ManagementView):
    @extend_schema(responses={200: ProtectionShape})
    def get(self, _request: Request, warehouse_id: str, table_id: str) -> Response:
        """Read whether the table is protected from deletion."""
        granted = access.table_in(self.context, warehouse_id, table_id, TableAction.GET_METADATA)
        return Response(ProtectionShape.of(protection.of(granted)))

    @extend_schema(request=ProtectionBody, responses={200: ProtectionShape})
    def post(self, _request: Request, warehouse_id: str, table_id: str) -> Response:
        """Protect the table from being dropped, unregistered or replaced, or remove the protection."""
        body = self.body(ProtectionBody)
        granted = access.table_in(self.context, warehouse_id, table_id, TableAction.SET_PROTECTION)
        now = protection.set_on_tabular(granted, protected=body.get("protected"), reason=body.get("reason"))
        return Response(ProtectionShape.of(now))


class ViewProtection(ManagementView):
    @extend_schema(responses={200: ProtectionShape})
    def get(self, _request: Request, warehouse_id: str, view_id: str) -> Response:
        """Read whether the view is protected from deletion."""
        granted = access.view_in(self.context, warehouse_id, view_id, ViewAction.GET_METADATA)
        return Response(ProtectionShape.of(protection.of(granted)))

    @extend_schema(request=ProtectionBody, responses={200: ProtectionShape})
    def post(self, _request: Request, warehouse_id: str, view_id: str) -> Response:
        """Protect the view from being dropped, or remove the protection."""
        body = self.body(ProtectionBody)
        granted = access.view_in(self.context, warehouse_id, view_id, ViewAction.SET_PROTECTION)
        now = protection.set_on_tabular(granted, protected=body.get("protected"), reason=body.get("reason"))
        return Response(ProtectionShape.of(now))


routes = [
    path("warehouse/<str:warehouse_id>/table/<str:table_id>/protection", TableProtection.as_view()),
    path("warehouse/<str:warehouse_id>/view/<str:view_id>/protection", ViewProtection.as_view()),
]
