"""Members of roles: `…/role/{id}/members`, transitive members, and the roles that a role is a member of."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import RoleAction
from lakewarden.context import PrincipalId, RequestContext, role_principal
from lakewarden.errors import BadRequest, NoSuchRoute
from management.api import ManagementView
from management.base_serializers import Body, Shape
from management.pagination import PAGE_PARAMETERS, token_of
from management.roles import RoleListShape
from tenants import access
from tenants.services import role_members, users

_KINDS = ("user", "role")
_KIND = OpenApiParameter("type", str, enum=_KINDS, description="Only users, or only roles.")


@extend_schema_field(
    {
        "oneOf": [
            {
                "type": "object",
                "required": ["type", "id"],
                "properties": {"type": {"type": "string", "enum": list(_KINDS)}, "id": {"type": "string"}},
            },
            {"type": "object", "required": ["user"], "properties": {"user": {"type": "string"}}},
            {"type": "object", "required": ["role"], "properties": {"role": {"type": "string", "format": "uuid"}}},
        ]
    }
)
class MemberField(serializers.DictField):
    """`{"type": "user"|"role", "id": …}`, or the tagged forms `{"user": …}` and `{"role": …}`."""


class MembersBody(Body):
    members = serializers.ListField(child=MemberField(), max_length=role_members.MAX_BATCH)


class MemberRefShape(Shape):
    type = serializers.ChoiceField(choices=_KINDS)
    id = serializers.CharField()


class MemberRefsShape(Shape):
    members = MemberRefShape(many=True)


class MemberShape(MemberRefShape):
    name = serializers.CharField(allow_null=True, required=False)
    email = serializers.CharField(allow_null=True, required=False)
    user_type = serializers.CharField(allow_null=True, required=False)
    ident = serializers.CharField(allow_null=True, required=False)


class MemberListShape(Shape):
    members = MemberShape(many=True)
    next_page_token = serializers.CharField(allow_null=True, required=False)


class RoleMembers(ManagementView):
    @extend_schema(responses={200: MemberListShape}, parameters=[_KIND, *PAGE_PARAMETERS])
    def get(self, _request: Request, role_id: str) -> Response:
        """List the direct members of the role, by id."""
        kind = _kind_of(self.call.query.get("type"))
        granted = access.role(self.context, role_id, RoleAction.READ_ASSIGNMENTS, project_id=self.context.project_id)
        found, following = role_members.direct(granted, self.page, kind=kind)
        return Response(MemberListShape.of({"members": found, "next_page_token": token_of(following)}))

    @extend_schema(request=MembersBody, responses={200: MemberRefsShape})
    def post(self, _request: Request, role_id: str) -> Response:
        """Add at most 1,000 users and roles to the role. The response lists them again.

        Either all are added or none; repeating the request changes nothing.
        """
        wanted = parse_members(self.body(MembersBody).get("members"), where="members")
        granted = access.role(self.context, role_id, RoleAction.MANAGE_ASSIGNMENTS, project_id=self.context.project_id)
        ensure_seen(self.context, wanted, project_id=granted.target.project_id)
        role_members.add(granted, wanted)
        return Response(MemberRefsShape.of({"members": [role_members.reference(each) for each in wanted]}))


class OneMember(ManagementView):
    @extend_schema(responses={204: None})
    def delete(self, _request: Request, role_id: str, kind: str, member_id: str) -> Response:
        """Remove a user or role from the role. The response is also 204 if it is not a member."""
        if kind not in _KINDS:
            raise NoSuchRoute(f"members/{kind} does not exist: user or role is expected")
        member = _principal(kind, member_id, where="member")
        granted = access.role(self.context, role_id, RoleAction.MANAGE_ASSIGNMENTS, project_id=self.context.project_id)
        role_members.remove(granted, member)
        return Response(status=204)


class TransitiveMembers(ManagementView):
    @extend_schema(responses={200: MemberListShape}, parameters=[_KIND, *PAGE_PARAMETERS])
    def get(self, _request: Request, role_id: str) -> Response:
        """List all members of the role, direct ones and members of member roles, by id.

        The member roles themselves are included.
        """
        kind = _kind_of(self.call.query.get("type"))
        granted = access.role(self.context, role_id, RoleAction.READ_ASSIGNMENTS, project_id=self.context.project_id)
        found, following = role_members.transitive(granted, self.page, kind=kind)
        return Response(MemberListShape.of({"members": found, "next_page_token": token_of(following)}))


class MemberOf(ManagementView):
    """The roles that a role is a member of, sorted by name."""

    transitive = False

    @extend_schema(responses={200: RoleListShape}, parameters=PAGE_PARAMETERS)
    def get(self, _request: Request, role_id: str) -> Response:
        """List the roles that the role is a member of, by name."""
        granted = access.role(self.context, role_id, RoleAction.READ_ASSIGNMENTS, project_id=self.context.project_id)
        found, following = role_members.member_of(granted, self.page, transitive=self.transitive)
        return Response(RoleListShape.of({"roles": found, "next_page_token": token_of(following)}))


def parse_members(given: list[Mapping[str, Any]], *, where: str) -> list[PrincipalId]:
    """Parse the members in a body. Raises BadRequest, which names the invalid one."""
    return [_parse_member(each, where=f"{where}[{index}]") for index, each in enumerate(given)]


def ensure_seen(context: RequestContext, members: list[PrincipalId], *, project_id: str) -> None:
    """Raises NoSuchRole if the caller may not see a role among the members."""
    for identifier in {role_members.role_id(each) for each in members if role_members.is_role(each)}:
        access.role(context, str(identifier), RoleAction.READ_METADATA, project_id=project_id)


def _parse_member(given: Mapping[str, Any], *, where: str) -> PrincipalId:
    if set(given) == {"type", "id"}:
        kind, identifier = given["type"], given["id"]
    elif len(given) == 1:
        ((kind, identifier),) = given.items()
    else:
        kind = identifier = None
    if kind not in _KINDS or not isinstance(identifier, str):
        raise BadRequest(
            f"Invalid request body: {where}: {str(dict(given))[:200]} is not "
            '{"type": "user" or "role", "id": …}, {"user": id} or {"role": id}'
        )
    return _principal(kind, identifier, where=where)


def _principal(kind: str, identifier: str, *, where: str) -> PrincipalId:
    if kind == "user":
        return users.user_id(identifier)
    try:
        return role_principal(UUID(identifier))
    except ValueError:
        raise BadRequest(f"{where}: {identifier[:80]!r} is not the id of a role: a UUID is expected") from None


def _kind_of(value: str | None) -> str | None:
    if value is not None and value not in _KINDS:
        raise BadRequest(f"Invalid query parameter type={value[:80]!r}: user or role is expected")
    return value


routes = [
    path("role/<str:role_id>/members", RoleMembers.as_view()),
    path("role/<str:role_id>/members/transitive", TransitiveMembers.as_view()),
    path("role/<str:role_id>/members/<str:kind>/<str:member_id>", OneMember.as_view()),
    path("role/<str:role_id>/member-of", MemberOf.as_view()),
    path("role/<str:role_id>/member-of/transitive", MemberOf.as_view(transitive=True)),
]
