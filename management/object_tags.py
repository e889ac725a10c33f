"""The tags of warehouses, namespaces, what lies in them, and columns: `…/tags`, `…/tags/{name}`, `…/column-tags`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from catalog import access as catalog_access
from catalog.models import Tabular
from catalog.services.tags import changes, listing, targets
from catalog.services.tags.listing import SetTag
from catalog.services.tags.targets import Taggable, Target
from catalog.tabular_types import TABLE, TABULAR_TYPES, TabularType
from lakewarden.authz.actions import NamespaceAction, TableAction, TabularAction, TagAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.context import RequestContext
from management.api import ManagementView
from management.base_serializers import Body, Shape
from management.tabular_paths import id_name, path_of
from management.tags import SOURCE
from tenants import access
from tenants.models import TagDefinition
from tenants.models.tag_definition import Scope

Parts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of object: `read` returns one whose tags the caller may read, `manage` one whose tags they may change."""

    type: Scope
    path: str
    read: Callable[[RequestContext, Parts], Taggable]
    manage: Callable[[RequestContext, Parts], Taggable]


class SetTagBody(Body):
    value = serializers.CharField(required=False, trim_whitespace=False, allow_blank=True)


class AppliedTagShape(Shape):
    tag_definition_id = serializers.UUIDField(source="definition.id")
    name = serializers.CharField(source="definition.name")
    value = serializers.CharField(required=False)
    applied_at = serializers.DateTimeField()


class InheritedFromShape(Shape):
    type = serializers.CharField()
    warehouse_id = serializers.UUIDField()
    namespace_id = serializers.UUIDField(required=False)


class TagShape(Shape):
    tag_definition_id = serializers.UUIDField()
    name = serializers.CharField()
    value = serializers.CharField(required=False)
    source = serializers.CharField()  # type: ignore[assignment]
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(required=False)
    inherited_from = InheritedFromShape(required=False)


class TagsShape(Shape):
    tags = TagShape(many=True)


class ColumnTagsShape(Shape):
    field_id = serializers.IntegerField()
    column_name = serializers.CharField()
    tags = TagShape(many=True)


class AllColumnTagsShape(Shape):
    columns = ColumnTagsShape(many=True)


_EFFECTIVE = OpenApiParameter(
    "effective",
    bool,
    description="`true` also lists the tags of the namespaces around the object and of its warehouse; the nearest "
    "counts. Columns do not inherit.",
)


class ObjectTags(ManagementView):
    kind = cast("Kind", None)

    @extend_schema(responses={200: TagsShape}, parameters=[_EFFECTIVE])
    def get(self, _request: Request, **parts: str) -> Response:
        """List the tags of the object, by name."""
        effective = self.call.flag("effective") or False
        target = self.target(self.kind.read(self.context, parts), parts)
        tags = listing.of(target, effective=effective)
        return Response(TagsShape.of({"tags": [_tag(each, target) for each in tags]}))

    def target(self, granted: Taggable, _parts: Parts) -> Target:
        return targets.of(granted)


class ObjectTag(ManagementView):
    kind = cast("Kind", None)

    @extend_schema(request=SetTagBody, responses={200: AppliedTagShape})
    def put(self, _request: Request, **parts: str) -> Response:
        """Set the tag on the object, or change its value.

        It needs `manage_tags` on the object and `apply` on the tag definition.
        """
        value = self.body(SetTagBody).get("value")
        granted, tag = self.both(parts, TagAction.APPLY)
        applied = changes.apply(granted, tag, self.target(granted, parts), value=value)
        return Response(AppliedTagShape.of(applied))

    @extend_schema(responses={204: None})
    def delete(self, _request: Request, **parts: str) -> Response:
        """Remove the tag from the object. Nothing happens if it is not set there."""
        granted, tag = self.both(parts, TagAction.REMOVE)
        changes.remove(granted, tag, self.left_target(granted, parts))
        return Response(status=204)

    def both(self, parts: Parts, action: TagAction) -> tuple[Taggable, Granted[TagDefinition]]:
        """The object and the tag definition, after both decisions."""
        granted = self.kind.manage(self.context, parts)
        tag = access.tag_definition_named(self.context, parts["tag_name"], action, project_id=granted.chain[1].id)
        return granted, tag

    def target(self, granted: Taggable, _parts: Parts) -> Target:
        return targets.of(granted)

    def left_target(self, granted: Taggable, parts: Parts) -> Target:
        return self.target(granted, parts)


