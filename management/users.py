"""The caller as a user: `GET /whoami`, and `POST /user`, which puts him into the server's list of users."""

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.errors import AlreadyExists, BadRequest
from management.api import ManagementView
from management.shapes import Body, Shape
from tenants.models import User
from tenants.services import users


class UserShape(Shape):
    id = serializers.CharField()
    name = serializers.CharField()
    email = serializers.CharField()
    user_type = serializers.CharField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    last_updated_with = serializers.CharField()


class WhoAmI(ManagementView):
    def get(self, _request: Request) -> Response:
        """The caller's own row, made at first sight."""
        return Response(UserShape.of(users.provision(self.context, seen_by=User.UpdatedWith.CREATE_ENDPOINT)))


class UserBody(Body):
    id = serializers.CharField(required=False)
    name = serializers.CharField(required=False)
    email = serializers.CharField(required=False)
    user_type = serializers.CharField(required=False)
    update_if_exists = serializers.BooleanField(default=False)


class Users(ManagementView):
    def post(self, _request: Request) -> Response:
        """Self-service, described by the token: 201 for a new user, 200 for one that was brought up to date.

        Raises AlreadyExists for a known user without `update-if-exists`, BadRequest for a description of anybody else.
        """
        body = self.body(UserBody)
        actor = self.context.actor
        if body.get("id", actor.id) != actor.id or any(body.get(name) for name in ("name", "email", "user_type")):
            raise BadRequest(
                "Describing users is not served by this server yet: send {} with the user's own token; "
                "name, email and type are taken from it"
            )
        user, is_new = users.register(actor, self.context)
        if not is_new and not body.get("update_if_exists"):
            raise AlreadyExists(f"The user {actor.id} exists already: send 'update-if-exists': true to refresh it")
        if not is_new:
            user = users.refresh(actor, self.context)
        return Response(UserShape.of(user), status=201 if is_new else 200)


routes = [
    path("whoami", WhoAmI.as_view()),
    path("user", Users.as_view()),
]
