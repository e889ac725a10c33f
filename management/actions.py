"""The actions that the caller, or another principal, may do on an object: `GET …/actions` of all types of objects."""

from typing import Any, cast

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.tabular_types import TABULAR_TYPES
from lakewarden.authz.actions import ObjectType, RoleAction, UserAction
from management import identities
from management.api import ManagementView
from management.base_serializers import Shape
from management.tabular_paths import path_of
from permissions import privileges
from permissions.privileges import Asked, Rights
from tenants import access


class ActionShape(Shape):
    action = serializers.CharField()


class AllowedActionsShape(Shape):
    allowed_actions = ActionShape(many=True)


SOMEBODY = [
    OpenApiParameter(
        "principalUser", description="Id of a user (`<provider>~<subject>`) to ask about instead of the caller."
    ),
    OpenApiParameter("principalRole", description="Id of a role to ask about instead of the caller."),
]
_described = extend_schema(responses={200: AllowedActionsShape}, parameters=SOMEBODY)


class ActionsView(ManagementView):
    """The base of all views here.

    Asking about another principal requires the right to read the grants on the object.
    """

    def answered(self, asked: Asked) -> Response:
        identity = identities.of_query(self.call.query)
        found = privileges.find([asked]).get(asked)
        held = Rights(self.context).held(asked, found, identity)
        return named(privileges.allowed_actions(asked.type, held))


def named(actions: list[str]) -> Response:
    return Response(AllowedActionsShape.of({"allowed_actions": [{"action": action} for action in actions]}))


class ServerActions(ActionsView):
    @_described
    def get(self, _request: Request) -> Response:
        """List the actions that the caller may perform on the server.

        `principalUser` or `principalRole` asks about another principal.
        """
        return self.answered(Asked(ObjectType.SERVER))


class ProjectActions(ActionsView):
    @_described
    def get(self, _request: Request) -> Response:
        """List the actions that the caller may perform on the project.

        `principalUser` or `principalRole` asks about another principal.
        """
        return self.answered(Asked(ObjectType.PROJECT, self.project_id))


class RoleActions(ActionsView):
    @_described
    def get(self, _request: Request, role_id: str) -> Response:
        """List the actions that the caller may perform on the role.

        `principalUser` or `principalRole` asks about another principal.
        """
        identity = identities.of_query(self.call.query)
        granted = access.role(self.context, role_id, RoleAction.READ_METADATA, project_id=self.context.project_id)
        role = granted.target
        found = privileges.Found(access.role_chain(role), role.project)
        held = Rights(self.context).held(Asked(ObjectType.ROLE, role_id), found, identity)
        return named(privileges.allowed_actions(ObjectType.ROLE, held))


class UserActions(ActionsView):
    """Rights on users are held on the server; every user may read themselves."""

    @_described
    def get(self, _request: Request, user_id: str) -> Response:
        """List the actions that the caller may perform on users.

        Rights on users are held on the server; all callers may read themselves.
        """
        identity = identities.of_query(self.call.query)
        user = access.user(self.context, user_id, UserAction.READ).target
        asked = Asked(ObjectType.SERVER)
        held = Rights(self.context).held(asked, privileges.find([asked])[asked], identity)
        is_self = user.id == (self.context.caller.id if identity is None else identity.user)
        return named(sorted(action.value for action in access.user_actions(held, is_self=is_self)))


class TagActions(ActionsView):
    @_described
    def get(self, _request: Request, tag_definition_id: str) -> Response:
        """List the actions that the caller may perform on the tag definition.

        `principalUser` or `principalRole` asks about another principal.
        """
        return self.answered(Asked(ObjectType.TAG_DEFINITION, tag_definition_id))


class WarehouseActions(ActionsView):
    @_described
    def get(self, _request: Request, warehouse_id: str) -> Response:
        """List the actions that the caller may perform on the warehouse.

        `principalUser` or `principalRole` asks about another principal.
        """
        return self.answered(Asked(ObjectType.WAREHOUSE, warehouse_id))


class InWarehouseActions(ActionsView):
    """Actions on namespaces and on objects in them; `kind` is the type of the object."""

    kind = cast("ObjectType", None)

    @_described
    def get(self, _request: Request, warehouse_id: str, **identifier: str) -> Response:
        """List the actions that the caller may perform on the object.

        `principalUser` or `principalRole` asks about another principal.
        """
        (object_id,) = identifier.values()
        return self.answered(Asked(self.kind, object_id, warehouse_id))


routes: list[Any] = [
    path("server/actions", ServerActions.as_view()),
    path("project/actions", ProjectActions.as_view()),
    path("role/<str:role_id>/actions", RoleActions.as_view()),
    path("user/<str:user_id>/actions", UserActions.as_view()),
    path("tag-definition/<str:tag_definition_id>/actions", TagActions.as_view()),
    path("warehouse/<str:warehouse_id>/actions", WarehouseActions.as_view()),
    path(
        "warehouse/<str:warehouse_id>/namespace/<str:namespace_id>/actions",
        InWarehouseActions.as_view(kind=ObjectType.NAMESPACE),
    ),
    *(
        path(f"{path_of(kind)}/actions", InWarehouseActions.as_view(kind=kind.object_type))
        for kind in TABULAR_TYPES.values()
    ),
]
