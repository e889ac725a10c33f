"""Tables, views and generic tables beyond the catalog's own routes: their protection."""

from typing import cast

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from catalog import access
from catalog.services import protection
from catalog.tabular_types import TABULAR_TYPES, TabularType
from management.api import ManagementView
from management.namespaces import ProtectionBody, ProtectionShape
from management.tabular_paths import path_of


class Protection(ManagementView):
    kind = cast("TabularType", None)

    @extend_schema(responses={200: ProtectionShape})
    def get(self, _request: Request, warehouse_id: str, **identifier: str) -> Response:
        """Read whether the object is protected from deletion."""
        (tabular_id,) = identifier.values()
        action = self.kind.actions.GET_METADATA
        granted = access.tabular_in(self.context, warehouse_id, self.kind, tabular_id, action)
        return Response(ProtectionShape.of(protection.of(granted)))

    @extend_schema(request=ProtectionBody, responses={200: ProtectionShape})
    def post(self, _request: Request, warehouse_id: str, **identifier: str) -> Response:
        """Protect the object from being dropped, unregistered or replaced, or remove the protection."""
        (tabular_id,) = identifier.values()
        body, action = self.body(ProtectionBody), self.kind.actions.SET_PROTECTION
        granted = access.tabular_in(self.context, warehouse_id, self.kind, tabular_id, action)
        now = protection.set_on_tabular(granted, protected=body.get("protected"), reason=body.get("reason"))
        return Response(ProtectionShape.of(now))


routes = [path(f"{path_of(kind)}/protection", Protection.as_view(kind=kind)) for kind in TABULAR_TYPES.values()]
