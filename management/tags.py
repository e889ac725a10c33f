"""Tag definitions of a project: `/tag-definition`, and where a tag is set: `/tag-definition/{id}/attachments`."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import path
from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.services.tags import changes, listing
from catalog.services.tags.listing import Attachment
from lakewarden.authz.actions import ProjectAction, TagAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import BadRequest
from management.api import ManagementView
from management.base_serializers import Body, Shape
from management.pagination import PAGE_PARAMETERS, text_filter, token_of
from tenants import access
from tenants.models import TagDefinition
from tenants.models.tag_definition import Scope, ValueKind
from tenants.services import tag_definitions
from tenants.services.tag_definitions import Wanted


def _text() -> serializers.CharField:
    return serializers.CharField(trim_whitespace=False, allow_blank=True)


class TagDefinitionShape(Shape):
    id = serializers.UUIDField()
    name = serializers.CharField()
    description = serializers.CharField(required=False)
    scope = serializers.ListField(child=serializers.ChoiceField(Scope.choices))
    value_kind = serializers.ChoiceField(ValueKind.choices)
    allowed_values = serializers.ListField(child=serializers.CharField(), required=False)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(required=False)


class ListedTagDefinitionShape(TagDefinitionShape):
    """Without the allowed values, which may be many."""

    allowed_values = None  # type: ignore[assignment]


class TagDefinitionsShape(Shape):
    tag_definitions = ListedTagDefinitionShape(many=True)
    next_page_token = serializers.CharField(required=False)


class _Described(Body):
    name = serializers.CharField(trim_whitespace=False)
    description = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, max_length=tag_definitions.MAX_DESCRIPTION_LENGTH
    )
    scope = serializers.ListField(child=serializers.ChoiceField(Scope.choices), allow_empty=False)

    def wanted(self) -> Wanted:
        return Wanted(self.get("name"), self.get("scope"), self.get("description"))


class TagDefinitionBody(_Described):
    value_kind = serializers.ChoiceField(ValueKind.choices)
    allowed_values = serializers.ListField(child=_text(), required=False)


class TagDefinitionUpdateBody(_Described):
    add_allowed_values = serializers.ListField(child=_text(), default=list)


class TagDefinitions(ManagementView):
    @extend_schema(
        responses={200: TagDefinitionsShape},
        parameters=[
            OpenApiParameter("name", str, description="Only the definition with this name, ignoring case."),
            *PAGE_PARAMETERS,
        ],
    )
    def get(self, _request: Request) -> Response:
        """List the tag definitions of the project, by name."""
        granted = access.project(self.context, self.project_id, ProjectAction.LIST_TAGS)
        name = text_filter(self.call, "name")
        found, last = (
            tag_definitions.listed(granted, self.page)
            if name is None
            else (
                tag_definitions.named(granted, name),
                None,
            )
        )
        return Response(TagDefinitionsShape.of({"tag_definitions": found, "next_page_token": token_of(last)}))

    @extend_schema(request=TagDefinitionBody, responses={201: TagDefinitionShape})
    def post(self, _request: Request) -> Response:
        """Create a tag definition in the project; the caller becomes its owner.

        Dots in the name make a hierarchy of names. `scope` are the types of objects on which the tag can be set.
        """
        body = self.body(TagDefinitionBody)
        granted = access.project(self.context, self.project_id, ProjectAction.CREATE_TAG)
        definition = tag_definitions.create(
            granted, body.wanted(), value_kind=body.get("value_kind"), allowed_values=body.get("allowed_values")
        )
        return Response(TagDefinitionShape.of(definition), status=201)


class TagDefinitionView(ManagementView):
    """The base of all views of one definition."""

    def definition(self, identifier: str, action: TagAction) -> Granted[TagDefinition]:
        return access.tag_definition(self.context, identifier, action)


class OneTagDefinition(TagDefinitionView):
    @extend_schema(responses={200: TagDefinitionShape})
    def get(self, _request: Request, tag_definition_id: str) -> Response:
        """Read a tag definition with its allowed values."""
        return Response(TagDefinitionShape.of(self.definition(tag_definition_id, TagAction.READ).target))

    @extend_schema(request=TagDefinitionUpdateBody, responses={200: TagDefinitionShape})
    def post(self, _request: Request, tag_definition_id: str) -> Response:
        """Replace name, description and scope, and add allowed values.

        The new scope must contain the old one. Without `description`, the description is removed. The kind of value
        cannot be changed, and allowed values cannot be removed.
        """
        body = self.body(TagDefinitionUpdateBody)
        granted = self.definition(tag_definition_id, TagAction.UPDATE)
        added: list[str] = body.get("add_allowed_values")
        return Response(TagDefinitionShape.of(tag_definitions.update(granted, body.wanted(), add_allowed_values=added)))

    @extend_schema(responses={204: None})
    def delete(self, _request: Request, tag_definition_id: str) -> Response:
        """Delete a tag definition. It is refused (409) while an object has the tag."""
        changes.delete_definition(self.definition(tag_definition_id, TagAction.DELETE))
        return Response(status=204)


class TargetShape(Shape):
    type = serializers.ChoiceField(Scope.choices)
    warehouse_id = serializers.UUIDField()
    namespace_id = serializers.UUIDField(required=False)
    table_id = serializers.UUIDField(required=False)
    view_id = serializers.UUIDField(required=False)
    generic_table_id = serializers.UUIDField(required=False)
    field_id = serializers.IntegerField(required=False)


class AttachmentShape(Shape):
    target = TargetShape()
    value = serializers.CharField(required=False)
    source = serializers.CharField()  # type: ignore[assignment]
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(required=False)


class AttachmentsShape(Shape):
    attachments = AttachmentShape(many=True)
    next_page_token = serializers.CharField(required=False)


_FILTERS = [
    OpenApiParameter("value", str, description="Only tags with exactly this value."),
    OpenApiParameter("targetType", str, enum=[each.value for each in Scope], description="Only this type of object."),
    OpenApiParameter("createdAfter", datetime, description="Only tags that were set at this time or later."),
    OpenApiParameter("createdBefore", datetime, description="Only tags that were set at this time or earlier."),
    OpenApiParameter("warehouseId", UUID, description="Only objects in this warehouse."),
]


class TagAttachments(TagDefinitionView):
    @extend_schema(responses={200: AttachmentsShape}, parameters=[*_FILTERS, *PAGE_PARAMETERS])
    def get(self, _request: Request, tag_definition_id: str) -> Response:
        """List the objects on which the tag is set directly, in the order in which it was set.

        Only objects that the caller may see. Columns are named by their field id.
        """
        query = self.call.query
        wanted = listing.Wanted(
            value=_value(query),
            scope=_scope(query.get("targetType")),
            created_after=_time(query, "createdAfter"),
            created_before=_time(query, "createdBefore"),
            warehouse_id=_uuid(query.get("warehouseId")),
        )
        page = self.page
        granted = self.definition(tag_definition_id, TagAction.READ_ATTACHMENTS)
        found, last = listing.attachments(granted, wanted, page)
        body = {"attachments": [_attachment(each) for each in found], "next_page_token": token_of(last)}
        return Response(AttachmentsShape.of(body))


def _attachment(found: Attachment) -> dict[str, Any]:
    target: dict[str, Any] = {
        "type": found.scope,
        "warehouse_id": found.warehouse_id,
        "namespace_id": found.namespace_id,
        "field_id": found.field_id,
    }
    if found.tabular_id is not None:
        kind = Scope.TABLE.value if found.scope == Scope.COLUMN else found.scope
        target[f"{kind.replace('-', '_')}_id"] = found.tabular_id
    return {
        "target": target,
        "value": found.value,
        "source": SOURCE,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
    }


def _value(query: Any) -> str | None:  # noqa: ANN401 the query's own type
    value: str | None = query.get("value")
    if value and "\x00" in value:
        raise BadRequest(f"Invalid query parameter value={value[:80]!r}: it contains the character U+0000")
    return value


def _scope(text: str | None) -> str | None:
    if text is not None and text not in Scope:
        raise BadRequest(f"Invalid query parameter targetType={text[:80]!r}: one of {', '.join(Scope)} is expected")
    return text


def _time(query: Any, name: str) -> datetime | None:  # noqa: ANN401 the query's own type
    text = query.get(name)
    if text is None:
        return None
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise BadRequest(f"Invalid query parameter {name}={text[:80]!r}: a time with its zone (RFC 3339) is expected")
    return found


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        raise BadRequest(f"Invalid query parameter warehouseId={text[:80]!r}: a UUID is expected") from None  # type: ignore[index]


SOURCE = "manual"

routes = [
    path("tag-definition", TagDefinitions.as_view()),
    path("tag-definition/<str:tag_definition_id>", OneTagDefinition.as_view()),
    path("tag-definition/<str:tag_definition_id>/attachments", TagAttachments.as_view()),
]
