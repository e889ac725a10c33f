"""Projects, selected by `x-project-id` or, in the deprecated routes, in the path."""

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ProjectAction, ServerAction
from management.api import ManagementView
from management.base_serializers import Body, Shape
from tenants import access
from tenants.services import projects


class CreatedProjectShape(Shape):
    """Only the id: generated clients refuse further members here."""

    project_id = serializers.CharField(source="id")


class ProjectShape(CreatedProjectShape):
    project_name = serializers.CharField(source="name")


class ProjectListShape(Shape):
    projects = ProjectShape(many=True)


class ProjectBody(Body):
    project_name = serializers.CharField(trim_whitespace=False)
    project_id = serializers.CharField(required=False, trim_whitespace=False)


class RenameProjectBody(Body):
    new_name = serializers.CharField(trim_whitespace=False)


class ProjectView(ManagementView):
    """Operations on one project, however it is selected."""

    def _get(self, project_id: str) -> Response:
        granted = access.project(self.context, project_id, ProjectAction.GET_METADATA)
        return Response(ProjectShape.of(granted.target))

    def _rename(self, project_id: str) -> Response:
        body = self.body(RenameProjectBody)
        granted = access.project(self.context, project_id, ProjectAction.RENAME)
        return Response(ProjectShape.of(projects.rename(granted, body.get("new_name"))))

    def _delete(self, project_id: str) -> Response:
        projects.delete(access.project(self.context, project_id, ProjectAction.DELETE))
        return Response(status=204)


class Projects(ProjectView):
    @extend_schema(request=None, responses={200: ProjectShape})
    def get(self, _request: Request) -> Response:
        """Read the project of the request."""
        return self._get(self.project_id)

    @extend_schema(request=ProjectBody, responses={201: CreatedProjectShape})
    def post(self, _request: Request) -> Response:
        """Create a project. The caller becomes its administrator."""
        body = self.body(ProjectBody)
        granted = access.server(self.context, ServerAction.CREATE_PROJECT)
        project = projects.create(granted, body.get("project_name"), project_id=body.get("project_id"))
        return Response(CreatedProjectShape.of(project), status=201)

    @extend_schema(request=None, responses={204: None})
    def delete(self, _request: Request) -> Response:
        """Delete the project of the request, with its roles and grants. It must have no warehouses."""
        return self._delete(self.project_id)


class RenameProject(ProjectView):
    @extend_schema(request=RenameProjectBody, responses={200: ProjectShape})
    def post(self, _request: Request) -> Response:
        """Rename the project of the request."""
        return self._rename(self.project_id)


class ProjectList(ManagementView):
    @extend_schema(request=None, responses={200: ProjectListShape})
    def get(self, _request: Request) -> Response:
        """List the projects that the caller may see, by name. The list is empty if there are none."""
        visible = access.visible_projects(self.context)
        return Response({"projects": [ProjectShape.of(project) for project in visible]})


class NamedProject(ProjectView):
    @extend_schema(request=None, responses={200: ProjectShape}, deprecated=True)
    def get(self, _request: Request, project_id: str) -> Response:
        """Read a project. Like `GET /project` with `x-project-id`."""
        return self._get(project_id)

    @extend_schema(request=None, responses={204: None}, deprecated=True)
    def delete(self, _request: Request, project_id: str) -> Response:
        """Delete a project. Like `DELETE /project` with `x-project-id`."""
        return self._delete(project_id)


class RenameNamedProject(ProjectView):
    @extend_schema(request=RenameProjectBody, responses={200: ProjectShape}, deprecated=True)
    def post(self, _request: Request, project_id: str) -> Response:
        """Rename a project. Like `POST /project/rename` with `x-project-id`."""
        return self._rename(project_id)


class DefaultProject(ProjectView):
    @extend_schema(request=None, responses={200: ProjectShape}, deprecated=True)
    def get(self, _request: Request) -> Response:
        """Read the default project. `x-project-id` is ignored."""
        return self._get(access.default_project_id())

    @extend_schema(request=None, responses={204: None}, deprecated=True)
    def delete(self, _request: Request) -> Response:
        """Delete the default project. Like `DELETE /project` without `x-project-id`."""
        return self._delete(access.default_project_id())


class RenameDefaultProject(ProjectView):
    @extend_schema(request=RenameProjectBody, responses={200: ProjectShape}, deprecated=True)
    def post(self, _request: Request) -> Response:
        """Rename the default project. Like `POST /project/rename` without `x-project-id`."""
        return self._rename(access.default_project_id())


routes = [
    path("project", Projects.as_view()),
    path("project/rename", RenameProject.as_view()),
    path("project-list", ProjectList.as_view()),
    path("default-project", DefaultProject.as_view()),
    path("default-project/rename", RenameDefaultProject.as_view()),
]

late_routes = [
    path("project/<str:project_id>", NamedProject.as_view()),
    path("project/<str:project_id>/rename", RenameNamedProject.as_view()),
]
"""Added after all other routes, so `project/<id>` does not hide their `project/<word>`."""