class ColumnTagsOfTable(ManagementView):
    @extend_schema(responses={200: AllColumnTagsShape})
    def get(self, _request: Request, **parts: str) -> Response:
        """List the tags of all columns of the table's current schema, by field id; columns without tags are omitted."""
        columns = listing.of_columns(_tabular(TABLE, TableAction.GET_METADATA)(self.context, parts))
        plain = [
            {"field_id": each.field_id, "column_name": each.column_name, "tags": [_tag(tag) for tag in each.tags]}
            for each in columns
        ]
        return Response(AllColumnTagsShape.of({"columns": plain}))


class ColumnTags(ObjectTags):
    """A nested column is named with dots, such as `address.zip`."""

    def target(self, granted: Taggable, parts: Parts) -> Target:
        return targets.column(cast("Granted[Tabular]", granted), parts["column_name"])


class ColumnTag(ObjectTag):
    """A nested column is named with dots, such as `address.zip`."""

    def target(self, granted: Taggable, parts: Parts) -> Target:
        return targets.column(cast("Granted[Tabular]", granted), parts["column_name"])

    def left_target(self, granted: Taggable, parts: Parts) -> Target:
        return targets.left_column(cast("Granted[Tabular]", granted), parts["column_name"])


def _tag(found: SetTag, asked: Target | None = None) -> dict[str, Any]:
    is_own = asked is None or (asked.scope == found.scope and asked.namespace_id == found.namespace_id)
    above = {"type": found.scope, "warehouse_id": found.warehouse_id, "namespace_id": found.namespace_id}
    return {
        "tag_definition_id": found.definition_id,
        "name": found.name,
        "value": found.value,
        "source": SOURCE,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
        "inherited_from": None if is_own else above,
    }


def _warehouse(action: WarehouseAction) -> Callable[[RequestContext, Parts], Taggable]:
    return lambda context, parts: access.warehouse(context, parts["warehouse_id"], action)


def _namespace(action: NamespaceAction) -> Callable[[RequestContext, Parts], Taggable]:
    return lambda context, parts: catalog_access.namespace_in(
        context, parts["warehouse_id"], parts["namespace_id"], action
    )


def _tabular(kind: TabularType, action: TabularAction) -> Callable[[RequestContext, Parts], Granted[Tabular]]:
    name = id_name(kind)
    return lambda context, parts: catalog_access.tabular_in(context, parts["warehouse_id"], kind, parts[name], action)


def _of_tabulars(kind: TabularType) -> Kind:
    read, manage = kind.actions.GET_METADATA, kind.actions.MANAGE_TAGS
    return Kind(Scope(kind.kind.value), path_of(kind), _tabular(kind, read), _tabular(kind, manage))


_WAREHOUSE = "warehouse/<str:warehouse_id>"
_KINDS = (
    Kind(
        Scope.WAREHOUSE, _WAREHOUSE, _warehouse(WarehouseAction.GET_METADATA), _warehouse(WarehouseAction.MANAGE_TAGS)
    ),
    Kind(
        Scope.NAMESPACE,
        f"{_WAREHOUSE}/namespace/<str:namespace_id>",
        _namespace(NamespaceAction.GET_METADATA),
        _namespace(NamespaceAction.MANAGE_TAGS),
    ),
    *map(_of_tabulars, TABULAR_TYPES.values()),
)
_TABLE = _of_tabulars(TABLE)
_COLUMN = replace(_TABLE, type=Scope.COLUMN, path=f"{_TABLE.path}/column/<str:column_name>")

routes = [
    *(
        route
        for kind in _KINDS
        for route in (
            path(f"{kind.path}/tags", ObjectTags.as_view(kind=kind)),
            path(f"{kind.path}/tags/<str:tag_name>", ObjectTag.as_view(kind=kind)),
        )
    ),
    path(f"{_TABLE.path}/column-tags", ColumnTagsOfTable.as_view()),
    path(f"{_COLUMN.path}/tags", ColumnTags.as_view(kind=_COLUMN)),
    path(f"{_COLUMN.path}/tags/<str:tag_name>", ColumnTag.as_view(kind=_COLUMN)),
]
