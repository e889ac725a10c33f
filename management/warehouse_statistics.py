"""The number of tables, views and generic tables in a warehouse by hour: `GET /warehouse/{id}/statistics`."""

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.services import warehouse_statistics
from lakewarden.authz.actions import WarehouseAction
from lakewarden.paging import Page, next_token
from management.api import ManagementView
from management.base_serializers import Shape
from tenants import access

_NAMES = {"page_token": "pageToken", "page_size": "pageSize"}


class HourShape(Shape):
    timestamp = serializers.DateTimeField(help_text="The end of the hour.")
    updated_at = serializers.DateTimeField()
    number_of_tables = serializers.IntegerField()
    number_of_views = serializers.IntegerField()
    number_of_generic_tables = serializers.IntegerField()


class WarehouseStatisticsShape(Shape):
    warehouse_ident = serializers.UUIDField()
    stats = HourShape(many=True)
    next_page_token = serializers.CharField(required=False)


class WarehouseStatistics(ManagementView):
    @extend_schema(
        request=None,
        responses={200: WarehouseStatisticsShape},
        parameters=[
            OpenApiParameter(
                "page_token", str, description="The `next-page-token` of the previous page; `pageToken` works too."
            ),
            OpenApiParameter(
                "page_size", int, description="The maximum number of hours, 100 by default; `pageSize` works too."
            ),
        ],
    )
    def get(self, _request: Request, warehouse_id: str) -> Response:
        """Read how many tables, views and generic tables the warehouse had in each hour, newest first.

        The number of the current hour is at most one minute old.
        """
        page = Page.parse({_NAMES.get(name, name): value for name, value in self.call.query.items()})
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.GET_ENDPOINT_STATISTICS)
        hours, last = warehouse_statistics.newest_first(granted, page)
        body = {"warehouse-ident": str(granted.target.id), "stats": [HourShape.of(hour) for hour in hours]}
        return Response(body | ({} if last is None else {"next-page-token": next_token(last)}))


routes = [
    path("warehouse/<str:warehouse_id>/statistics", WarehouseStatistics.as_view()),
]
