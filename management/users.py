"""Users of the server and their roles: `/whoami`, `/user`, `/user/{id}`."""

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ProjectAction, ServerAction, UserAction
from lakewarden.context import Caller
from management.api import ManagementView
from management.base_serializers import Body, Shape
from management.pagination import PAGE_PARAMETERS, text_filter, token_of
from management.roles import RoleListShape
from tenants import access
from tenants.models import User
from tenants.services import role_members, user_removal, users

_NAME = OpenApiParameter("name", str, description="Only users whose name contains this text, ignoring case.")


class UserShape(Shape):
    id = serializers.CharField()
    name = serializers.CharField()
    email = serializers.CharField(allow_null=True, required=False)
    user_type = serializers.ChoiceField(choices=User.Type.choices)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(allow_null=True, required=False)
    last_updated_with = serializers.ChoiceField(choices=User.UpdatedWith.choices)


class WhoAmIShape(UserShape):
    is_instance_admin = serializers.BooleanField()


class UserListShape(Shape):
    users = UserShape(many=True)
    next_page_token = serializers.CharField(allow_null=True, required=False)


class WhoAmI(ManagementView):
    @extend_schema(responses={200: WhoAmIShape})
    def get(self, _request: Request) -> Response:
        """Read the user of the caller. The user is created on the caller's first request; a deleted user gets 403."""
        user = users.ensure_not_deleted(users.provision(self.context, seen_by=User.UpdatedWith.CREATE_ENDPOINT))
        is_admin = access.is_server_administrator(self.context)
        return Response({**UserShape.of(user), "is-instance-admin": is_admin})


class UserBody(Body):
    id = serializers.CharField(required=False, trim_whitespace=False)
    name = serializers.CharField(required=False, trim_whitespace=False)
    email = serializers.CharField(required=False, trim_whitespace=False)
    user_type = serializers.ChoiceField(choices=User.Type.choices, required=False)
    update_if_exists = serializers.BooleanField(default=False)


class Users(ManagementView):
    @extend_schema(responses={200: UserListShape}, parameters=[_NAME, *PAGE_PARAMETERS])
    def get(self, _request: Request) -> Response:
        """List the users of the server, by id."""
        granted = access.server(self.context, ServerAction.LIST_USERS)
        found, following = users.listed(granted, self.page, name=text_filter(self.call, "name"))
        return Response(UserListShape.of({"users": found, "next_page_token": token_of(following)}))

    @extend_schema(request=UserBody, responses={200: UserShape, 201: UserShape})
    def post(self, _request: Request) -> Response:
        """Create or update a user.

        Without `id` the user is the caller, described by their token and the body. Administrators may name another user
        by `id`, with `name` and `user-type`. The response is 201 for a new user and 200 for an update.
        """
        body = self.body(UserBody)
        identifier, update = body.get("id", self.context.caller.id), body.get("update_if_exists")
        if identifier == self.context.caller.id:
            members = {"name": body.get("name"), "email": body.get("email"), "kind": body.get("user_type")}
            user, is_new = users.register_self(self.context, **members, update=update)
        else:
            described = Caller(
                users.user_id(identifier),
                name=users.required(body.get("name"), member="name"),
                email=body.get("email"),
                kind=users.required(body.get("user_type"), member="user-type"),
            )
            granted = access.server(self.context, ServerAction.PROVISION_USERS)
            user, is_new = users.make_known(granted, described, update=update)
        return Response(UserShape.of(user), status=201 if is_new else 200)


class RewriteBody(Body):
    name = serializers.CharField(trim_whitespace=False)
    email = serializers.CharField(required=False, trim_whitespace=False)
    user_type = serializers.ChoiceField(choices=User.Type.choices)


class OneUser(ManagementView):
    @extend_schema(responses={200: UserShape})
    def get(self, _request: Request, user_id: str) -> Response:
        """Read a user."""
        return Response(UserShape.of(access.user(self.context, user_id, UserAction.READ).target))

    @extend_schema(request=RewriteBody, responses={200: UserShape})
    def put(self, _request: Request, user_id: str) -> Response:
        """Replace the name, email and type of a user. Without `email`, the email is removed."""
        body = self.body(RewriteBody)
        granted = access.user(self.context, user_id, UserAction.UPDATE)
        user = users.rewrite(granted, name=body.get("name"), email=body.get("email"), kind=body.get("user_type"))
        return Response(UserShape.of(user))

    @extend_schema(responses={204: None})
    def delete(self, _request: Request, user_id: str) -> Response:
        """Delete a user, with all their grants and memberships.

        Only an administrator can restore the user, with `POST /user`.
        """
        user_removal.delete(access.user(self.context, user_id, UserAction.DELETE))
        return Response(status=204)


class UserRoles(ManagementView):
    """The roles of a user in the project, without those that only their token names."""

    transitive = False

    @extend_schema(responses={200: RoleListShape}, parameters=PAGE_PARAMETERS)
    def get(self, _request: Request, user_id: str) -> Response:
        """List the roles of a user in the project, without those that only their token names.

        Users may list their own roles; others need the right to list the project's roles.
        """
        if user_id == self.context.caller.id:
            found, following = role_members.own_roles(
                self.context, self.page, project_id=self.project_id, transitive=self.transitive
            )
        else:
            granted = access.project(self.context, self.project_id, ProjectAction.LIST_ROLES)
            found, following = role_members.roles_of_user(granted, user_id, self.page, transitive=self.transitive)
        return Response(RoleListShape.of({"roles": found, "next_page_token": token_of(following)}))


routes = [
    path("whoami", WhoAmI.as_view()),
    path("user", Users.as_view()),
    path("user/<str:user_id>", OneUser.as_view()),
    path("user/<str:user_id>/roles", UserRoles.as_view()),
    path("user/<str:user_id>/roles/transitive", UserRoles.as_view(transitive=True)),
]
