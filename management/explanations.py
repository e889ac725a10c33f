"""Explains decisions: `…/explanation` (why a principal may or may not) and `…/who-may`, for all types of objects."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ACTIONS, Action, ObjectType, ProjectAction, RoleAction
from lakewarden.authz.explanation import Given
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.model import REQUIRED, Needs, Privilege
from lakewarden.context import PrincipalId
from lakewarden.errors import BadRequest
from management import identities
from management.api import ManagementView
from management.base_serializers import Shape
from management.grantable import GRANTABLES, ROLE, TAG_DEFINITION, Grantable
from management.grants import PrincipalField, plain_principal
from management.pagination import PAGE_PARAMETERS, token_of
from permissions import explanations, privileges
from permissions.explanations import NamedExplanation, Reader
from permissions.privileges import NamedPrincipal
from tenants import access


class ObjectShape(Shape):
    object_type = serializers.CharField()
    object_id = serializers.CharField()


class DecidingGrantShape(Shape):
    """`object-id` and `granted-by` are only returned to callers who may read the grants on that object."""

    privilege = serializers.CharField()
    principal = PrincipalField()
    object_type = serializers.CharField()
    object_id = serializers.CharField(required=False)
    granted_by = serializers.CharField(required=False)


class RoleOnTheWayShape(Shape):
    """A role through which a grant counts.

    `by`: `membership`, `token` (the token names it) or `assumed` (x-assume-role).
    """

    role = serializers.CharField()
    name = serializers.CharField(required=False)
    by = serializers.CharField()


class BecauseShape(Shape):
    """A grant, the roles through which it counts for the principal, and what follows from it, step by step."""

    privilege = serializers.CharField()
    grant = DecidingGrantShape()
    through_roles = RoleOnTheWayShape(many=True)
    then = serializers.ListField(child=serializers.CharField())


class NeedsField(serializers.ListField):
    """One privilege of each inner list is needed."""

    child = serializers.ListField(child=serializers.CharField())


class ExplanationShape(Shape):
    """`managed-access` is the object whose managed access keeps the owner from having the missing privilege."""

    allowed = serializers.BooleanField()
    action = serializers.CharField()
    needs = NeedsField()
    because = BecauseShape(many=True)
    missing = NeedsField()
    managed_access = ObjectShape(required=False)
    remark = serializers.CharField(required=False)


class HolderShape(Shape):
    principal = PrincipalField()
    because = BecauseShape(many=True)


class WhoMayShape(Shape):
    action = serializers.CharField()
    needs = NeedsField()
    principals = HolderShape(many=True)
    next_page_token = serializers.CharField(required=False)


_ACTION = OpenApiParameter("action", str, required=True, description="An action of the object, e.g. `get_metadata`.")
_WHOSE = [
    OpenApiParameter(
        "principalUser", description="Id of a user (`<provider>~<subject>`) to ask about instead of the caller."
    ),
    OpenApiParameter("principalRole", description="Id of a role to ask about instead of the caller."),
]
_EXPAND = OpenApiParameter(
    "expand", bool, description="Also list principals who may because they are members of a listed role."
)


class AboutRights(ManagementView):
    """The base of both views."""

    kind = cast("Grantable", None)
    seen: tuple[list[ObjectRef], frozenset[Privilege]]

    def looked_up(self, parts: Mapping[str, str]) -> list[ObjectRef]:
        """The chain of the object, authorized for the caller; everybody may see the server."""
        granted = self.kind.seen(self.context, parts)
        self.seen = list(granted.chain), granted.privileges
        return self.seen[0]

    def action(self) -> Action:
        """The action in the query. Raises BadRequest if it does not exist for this type of object."""
        known = {action.value: action for action in ACTIONS[self.kind.type]}
        name = self.call.query.get("action")
        if name not in known:
            given = "is missing" if name is None else f"{name[:80]!r} is not an action on a {self.kind.type.value}"
            raise BadRequest(f"The query parameter action {given}: one of {', '.join(sorted(known))} is expected")
        return known[name]

    def ensure_may_ask(self) -> None:
        """Raises Forbidden unless the caller may read the grants on the object; for a role, those on its project."""
        chain, held = self.seen
        privileges.ensure_may_ask(held, self.kind.type)
        if self.kind.type is ObjectType.ROLE:
            access.project(self.context, chain[1].id, ProjectAction.READ_GRANTS)


class Explained(AboutRights):
    @extend_schema(parameters=[_ACTION, *_WHOSE], responses={200: ExplanationShape})
    def get(self, _request: Request, **parts: str) -> Response:
        """Explain whether a principal may perform an action on the object, and which grants decide.

        Without `principalUser` and `principalRole` the principal is the caller. Asking about another principal requires
        the right to read the grants on the object (for a role: on its project). Roles that the identity provider gives
        to another user are not known to the server and are not considered.
        """
        action = self.action()
        identity = identities.of_query(self.call.query)
        chain = self.looked_up(parts)
        caller, reader = self.context.caller, Reader(self.context, chain)
        if identity is None or (identity.user == caller.id and caller.assumed_role is None):
            answer = explanations.of_caller(self.context, chain, action)
            return Response(ExplanationShape.of(_plain(answer, reader, is_own=True)))
        self.ensure_may_ask()
        answer = explanations.of_principal(self._principal(identity, chain), chain, action)
        return Response(ExplanationShape.of(_plain(answer, reader, is_own=False)))

    def _principal(self, identity: NamedPrincipal, chain: Sequence[ObjectRef]) -> PrincipalId:
        """The principal to explain. Raises NoSuchRole for a role that is hidden or belongs to another project."""
        if identity.user is not None:
            return identity.user
        if self.kind.type is ObjectType.SERVER:
            return access.role(self.context, identity.role, RoleAction.READ_METADATA, project_id=None).target.principal
        role = access.role(self.context, identity.role, RoleAction.READ_METADATA, project_id=chain[1].id)
        return role.target.principal


class WhoMay(AboutRights):
    @extend_schema(parameters=[_ACTION, _EXPAND, *PAGE_PARAMETERS], responses={200: WhoMayShape})
    def get(self, _request: Request, **parts: str) -> Response:
        """List the users and roles that may perform an action on the object, by id, with the grants that decide.

        Listed are principals with a grant on the object, on what contains it or, where that is sufficient, on something
        in it. `expand` also lists the members of such roles. Users who have a role only through their token are not
        known to the server.
        """
        action, page = self.action(), self.page
        chain = self.looked_up(parts)
        self.ensure_may_ask()
        expand = self.call.flag("expand") or False
        holders, following = explanations.who_may(chain, action, page, expand=expand)
        reader = Reader(self.context, chain)
        names = explanations.role_names([holder.explanation for holder in holders])
        principals = [
            {
                "principal": plain_principal(holder.principal),
                "because": _because(NamedExplanation(holder.explanation, names), reader, is_own=False),
            }
            for holder in holders
        ]
        answer = {"action": action.value, "needs": _needs(REQUIRED[action]), "principals": principals}
        return Response(WhoMayShape.of({**answer, "next_page_token": token_of(following)}))


def _plain(answer: NamedExplanation, reader: Reader, *, is_own: bool) -> dict[str, Any]:
    found = answer.explanation
    return {
        "allowed": found.allowed,
        "action": found.action.value,
        "needs": _needs(REQUIRED[found.action]),
        "because": _because(answer, reader, is_own=is_own),
        "missing": _needs(found.missing),
        "managed_access": _object(found.managed) if found.managed else None,
        "remark": "The user was deleted: grants to this id have no effect" if answer.is_deleted else None,
    }


def _needs(needs: Needs) -> list[list[str]]:
    return [sorted(alternatives) for alternatives in needs]


def _object(ref: ObjectRef) -> dict[str, str]:
    return {"object_type": ref.type.value, "object_id": ref.public_id}


def _because(answer: NamedExplanation, reader: Reader, *, is_own: bool) -> list[dict[str, Any]]:
    return [
        {
            "privilege": reason.privilege.value,
            "grant": _grant(reason.grant, reader, is_own=is_own),
            "through_roles": [
                {
                    "role": plain_principal(role)["role"],
                    "name": answer.role_names.get(role),
                    "by": answer.origins.get(role, "membership"),
                }
                for role in reason.through
            ],
            "then": [f"{step.privilege} on {step.ref.type} {step.ref.public_id}" for step in reason.then],
        }
        for reason in answer.explanation.because
    ]


def _grant(given: Given, reader: Reader, *, is_own: bool) -> dict[str, Any]:
    may_read = reader.may_read(given.ref)
    return {
        "privilege": given.privilege.value,
        "principal": plain_principal(given.principal),
        "object_type": given.ref.type.value,
        "object_id": given.ref.public_id if may_read or is_own or reader.is_above(given.ref) else None,
        "granted_by": given.granted_by if may_read else None,
    }


routes = [
    route
    for kind in (*GRANTABLES, ROLE, TAG_DEFINITION)
    for route in (
        path(f"{kind.path}/explanation", Explained.as_view(kind=kind)),
        path(f"{kind.path}/who-may", WhoMay.as_view(kind=kind)),
    )
]
