"""Tasks of a warehouse or a project: `POST …/task/list`, `GET …/task/by-id/{id}`, `POST …/task/control`."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.tabular_types import TABULAR_TYPES
from lakewarden.authz.actions import ProjectAction, WarehouseAction
from lakewarden.errors import BadRequest
from lakewarden.paging import Page, next_token
from lakewarden.tasks import control, listing
from lakewarden.tasks.control import Action, Verb
from lakewarden.tasks.listing import AttemptInfo, Filter, Status, TaskInfo
from lakewarden.tasks.queues import present_name
from lakewarden.tasks.scope import Scope
from management.api import DEFAULT_PAGE_SIZE, ManagementView
from management.base_serializers import Body, Kebab, Shape
from tenants import access

MAX_FILTER = 100
DEFAULT_ATTEMPTS = 5
MAX_ATTEMPTS = 1000
_ATTEMPTS = OpenApiParameter(
    "numAttempts", int, description=f"The number of latest attempts in the response; {DEFAULT_ATTEMPTS} by default."
)
_WITH_ID = ("namespace", *TABULAR_TYPES)


@extend_schema_field(
    {
        "type": "object",
        "description": "The object that the task is about.",
        "required": ["type"],
        "properties": {
            "type": {"type": "string", "enum": ["project", "warehouse", *_WITH_ID]},
            **{f"{kind}-id": {"type": "string"} for kind in ("project", "warehouse", *_WITH_ID)},
        },
    }
)
class EntityField(serializers.DictField):
    """The type of an object, its id, and the id of its warehouse."""


class TaskShape(Shape):
    task_id = serializers.UUIDField()
    project_id = serializers.CharField()
    warehouse_id = serializers.UUIDField(required=False)
    queue_name = serializers.CharField()
    entity = EntityField(child=serializers.CharField())
    entity_name = serializers.ListField(child=serializers.CharField(), required=False)
    status = serializers.ChoiceField(choices=[status.value for status in Status])
    scheduled_for = serializers.DateTimeField()
    picked_up_at = serializers.DateTimeField(required=False)
    attempt = serializers.IntegerField()
    last_heartbeat_at = serializers.DateTimeField(required=False)
    progress = serializers.FloatField()
    parent_task_id = serializers.UUIDField(required=False)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(required=False)


class AttemptShape(Shape):
    attempt = serializers.IntegerField()
    status = serializers.ChoiceField(choices=[status.value for status in Status])
    scheduled_for = serializers.DateTimeField()
    started_at = serializers.DateTimeField()
    created_at = serializers.DateTimeField()
    duration = serializers.CharField(required=False, help_text="ISO 8601, e.g. PT1.5S.")
    message = serializers.CharField(required=False)
    progress = serializers.FloatField()
    execution_details = serializers.DictField(required=False)


class TaskDetailsShape(TaskShape):
    task_data = serializers.DictField()
    execution_details = serializers.DictField(required=False)
    message = serializers.CharField(required=False)
    attempts = AttemptShape(many=True)


class TasksShape(Shape):
    tasks = TaskShape(many=True)
    next_page_token = serializers.CharField(required=False)


class ListProjectTasksBody(Body):
    status = serializers.ListField(
        child=serializers.ChoiceField(choices=[status.value for status in Status]), required=False
    )
    queue_name = serializers.ListField(child=serializers.CharField(), required=False, max_length=MAX_FILTER)
    created_after = serializers.DateTimeField(required=False)
    created_before = serializers.DateTimeField(required=False)
    page_token = serializers.CharField(required=False, allow_blank=True)
    page_size = serializers.IntegerField(default=DEFAULT_PAGE_SIZE, min_value=1)


class EntityBody(Kebab):
    type = serializers.ChoiceField(choices=["warehouse", *_WITH_ID])
    namespace_id = serializers.UUIDField(required=False)
    table_id = serializers.UUIDField(required=False)
    view_id = serializers.UUIDField(required=False)
    generic_table_id = serializers.UUIDField(required=False)


class ListTasksBody(ListProjectTasksBody):
    entities = EntityBody(many=True, required=False)


class ActionBody(Kebab):
    action_type = serializers.ChoiceField(choices=[verb.value for verb in Verb])
    scheduled_for = serializers.DateTimeField(required=False)


class ControlBody(Body):
    action = ActionBody()
    task_ids = serializers.ListField(child=serializers.UUIDField(), allow_empty=False)


class WarehouseTasks(ManagementView):
    @extend_schema(request=ListTasksBody, responses={200: TasksShape})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """List the tasks of the warehouse and of the objects that are or were in it, newest first."""
        body = self.body(ListTasksBody)
        scope = _of_warehouse(self, warehouse_id, WarehouseAction.GET_ALL_TASKS)
        return _list(scope, body, entities=_entities(body, warehouse_id))


class ProjectTasks(ManagementView):
    @extend_schema(request=ListProjectTasksBody, responses={200: TasksShape})
    def post(self, _request: Request) -> Response:
        """List the tasks of the project itself, without those of its warehouses, newest first."""
        body = self.body(ListProjectTasksBody)
        return _list(_of_project(self, ProjectAction.GET_TASKS), body)


class WarehouseTask(ManagementView):
    @extend_schema(parameters=[_ATTEMPTS], responses={200: TaskDetailsShape})
    def get(self, _request: Request, warehouse_id: str, task_id: str) -> Response:
        """Read a task of the warehouse, with its latest attempts."""
        scope = _of_warehouse(self, warehouse_id, WarehouseAction.GET_ALL_TASKS)
        return _details(self, scope, task_id)


class ProjectTask(ManagementView):
    @extend_schema(parameters=[_ATTEMPTS], responses={200: TaskDetailsShape})
    def get(self, _request: Request, task_id: str) -> Response:
        """Read a task of the project, with its latest attempts."""
        return _details(self, _of_project(self, ProjectAction.GET_TASKS), task_id)


class WarehouseTaskControl(ManagementView):
    @extend_schema(request=ControlBody, responses={204: None})
    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Stop, cancel or reschedule at most 100 tasks of the warehouse. Either all are changed or none."""
        body = self.body(ControlBody)
        return _control(self, _of_warehouse(self, warehouse_id, WarehouseAction.CONTROL_ALL_TASKS), body)


