"""What maintenance did to the tables of a warehouse: `GET /warehouse/{id}/maintenance`, a route of our own."""

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from ingest.services import maintenance_runs
from lakewarden.authz.actions import WarehouseAction
from lakewarden.paging import Page, next_token
from management.api import ManagementView
from management.base_serializers import Shape
from tenants import access


class MaintenanceRunShape(Shape):
    id = serializers.UUIDField(help_text="Id of the run.")
    table_name = serializers.CharField(help_text="Levels and name of the table, with dots, as it was then.")
    operation = serializers.CharField(
        help_text="`rewrite-data-files`, `rewrite-position-delete-files`, `rewrite-manifests`, `expire-snapshots` or "
        "`remove-orphan-files`."
    )
    state = serializers.ChoiceField(choices=["done", "failed"], help_text="Whether the operation succeeded.")
    began_at = serializers.DateTimeField(help_text="When it began.")
    ended_at = serializers.DateTimeField(help_text="When it ended.")
    files_before = serializers.IntegerField(
        required=False, help_text="Number of the files that the operation is about, before it."
    )
    files_after = serializers.IntegerField(required=False, help_text="Their number after it.")
    bytes_before = serializers.IntegerField(
        required=False, help_text="Their bytes before it; left out for orphan files, whose sizes are not known."
    )
    bytes_after = serializers.IntegerField(required=False, help_text="Their bytes after it.")
    reason = serializers.CharField(help_text="Why the operation was worth doing.")
    error = serializers.CharField(help_text="Why it failed; empty if it did not.")


class MaintenanceHistoryShape(Shape):
    runs = MaintenanceRunShape(many=True, help_text="Newest first.")
    next_page_token = serializers.CharField(required=False, help_text="Given if there are more runs.")


class WarehouseMaintenance(ManagementView):
    @extend_schema(
        request=None,
        responses={200: MaintenanceHistoryShape},
        parameters=[
            OpenApiParameter("table", str, description="Only this table, as `namespace.table`."),
            OpenApiParameter("pageToken", str, description="The `next-page-token` of the previous page."),
            OpenApiParameter("pageSize", int, description="The maximum number of runs, 100 by default."),
        ],
    )
    def get(self, _request: Request, warehouse_id: str) -> Response:
        """Read what maintenance did to the warehouse's tables, with files and bytes before and after, newest first."""
        page = Page.parse({"pageSize": "100", **self.call.query})
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.GET_ALL_TASKS)
        runs, last = maintenance_runs.newest_first(granted, page, table=self.call.query.get("table"))
        body = {"runs": [MaintenanceRunShape.of(run) for run in runs]}
        return Response(body | ({} if last is None else {"next-page-token": next_token(last)}))


routes = [
    path("warehouse/<str:warehouse_id>/maintenance", WarehouseMaintenance.as_view()),
]
