"""Warehouses: `POST /warehouse`, `GET /warehouse`, `GET /warehouse/{id}`."""

from collections.abc import Mapping
from typing import Any

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ProjectAction, WarehouseAction
from lakewarden.errors import BadRequest
from lakewarden.storage.profiles import parse_profile
from management.api import ManagementView
from management.shapes import Body, Shape
from tenants import access
from tenants.models import Warehouse
from tenants.services import warehouses

HARD: dict[str, Any] = {"type": "hard"}


class WarehouseShape(Shape):
    id = serializers.UUIDField()
    warehouse_id = serializers.UUIDField(source="id")
    name = serializers.CharField()
    project_id = serializers.CharField()
    status = serializers.CharField()
    storage_profile = serializers.JSONField()
    delete_profile = serializers.JSONField()
    updated_at = serializers.DateTimeField()


class WarehouseBody(Body):
    not_served = {"allowed-format-versions": None, "default-format-version": None, "managed-by": None}

    warehouse_name = serializers.CharField(trim_whitespace=False)
    storage_profile = serializers.DictField()
    storage_credential = serializers.DictField(required=False)
    delete_profile = serializers.DictField(default=HARD)
    project_id = serializers.CharField(required=False)


class Warehouses(ManagementView):
    def get(self, request: Request) -> Response:
        """The project's warehouses by name; `projectId` is the old way to name the project."""
        project_id = self.context.project_id or self.call.query.get("projectId") or self.project_id
        granted = access.project(self.context, project_id, ProjectAction.LIST_WAREHOUSES)
        wanted = _statuses(request.query_params.getlist("warehouseStatus"))
        found = [warehouse for warehouse in warehouses.in_project(granted) if warehouse.status in wanted]
        return Response({"warehouses": [WarehouseShape.of(warehouse) for warehouse in found]})

    def post(self, _request: Request) -> Response:
        """Prove the storage and create the warehouse; the whole of it is the answer.

        Raises BadRequest for a profile or credential that this server cannot use, and as `warehouses.create` does.
        """
        body = self.body(WarehouseBody)
        profile = parse_profile(body.get("storage_profile"))
        if body.get("storage_credential") is not None:
            raise BadRequest(f"storage-credential: storage of the type {profile.type!r} has none; leave it out")
        delete_profile = _delete_profile(body.get("delete_profile"))
        project_id = self.context.project_id or body.get("project_id") or self.project_id
        granted = access.project(self.context, project_id, ProjectAction.CREATE_WAREHOUSE)
        warehouse = warehouses.create(
            granted, body.get("warehouse_name"), profile=profile, delete_profile=delete_profile
        )
        return Response(WarehouseShape.of(warehouse), status=201)


class OneWarehouse(ManagementView):
    def get(self, _request: Request, warehouse_id: str) -> Response:
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.GET_METADATA)
        return Response(WarehouseShape.of(granted.target))


def _delete_profile(value: Mapping[str, Any]) -> dict[str, Any]:
    if value == HARD:
        return HARD
    if value.get("type") == "soft":
        raise BadRequest('delete-profile: soft deletion is not served by this server yet; use {"type": "hard"}')
    raise BadRequest(f'delete-profile: {dict(value)!r} is not known; use {{"type": "hard"}}')


def _statuses(names: list[str]) -> set[str]:
    """Which states are listed: those asked for, else the active ones."""
    known = set(Warehouse.Status.values)
    if unknown := set(names) - known:
        raise BadRequest(
            f"Invalid query parameter warehouseStatus={min(unknown)!r}: one of {', '.join(sorted(known))} is expected"
        )
    return set(names) or {Warehouse.Status.ACTIVE.value}


routes = [
    path("warehouse", Warehouses.as_view()),
    path("warehouse/<str:warehouse_id>", OneWarehouse.as_view()),
]
