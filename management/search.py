"""Searches for people and roles: `POST /search/user`, `POST /search/role`."""

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ProjectAction, ServerAction
from management.api import ManagementView
from management.base_serializers import Body, Shape
from management.roles import RoleShape
from tenants import access
from tenants.models import User
from tenants.services import principal_search


class SearchBody(Body):
    search = serializers.CharField(allow_blank=True, max_length=principal_search.MAX_SEARCH_LENGTH)


class RoleSearchBody(SearchBody):
    project_id = serializers.CharField(required=False, help_text="Send `x-project-id` instead.")


class FoundUserShape(Shape):
    id = serializers.CharField()
    name = serializers.CharField()
    email = serializers.CharField(allow_null=True, required=False)
    user_type = serializers.ChoiceField(choices=User.Type.choices)


class FoundUsersShape(Shape):
    users = FoundUserShape(many=True)


class FoundRolesShape(Shape):
    roles = RoleShape(many=True)


class UserSearch(ManagementView):
    @extend_schema(request=SearchBody, responses={200: FoundUsersShape})
    def post(self, _request: Request) -> Response:
        """Find users by name, the ten best matches.

        Administrators of the server search all users; other callers search the users of the request's project, if they
        may see them. A full id or email address finds any user.
        """
        text = self.body(SearchBody).get("search")
        if access.may_on_server(self.context, ServerAction.LIST_USERS):
            found = principal_search.users(access.server(self.context, ServerAction.LIST_USERS), text)
        else:
            granted = access.project(self.context, self.project_id, ProjectAction.INCLUDE_IN_LIST)
            found = principal_search.users_in_project(granted, text)
        return Response(FoundUsersShape.of({"users": found}))


class RoleSearch(ManagementView):
    @extend_schema(request=RoleSearchBody, responses={200: FoundRolesShape})
    def post(self, _request: Request) -> Response:
        """Find roles of the project by name, the ten best matches, or one role by its id."""
        body = self.body(RoleSearchBody)
        project_id = self.project_named(body.get("project_id"), member="project-id")
        granted = access.project(self.context, project_id, ProjectAction.SEARCH_ROLES)
        return Response(FoundRolesShape.of({"roles": principal_search.roles(granted, body.get("search"))}))


routes = [
    path("search/user", UserSearch.as_view()),
    path("search/role", RoleSearch.as_view()),
]
