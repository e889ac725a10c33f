"""The older permissions API: grants in the form of assignments, and managed access (`/permissions/…`)."""

from collections.abc import Collection
from typing import Any, cast

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ObjectType, RoleAction
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger.grants import Given
from lakewarden.authz.model import GRANTABLE, Privilege
from lakewarden.context import PrincipalId
from lakewarden.errors import BadRequest
from management.api import ManagementView
from management.base_serializers import Body, Shape
from management.grantable import GRANTABLES, NAMESPACE_BY_ID, PROJECT_BY_ID, TAG, Grantable
from management.grants import named_principal, named_privilege, note_foreign_roles, plain_principal
from permissions import grants, role_assignments
from permissions.grants import GrantEntry
from permissions.role_assignments import Difference
from tenants import access
from tenants.services import role_members

ASSIGNEE = "assignee"


class AssignmentBody(serializers.Serializer[Any]):
    type = serializers.CharField()
    user = serializers.CharField(required=False)
    role = serializers.CharField(required=False)


class AssignmentsBody(Body):
    writes = AssignmentBody(many=True, default=list)
    deletes = AssignmentBody(many=True, default=list)


class AssignmentShape(Shape):
    type = serializers.CharField()
    user = serializers.CharField(required=False)
    role = serializers.CharField(required=False)


class AssignmentsShape(Shape):
    assignments = AssignmentShape(many=True)


class ProjectAssignmentsShape(AssignmentsShape):
    project_id = serializers.CharField()


_RELATIONS = OpenApiParameter(
    "relations", str, many=True, description="Only assignments of these types; may be repeated."
)


class ManagedAccessBody(Body):
    managed_access = serializers.BooleanField()


class WarehouseManagedAccessShape(Shape):
    managed_access = serializers.BooleanField()


class ManagedAccessShape(WarehouseManagedAccessShape):
    managed_access_inherited = serializers.BooleanField()


class Assignments(ManagementView):
    """The assignments on one type of object."""

    kind = cast("Grantable", None)

    @extend_schema(responses={200: AssignmentsShape}, parameters=[_RELATIONS])
    def get(self, request: Request, **parts: str) -> Response:
        """List the direct assignments on the object: first the owners, then the others by principal and type."""
        wanted = _relations(request, known=GRANTABLE[self.kind.type])
        granted = self.kind.read(self.context, parts)
        return Response(self._shown(granted, _assignments(grants.on(granted), wanted)))

    @extend_schema(request=AssignmentsBody, responses={204: None})
    def post(self, _request: Request, **parts: str) -> Response:
        """Add and remove assignments on the object, at most 100 in one request.

        Either all changes are made or none. The response is 409 for an assignment to add that exists, and 404 for one
        to remove that does not; `…/grants` accepts both.
        """
        writes, deletes = _sides(self.body(AssignmentsBody))
        granted = self.kind.seen(self.context, parts)
        added = _entries(writes, self.kind.type, "writes")
        note_foreign_roles(granted, added)
        grants.apply(granted, writes=added, deletes=_entries(deletes, self.kind.type, "deletes"), must_change=True)
        return Response(status=204)

    def _shown(self, _granted: Granted[object], assignments: list[dict[str, str]]) -> dict[str, Any]:
        return AssignmentsShape.of({"assignments": assignments})


class ProjectAssignments(Assignments):
    @extend_schema(responses={200: ProjectAssignmentsShape}, parameters=[_RELATIONS])
    def get(self, request: Request, **parts: str) -> Response:
        """List the direct assignments on the project, by principal and type."""
        return super().get(request, **parts)

    def _shown(self, granted: Granted[object], assignments: list[dict[str, str]]) -> dict[str, Any]:
        return ProjectAssignmentsShape.of({"assignments": assignments, "project_id": granted.ref.id})


class RoleAssignments(ManagementView):
    """A role's owners and, as the type `assignee`, its members."""

    @extend_schema(responses={200: AssignmentsShape}, parameters=[_RELATIONS])
    def get(self, request: Request, role_id: str) -> Response:
        """List the owners and then the direct members of the role."""
        wanted = _relations(request, known=(*GRANTABLE[ObjectType.ROLE], ASSIGNEE))
        granted = access.role(self.context, role_id, RoleAction.READ_ASSIGNMENTS, project_id=self.context.project_id)
        members = [{"type": ASSIGNEE, **plain_principal(each)} for each in role_members.everybody_in(granted)]
        shown = members if ASSIGNEE in wanted else []
        return Response(AssignmentsShape.of({"assignments": _assignments(grants.on(granted), wanted) + shown}))

    @extend_schema(request=AssignmentsBody, responses={204: None})
    def post(self, _request: Request, role_id: str) -> Response:
        """Add and remove owners and members of the role, at most 100 in one request.

        Either all changes are made or none. The response is 409 for an assignment to add that exists, and 404 for one
        to remove that does not; `/role/{role_id}/members` accepts both.
        """
        writes, deletes = _sides(self.body(AssignmentsBody))
        granted = access.role(self.context, role_id, RoleAction.MANAGE_ASSIGNMENTS, project_id=self.context.project_id)
        added = _difference(writes, "writes")
        named = [*added.members, *(entry.principal for entry in added.owners)]
        access.note_foreign_roles(self.context, named, project_id=granted.target.project_id)
        role_assignments.apply(granted, writes=added, deletes=_difference(deletes, "deletes"))
        return Response(status=204)


