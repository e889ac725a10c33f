"""Creates and updates many roles in one request, for programs: `POST /role/provision`. Idempotent."""

from collections.abc import Mapping
from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ProjectAction
from management.api import ManagementView
from management.base_serializers import Body, Kebab, Shape
from management.role_members import MemberField, parse_members
from tenants import access
from tenants.services import role_members, role_provisioning, roles
from tenants.services.role_provisioning import WantedRole
from tenants.services.roles import Source


class WantedRoleBody(Kebab):
    """A role, named by `provider-id` and `source-id` or by `name`; omitted members are not changed."""

    name = serializers.CharField(trim_whitespace=False)
    description = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, max_length=roles.MAX_DESCRIPTION_LENGTH
    )
    provider_id = serializers.CharField(required=False, trim_whitespace=False)
    source_id = serializers.CharField(required=False, trim_whitespace=False)
    members = serializers.ListField(child=MemberField(), required=False, max_length=role_members.MAX_BATCH)

    def to_internal_value(self, data: Any) -> Any:  # noqa: ANN401 DRF's signature
        """Like `Body.parse`: null means "not given", and unknown members are refused."""
        if not isinstance(data, Mapping):
            return super().to_internal_value(data)
        given = {name: value for name, value in data.items() if value is not None}
        if unknown := sorted(set(given) - set(self.fields)):
            raise serializers.ValidationError({unknown[0]: [f"unknown member; known are {', '.join(self.fields)}"]})
        return super().to_internal_value(given)


class ProvisionBody(Body):
    roles = serializers.ListField(child=WantedRoleBody(), max_length=role_provisioning.MAX_ROLES)
    prune_members = serializers.BooleanField(default=False)


class OutcomeShape(Shape):
    id = serializers.UUIDField()
    name = serializers.CharField()
    outcome = serializers.ChoiceField(choices=("created", "updated", "unchanged"))


class ProvisionShape(Shape):
    roles = OutcomeShape(many=True)


class RoleProvisioning(ManagementView):
    @extend_schema(request=ProvisionBody, responses={200: ProvisionShape})
    def post(self, _request: Request) -> Response:
        """Create or update at most 1,000 roles with at most 10,000 members in one request.

        Either all changes are made or none. `prune-members` removes members that are not listed, from roles that list
        members.
        """
        body = self.body(ProvisionBody)
        wanted = [_wanted(each, where=f"roles[{index}]") for index, each in enumerate(body.get("roles"))]
        granted = access.project(self.context, self.project_id, ProjectAction.CREATE_ROLE)
        named = {member for each in wanted for member in each.members or ()}
        access.note_foreign_roles(self.context, named, project_id=granted.target.id)
        outcomes = role_provisioning.provision(granted, wanted, prune=body.get("prune_members"))
        return Response(ProvisionShape.of({"roles": outcomes}))


def _wanted(given: Mapping[str, Any], *, where: str) -> WantedRole:
    members = given.get("members")
    return WantedRole(
        name=given["name"],
        description=given.get("description"),
        source=Source.given(given.get("provider_id"), given.get("source_id")),
        members=None if members is None else frozenset(parse_members(members, where=f"{where}.members")),
    )


# before `role/<id>`
routes = [
    path("role/provision", RoleProvisioning.as_view()),
]
