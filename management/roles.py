"""Roles of a project: `POST`/`GET /role`, `GET`/`POST`/`DELETE /role/{id}`, its source system, its metadata."""

from uuid import UUID

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ProjectAction, RoleAction
from lakewarden.errors import BadRequest
from management.api import ManagementView
from management.base_serializers import Body, Shape
from management.pagination import PAGE_PARAMETERS, text_filter, token_of
from tenants import access
from tenants.services import roles
from tenants.services.roles import Source, Wanted

_FILTERS = [
    OpenApiParameter("roleIds", UUID, many=True, description="Only roles of these ids; may be repeated."),
    OpenApiParameter("providerIds", str, many=True, description="Only roles of these providers; may be repeated."),
    OpenApiParameter("sourceIds", str, many=True, description="Only roles of these sources; may be repeated."),
    OpenApiParameter("projectId", str, deprecated=True, description="Send `x-project-id` instead."),
    OpenApiParameter("name", str, description="Only roles whose name contains this text, ignoring case."),
]


class RoleMetadataShape(Shape):
    id = serializers.UUIDField()
    ident = serializers.CharField()
    provider_id = serializers.CharField()
    source_id = serializers.CharField()
    name = serializers.CharField()
    project_id = serializers.CharField()


class RoleShape(RoleMetadataShape):
    description = serializers.CharField(allow_null=True, required=False)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True, required=False)


class RoleListShape(Shape):
    roles = RoleShape(many=True)
    next_page_token = serializers.CharField(allow_null=True, required=False)


class RoleText(Body):
    name = serializers.CharField(trim_whitespace=False)
    description = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, max_length=roles.MAX_DESCRIPTION_LENGTH
    )


class RoleBody(RoleText):
    project_id = serializers.CharField(required=False)
    provider_id = serializers.CharField(required=False, trim_whitespace=False)
    source_id = serializers.CharField(required=False, trim_whitespace=False)


class SourceBody(Body):
    provider_id = serializers.CharField(trim_whitespace=False)
    source_id = serializers.CharField(trim_whitespace=False)


class Roles(ManagementView):
    @extend_schema(responses={200: RoleListShape}, parameters=[*_FILTERS, *PAGE_PARAMETERS])
    def get(self, request: Request) -> Response:
        """List the roles of the project, by name."""
        many = request.query_params.getlist
        wanted = Wanted(
            ids=frozenset(_uuid(each) for each in many("roleIds")),
            provider_ids=frozenset(_plain(each, "providerIds") for each in many("providerIds")),
            source_ids=frozenset(_plain(each, "sourceIds") for each in many("sourceIds")),
            name=text_filter(self.call, "name"),
        )
        project_id = self.project_named(self.call.query.get("projectId"), member="projectId")
        granted = access.project(self.context, project_id, ProjectAction.LIST_ROLES)
        found, following = roles.listed(granted, wanted, self.page)
        return Response(RoleListShape.of({"roles": found, "next_page_token": token_of(following)}))

    @extend_schema(request=RoleBody, responses={201: RoleShape})
    def post(self, _request: Request) -> Response:
        """Create a role.

        The caller becomes its owner. With `provider-id` and `source-id` it stands for that group of the identity
        provider.
        """
        body = self.body(RoleBody)
        source = Source.given(body.get("provider_id"), body.get("source_id"))
        project_id = self.project_named(body.get("project_id"), member="project-id")
        granted = access.project(self.context, project_id, ProjectAction.CREATE_ROLE)
        role = roles.create(granted, body.get("name"), description=body.get("description"), source=source)
        return Response(RoleShape.of(role), status=201)


class OneRole(ManagementView):
    @extend_schema(responses={200: RoleShape})
    def get(self, _request: Request, role_id: str) -> Response:
        """Read a role."""
        granted = access.role(self.context, role_id, RoleAction.READ, project_id=self.context.project_id)
        return Response(RoleShape.of(granted.target))

    @extend_schema(request=RoleText, responses={200: RoleShape})
    def post(self, _request: Request, role_id: str) -> Response:
        """Replace the name and description of a role. Without `description`, the description is removed."""
        body = self.body(RoleText)
        granted = access.role(self.context, role_id, RoleAction.UPDATE, project_id=self.context.project_id)
        role = roles.update(granted, body.get("name"), description=body.get("description"))
        return Response(RoleShape.of(role))

    @extend_schema(responses={204: None})
    def delete(self, _request: Request, role_id: str) -> Response:
        """Delete a role, with its grants and memberships."""
        roles.delete(access.role(self.context, role_id, RoleAction.DELETE, project_id=self.context.project_id))
        return Response(status=204)


class RoleSourceSystem(ManagementView):
    @extend_schema(request=SourceBody, responses={200: RoleShape})
    def put(self, _request: Request, role_id: str) -> Response:
        """Bind the role to another group of an identity provider."""
        body = self.body(SourceBody)
        source = Source.given(body.get("provider_id"), body.get("source_id"))
        granted = access.role(
            self.context, role_id, RoleAction.UPDATE_SOURCE_SYSTEM, project_id=self.context.project_id
        )
        return Response(RoleShape.of(roles.rebind(granted, source or Source.own())))


class RoleMetadata(ManagementView):
    @extend_schema(responses={200: RoleMetadataShape})
    def get(self, _request: Request, role_id: str) -> Response:
        """Read the name, project and source of a role in any project. The caller must be allowed to see the role."""
        granted = access.role(self.context, role_id, RoleAction.READ_METADATA, project_id=None)
        return Response(RoleMetadataShape.of(granted.target))


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BadRequest(f"Invalid query parameter roleIds={text[:80]!r}: the id of a role is expected") from None


def _plain(text: str, parameter: str) -> str:
    if not text.isprintable():
        raise BadRequest(f"Invalid query parameter {parameter}={text[:80]!r}: it contains a control character")
    return text


routes = [
    path("role", Roles.as_view()),
    path("role/<str:role_id>", OneRole.as_view()),
    path("role/<str:role_id>/source-system", RoleSourceSystem.as_view()),
    path("role/<str:role_id>/metadata", RoleMetadata.as_view()),
]