def _relations(request: Request, *, known: Collection[str]) -> frozenset[str]:
    """The types of assignments to list; raises BadRequest for an unknown one."""
    wanted = frozenset(request.query_params.getlist("relations"))
    if unknown := wanted.difference(known):
        raise BadRequest(
            f"Invalid query parameter relations={min(unknown)[:80]!r}: one of {', '.join(sorted(known))} is expected"
        )
    return wanted or frozenset(known)


def _assignments(entries: list[Given], wanted: frozenset[str]) -> list[dict[str, str]]:
    owners_first = sorted(entries, key=lambda entry: entry.privilege is not Privilege.OWNERSHIP)
    return [
        {"type": entry.privilege.value, **plain_principal(entry.principal)}
        for entry in owners_first
        if entry.privilege in wanted
    ]


def _sides(body: AssignmentsBody) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    return body.get("writes"), body.get("deletes")


def _difference(assignments: list[dict[str, str]], side: str) -> Difference:
    owners = [each for each in assignments if each["type"] != ASSIGNEE]
    members = [each for each in assignments if each["type"] == ASSIGNEE]
    return Difference(_entries(owners, ObjectType.ROLE, side), [_principal(each, side) for each in members])


def _entries(assignments: list[dict[str, str]], kind: ObjectType, side: str) -> list[GrantEntry]:
    return [
        GrantEntry(_principal(each, side), named_privilege(each["type"], kind, where=f"{side}.type"))
        for each in assignments
    ]


def _principal(assignment: dict[str, str], side: str) -> PrincipalId:
    return named_principal({name: value for name, value in assignment.items() if name != "type"}, where=side)


class ManagedAccess(ManagementView):
    kind = cast("Grantable", None)

    @extend_schema(responses={200: ManagedAccessShape})
    def get(self, _request: Request, **parts: str) -> Response:
        """Read whether managed access is set on the object or on an object that contains it."""
        own, inherited = grants.managed_access(self.kind.seen(self.context, parts))
        return Response(ManagedAccessShape.of({"managed_access": own, "managed_access_inherited": inherited}))


class WarehouseManagedAccess(ManagedAccess):
    @extend_schema(responses={200: WarehouseManagedAccessShape})
    def get(self, _request: Request, **parts: str) -> Response:
        """Read whether managed access is set on the warehouse."""
        own, _ = grants.managed_access(self.kind.seen(self.context, parts))
        return Response(WarehouseManagedAccessShape.of({"managed_access": own}))


class SetManagedAccess(ManagementView):
    kind = cast("Grantable", None)

    @extend_schema(request=ManagedAccessBody, responses={200: None})
    def post(self, _request: Request, **parts: str) -> Response:
        """Set managed access on the object.

        With it, only principals with `manage_grants` may grant privileges inside the object; without it, owners may,
        too.
        """
        body = self.body(ManagedAccessBody)
        grants.set_managed_access(self.kind.read(self.context, parts), managed=body.get("managed_access"))
        return Response(status=200)


_ON_OBJECTS = (*GRANTABLES, NAMESPACE_BY_ID, PROJECT_BY_ID, TAG)
_MANAGED = {ObjectType.WAREHOUSE, ObjectType.NAMESPACE}

routes = [
    path("permissions/role/<str:role_id>/assignments", RoleAssignments.as_view()),
    *(
        path(f"permissions/{kind.path}/assignments", view.as_view(kind=kind))
        for kind in _ON_OBJECTS
        for view in (ProjectAssignments if kind.type is ObjectType.PROJECT else Assignments,)
    ),
    *(
        route
        for kind in _ON_OBJECTS
        if kind.type in _MANAGED
        for route in (
            path(
                f"permissions/{kind.path}",
                (WarehouseManagedAccess if kind.type is ObjectType.WAREHOUSE else ManagedAccess).as_view(kind=kind),
            ),
            path(f"permissions/{kind.path}/managed-access", SetManagedAccess.as_view(kind=kind)),
        )
    ),
]