class ProjectTaskControl(ManagementView):
    @extend_schema(request=ControlBody, responses={204: None})
    def post(self, _request: Request) -> Response:
        """Stop, cancel or reschedule at most 100 tasks of the project. Either all are changed or none."""
        body = self.body(ControlBody)
        return _control(self, _of_project(self, ProjectAction.CONTROL_TASKS), body)


def _of_warehouse(view: ManagementView, warehouse_id: str, action: WarehouseAction) -> Scope:
    warehouse = access.warehouse(view.context, warehouse_id, action).target
    return Scope(warehouse.project_id, warehouse.id)


def _of_project(view: ManagementView, action: ProjectAction) -> Scope:
    return Scope(access.project(view.context, view.project_id, action).target.id)


def _list(scope: Scope, body: Body, *, entities: list[tuple[str, str]] | None = None) -> Response:
    statuses, queues = body.get("status"), body.get("queue_name")
    wanted = Filter(
        statuses=None if statuses is None else [Status(name) for name in statuses],
        queues=None if queues is None else [present_name(name) for name in queues],
        entities=entities,
        created_after=body.get("created_after"),
        created_before=body.get("created_before"),
    )
    page = Page.parse({"pageToken": body.get("page_token", ""), "pageSize": str(body.get("page_size"))})
    found, last = listing.find(scope, wanted, page)
    token = next_token(last) if last is not None else None
    return Response(TasksShape.of({"tasks": [_plain(task) for task in found], "next_page_token": token}))


def _note_foreign(view: ManagementView, scope: Scope, task_ids: list[str]) -> None:
    """Note tasks of other projects for the audit, before the service answers that they do not exist."""
    for task_id, project_id in listing.in_other_projects(scope, task_ids):
        access.note_foreign(view.context, "name_task", "task", task_id, project_id=project_id)


def _details(view: ManagementView, scope: Scope, task_id: str) -> Response:
    _note_foreign(view, scope, [task_id])
    details = listing.get(scope, task_id, attempts=_wanted_attempts(view.call.query.get("numAttempts")))
    task = details.task
    more = {"execution_details": task.details, "message": task.message}
    attempts = [_plain_attempt(attempt) for attempt in details.attempts]
    return Response(
        TaskDetailsShape.of({**_plain(task), **more, "task_data": _shown(details.data), "attempts": attempts})
    )


