"""Projects: `POST /project`, `GET /project` (addressed by `x-project-id`), `GET /project-list`."""

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ProjectAction, ServerAction
from management.api import ManagementView
from management.shapes import Body, Shape
from tenants import access
from tenants.services import projects


class ProjectShape(Shape):
    project_id = serializers.CharField(source="id")
    project_name = serializers.CharField(source="name")


class ProjectBody(Body):
    project_name = serializers.CharField(trim_whitespace=False)
    project_id = serializers.CharField(required=False, trim_whitespace=False)


class Projects(ManagementView):
    def get(self, _request: Request) -> Response:
        granted = access.project(self.context, self.project_id, ProjectAction.GET_METADATA)
        return Response(ProjectShape.of(granted.target))

    def post(self, _request: Request) -> Response:
        body = self.body(ProjectBody)
        granted = access.server(self.context, ServerAction.CREATE_PROJECT)
        project = projects.create(granted, body.get("project_name"), project_id=body.get("project_id"))
        return Response(ProjectShape.of(project), status=201)


class ProjectList(ManagementView):
    def get(self, _request: Request) -> Response:
        """The projects that the caller may see, by name; an empty list is an answer like any other."""
        visible = access.visible_projects(self.context)
        return Response({"projects": [ProjectShape.of(project) for project in visible]})


routes = [
    path("project", Projects.as_view()),
    path("project-list", ProjectList.as_view()),
]
