"""Finds tables and views by a part of their name: `POST /warehouse/{id}/search-tabular`."""

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.services import search
from lakewarden.authz.actions import WarehouseAction
from management.api import ManagementView
from management.base_serializers import Body, Shape
from tenants import access


class SearchTabularBody(Body):
    search = serializers.CharField(trim_whitespace=False, allow_blank=True)


class TabularIdShape(Shape):
    type = serializers.CharField(source="kind")
    id = serializers.UUIDField(source="uuid")


class FoundTabularShape(Shape):
    namespace_name = serializers.ListField(child=serializers.CharField(), source="tabular.namespace.path")
    tabular_name = serializers.CharField(source="tabular.name")
    tabular_id = TabularIdShape(source="tabular")
    tabular_type = serializers.CharField(source="tabular.kind")
    distance = serializers.FloatField()


class FoundTabularsShape(Shape):
    tabulars = FoundTabularShape(many=True)


class SearchTabular(ManagementView):
    @extend_schema(request=SearchTabularBody, responses={200: FoundTabularsShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Find tables and views by name, the ten best matches that the caller may see.

        The id of a table or view finds it; the id of a namespace finds what it contains.
        """
        text = self.body(SearchTabularBody).get("search")
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.USE)
        return Response(FoundTabularsShape.of({"tabulars": search.search(granted, text)}))


routes = [path("warehouse/<str:warehouse_id>/search-tabular", SearchTabular.as_view())]
