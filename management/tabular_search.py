"""Finds tables and views by a part of their name, or by a tag: `POST /warehouse/{id}/search-tabular`."""

from collections.abc import Mapping
from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.services import search
from catalog.services.tags.finding import Tagged
from lakewarden.authz.actions import TagAction, WarehouseAction
from lakewarden.authz.interface import Granted
from management.api import ManagementView
from management.base_serializers import Body, Shape
from tenants import access
from tenants.models import Warehouse


class TagFilterBody(serializers.Serializer[Any]):
    name = serializers.CharField(trim_whitespace=False)
    value = serializers.CharField(required=False, trim_whitespace=False)


class SearchTabularBody(Body):
    search = serializers.CharField(trim_whitespace=False, allow_blank=True, default="")
    tag = TagFilterBody(required=False)


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

        The id of a table or view finds it; the id of a namespace finds what it contains. `tag` finds only those with
        the tag (and the value, if one is given): set on the table or view, inherited, or set on a column. With it,
        `search` may be omitted.
        """
        body = self.body(SearchTabularBody)
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.USE)
        return Response(
            FoundTabularsShape.of(
                {"tabulars": search.search(granted, body.get("search"), self._tagged(granted, body.get("tag")))}
            )
        )

    def _tagged(self, granted: Granted[Warehouse], wanted: Mapping[str, str] | None) -> Tagged | None:
        if wanted is None:
            return None
        project_id = granted.target.project_id
        tag = access.tag_definition_named(self.context, wanted["name"], TagAction.READ, project_id=project_id)
        return Tagged(tag, wanted.get("value"))


routes = [path("warehouse/<str:warehouse_id>/search-tabular", SearchTabular.as_view())]
