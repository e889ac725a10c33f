"""Warehouses: create, list, read and delete, and the dry run of a creation."""

from collections.abc import Mapping
from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.services.deletion import drop_warehouse
from ingest.services import unflushed
from lakewarden.authz.actions import ProjectAction, WarehouseAction
from lakewarden.errors import BadRequest
from lakewarden.paging import Page, next_token
from management import storage_shapes
from management.api import ManagementView
from management.base_serializers import Body, Shape
from management.warehouse_reports import ReportShape, report_body
from tenants import access
from tenants.models import Warehouse
from tenants.models.delete_profile import DeleteProfile
from tenants.services import warehouse_validation, warehouses
from tenants.services.warehouse_validation import StorageSpec, WarehouseSpec

HARD: dict[str, Any] = {"type": "hard"}
PAGING = [
    OpenApiParameter("pageToken", str, description="The `next-page-token` of the previous page."),
    OpenApiParameter("pageSize", int, description="The maximum number of entries; all by default."),
]


@extend_schema_field(
    {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string", "enum": ["hard", "soft"]}, "expiration-seconds": {"type": "integer"}},
    }
)
class DeleteProfileField(serializers.DictField):
    """`{"type": "hard"}` or `{"type": "soft", "expiration-seconds": …}`."""


@extend_schema_field(storage_shapes.PROFILE)
class ProfileField(serializers.DictField):
    """A storage profile, which `parse_profile` parses."""


@extend_schema_field(storage_shapes.CREDENTIAL)
class CredentialField(serializers.DictField):
    """A storage credential, which its profile parses."""


class CredentialTypeShape(Shape):
    type = serializers.CharField()
    credential_type = serializers.CharField()


class WarehouseShape(Shape):
    id = serializers.UUIDField()
    warehouse_id = serializers.UUIDField(source="id")
    name = serializers.CharField()
    project_id = serializers.CharField()
    status = serializers.CharField()
    protected = serializers.BooleanField(source="is_protected")
    storage_profile = ProfileField()
    storage_credential_type = CredentialTypeShape(
        source="credential_type", required=False, help_text="Without the credential itself, which is never returned."
    )
    delete_profile = DeleteProfileField()
    allowed_format_versions = serializers.ListField(child=serializers.IntegerField())
    default_format_version = serializers.IntegerField(required=False)
    managed_by = serializers.CharField()
    updated_at = serializers.DateTimeField(required=False)


class WarehouseListShape(Shape):
    warehouses = WarehouseShape(many=True)
    next_page_token = serializers.CharField(required=False)


class WarehouseBody(Body):
    warehouse_name = serializers.CharField(trim_whitespace=False)
    storage_profile = ProfileField()
    storage_credential = CredentialField(required=False)
    delete_profile = DeleteProfileField(default=HARD)
    allowed_format_versions = serializers.ListField(child=serializers.IntegerField(), required=False)
    default_format_version = serializers.IntegerField(required=False)
    managed_by = serializers.CharField(required=False)
    project_id = serializers.CharField(required=False)

    @property
    def spec(self) -> WarehouseSpec:
        return WarehouseSpec(
            name=self.get("warehouse_name"),
            storage=StorageSpec(self.get("storage_profile"), self.get("storage_credential")),
            allowed_format_versions=self.get("allowed_format_versions"),
            default_format_version=self.get("default_format_version"),
            managed_by=self.get("managed_by"),
        )


class WarehouseCreation(ManagementView):
    """The base of creation and its dry run."""

    def _project_of(self, body: WarehouseBody) -> str:
        return self.project_named(body.get("project_id"), member="project-id")


class Warehouses(WarehouseCreation):
    @extend_schema(
        request=None,
        responses={200: WarehouseListShape},
        parameters=[
            OpenApiParameter("warehouseStatus", str, many=True, description="`active` (the default) or `inactive`."),
            OpenApiParameter("projectId", str, deprecated=True, description="Send `x-project-id` instead."),
            *PAGING,
        ],
    )
    def get(self, request: Request) -> Response:
        """List the warehouses of the project that the caller may see, by name.

        All are returned, unless a page is requested.
        """
        project_id = self.project_named(self.call.query.get("projectId"), member="projectId")
        page = Page.parse(self.call.query)
        granted = access.project(self.context, project_id, ProjectAction.LIST_WAREHOUSES)
        wanted = _statuses(request.query_params.getlist("warehouseStatus"))
        found, last = warehouses.visible(granted, page, statuses=wanted)
        more = {} if last is None else {"next-page-token": next_token(last)}
        return Response({"warehouses": [WarehouseShape.of(warehouse) for warehouse in found], **more})

    @extend_schema(request=WarehouseBody, responses={201: WarehouseShape})
    def post(self, _request: Request) -> Response:
        """Create a warehouse, after testing access to its storage.

        The response is the whole warehouse. A storage profile or credential that this server cannot use is refused with
        400.
        """
        body = self.body(WarehouseBody)
        profile = delete_profile(body.get("delete_profile"))
        granted = access.project(self.context, self._project_of(body), ProjectAction.CREATE_WAREHOUSE)
        warehouse = warehouses.create_validated(granted, body.spec, delete_profile=profile)
        return Response(WarehouseShape.of(warehouse), status=201)


class WarehouseCreationValidation(WarehouseCreation):
    @extend_schema(request=WarehouseBody, responses={200: ReportShape})
    def post(self, _request: Request) -> Response:
        """Run all checks of `POST /warehouse` and return their results, without creating anything.

        The response is 200 even if a check failed.
        """
        body = self.body(WarehouseBody)
        delete_profile(body.get("delete_profile"))
        granted = access.project(self.context, self._project_of(body), ProjectAction.CREATE_WAREHOUSE)
        return Response(report_body(warehouse_validation.of_creation(granted, body.spec, dry=True).report))


class OneWarehouse(ManagementView):
    @extend_schema(request=None, responses={200: WarehouseShape})
    def get(self, _request: Request, warehouse_id: str) -> Response:
        """Read a warehouse."""
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.GET_METADATA)
        return Response(WarehouseShape.of(granted.target))

    @extend_schema(
        request=None,
        responses={204: None},
        parameters=[OpenApiParameter("force", bool, description="Delete the warehouse even if it is protected.")],
    )
    def delete(self, _request: Request, warehouse_id: str) -> Response:
        """Delete an empty warehouse; its files stay. A protected warehouse, and one with change data that is not in
        tables yet, is only deleted with `force`.
        """
        force = self.call.flag("force") or False
        action = WarehouseAction.FORCE_DROP if force else WarehouseAction.DELETE
        granted = access.warehouse(self.context, warehouse_id, action)
        drop_warehouse.delete(granted, force=force, ensure_empty=unflushed.ensure_none)
        return Response(status=204)


def delete_profile(value: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the delete profile in a body; raises BadRequest if it is not valid."""
    return DeleteProfile.parse(value).dump()


def _statuses(names: list[str]) -> set[str]:
    """Parse the statuses to list; without any, only active warehouses are listed."""
    known = set(Warehouse.Status.values)
    if unknown := set(names) - known:
        raise BadRequest(
            f"Invalid query parameter warehouseStatus={min(unknown)[:80]!r}: "
            f"one of {', '.join(sorted(known))} is expected"
        )
    return set(names) or {Warehouse.Status.ACTIVE.value}


routes = [
    path("warehouse", Warehouses.as_view()),
    path("warehouse-creation-validation", WarehouseCreationValidation.as_view()),
    path("warehouse/<str:warehouse_id>", OneWarehouse.as_view()),
]