def _shown(data: dict[str, Any]) -> dict[str, Any]:
    """What a task was created with, without keys and profiles that only the server uses."""
    return {name.replace("_", "-"): data[name] for name in ("deletion_id", "location") if name in data}


def _control(view: ManagementView, scope: Scope, body: Body) -> Response:
    asked = body.get("action")
    verb, at = Verb(asked["action_type"]), asked.get("scheduled_for")
    if (at is None) == (verb is Verb.RUN_AT):
        raise BadRequest("action: 'scheduled-for' is only allowed with the action-type run-at")
    task_ids = [str(task_id) for task_id in body.get("task_ids")]
    _note_foreign(view, scope, task_ids)
    control.control(scope, task_ids, Action(verb, at), context=view.context)
    return Response(status=204)


def _entities(body: Body, warehouse_id: str) -> list[tuple[str, str]] | None:
    asked = body.get("entities")
    if asked is None:
        return None
    if len(asked) > MAX_FILTER:
        raise BadRequest(f"{len(asked)} entities in one request: at most {MAX_FILTER} are allowed")
    return [_entity(each, warehouse_id, where=f"entities[{index}]") for index, each in enumerate(asked)]


def _entity(asked: dict[str, Any], warehouse_id: str, *, where: str) -> tuple[str, str]:
    """(type, id) of an entity; the id of a warehouse comes from the path."""
    kind, given = asked["type"], {name for name in _WITH_ID if _id_name(name) in asked}
    if given != ({kind} - {"warehouse"}):
        needed = "no id" if kind == "warehouse" else f"'{kind}-id' and no other id"
        raise BadRequest(f"{where}: an entity of the type {kind} has {needed}")
    return kind, warehouse_id.lower() if kind == "warehouse" else str(asked[_id_name(kind)])


def _id_name(kind: str) -> str:
    return f"{kind.replace('-', '_')}_id"


def _wanted_attempts(given: str | None) -> int:
    if given is None:
        return DEFAULT_ATTEMPTS
    if not (given.isascii() and given.isdigit()) or len(given) > len(str(MAX_ATTEMPTS)) or int(given) > MAX_ATTEMPTS:
        raise BadRequest(f"Invalid query parameter numAttempts={given[:80]!r}: from 0 to {MAX_ATTEMPTS} is expected")
    return int(given)


def _plain(task: TaskInfo) -> dict[str, Any]:
    entity, scope = task.entity, task.scope
    inside = {"warehouse-id": str(scope.warehouse_id)} if scope.warehouse_id and entity.type != "warehouse" else {}
    return {
        "task_id": task.id,
        "project_id": scope.project_id,
        "warehouse_id": scope.warehouse_id,
        "queue_name": task.queue_name,
        "entity": {"type": entity.type, f"{entity.type}-id": entity.id, **inside},
        "entity_name": list(entity.name) or None,
        "status": task.status.value,
        "scheduled_for": task.scheduled_for,
        "picked_up_at": task.picked_up_at,
        "attempt": task.attempt,
        "last_heartbeat_at": task.last_heartbeat_at,
        "progress": task.progress,
        "parent_task_id": task.parent_id,
        "created_at": task.created_at,
        "updated_at": task.updated_at,
    }


def _plain_attempt(attempt: AttemptInfo) -> dict[str, Any]:
    return {
        "attempt": attempt.attempt,
        "status": attempt.status.value,
        "scheduled_for": attempt.scheduled_for,
        "started_at": attempt.started_at,
        "created_at": attempt.started_at,
        "duration": None if attempt.duration is None else f"PT{attempt.duration.total_seconds():.6f}S",
        "message": attempt.message,
        "progress": attempt.progress,
        "execution_details": attempt.details,
    }


_WAREHOUSE = "warehouse/<str:warehouse_id>/task"

routes = [
    path(f"{_WAREHOUSE}/list", WarehouseTasks.as_view()),
    path(f"{_WAREHOUSE}/control", WarehouseTaskControl.as_view()),
    path(f"{_WAREHOUSE}/by-id/<str:task_id>", WarehouseTask.as_view()),
    path("project/task/list", ProjectTasks.as_view()),
    path("project/task/control", ProjectTaskControl.as_view()),
    path("project/task/by-id/<str:task_id>", ProjectTask.as_view()),
]
