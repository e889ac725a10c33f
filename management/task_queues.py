"""Settings of task queues: `…/task-queue/{queue}/config`."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.urls import path
from django.utils.dateparse import parse_duration
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ProjectAction, WarehouseAction
from lakewarden.errors import BadRequest
from lakewarden.tasks import queue_settings, queues
from lakewarden.tasks.queues import Queue
from lakewarden.tasks.scope import Scope
from management.api import ManagementView
from management.base_serializers import Body, Shape
from tenants import access

_DAY: Final = timedelta(days=1)
_DAYS: Final = "retention-days"
_PERIOD: Final = "retention-period"  # the same in the words of the compatible API: an ISO 8601 duration
_CLEANUP_PERIOD: Final = "cleanup-period"


class QueueConfigShape(Shape):
    queue_config = serializers.DictField()
    max_seconds_since_last_heartbeat = serializers.IntegerField(required=False)


class QueueConfigBody(Body):
    queue_config = serializers.DictField()
    max_seconds_since_last_heartbeat = serializers.IntegerField(required=False)


class WarehouseQueueConfig(ManagementView):
    @extend_schema(responses={200: QueueConfigShape})
    def get(self, _request: Request, warehouse_id: str, queue_name: str) -> Response:
        """Read the settings of a task queue for the warehouse. A setting that is missing has its default."""
        scope = _of_warehouse(self, warehouse_id, WarehouseAction.GET_TASK_QUEUE_CONFIG)
        return _settings_response(scope, queues.find(queue_name, "warehouse"))

    @extend_schema(request=QueueConfigBody, responses={204: None})
    def post(self, _request: Request, warehouse_id: str, queue_name: str) -> Response:
        """Replace the settings of a task queue for the warehouse. A setting that is left out returns to its default."""
        body = self.body(QueueConfigBody)
        scope = _of_warehouse(self, warehouse_id, WarehouseAction.MODIFY_TASK_QUEUE_CONFIG)
        return _stored(self, scope, queues.find(queue_name, "warehouse"), body)


class WarehouseQueueSchedule(ManagementView):
    @extend_schema(request=None, responses={})
    def post(self, _request: Request, warehouse_id: str, queue_name: str) -> Response:
        """Schedule a task. Always refused: tasks of all queues are created by other changes."""
        _of_warehouse(self, warehouse_id, WarehouseAction.CONTROL_ALL_TASKS)
        queue = queues.find(queue_name, "warehouse")
        raise BadRequest(
            f"Tasks of the queue {queue.name} cannot be scheduled manually: they are created when objects are dropped"
        )


class ProjectQueueConfig(ManagementView):
    @extend_schema(responses={200: QueueConfigShape})
    def get(self, _request: Request, queue_name: str) -> Response:
        """Read the settings of a task queue for the project. A setting that is missing has its default."""
        scope = _of_project(self, ProjectAction.GET_TASK_QUEUE_CONFIG)
        return _settings_response(scope, queues.find(queue_name, "project"))

    @extend_schema(request=QueueConfigBody, responses={204: None})
    def post(self, _request: Request, queue_name: str) -> Response:
        """Replace the settings of a task queue for the project. A setting that is left out returns to its default."""
        body = self.body(QueueConfigBody)
        scope = _of_project(self, ProjectAction.MODIFY_TASK_QUEUE_CONFIG)
        return _stored(self, scope, queues.find(queue_name, "project"), body)


def _in_days(config: Mapping[str, Any]) -> dict[str, Any]:
    """`config` without the periods of the compatible API. Raises BadRequest for one that cannot be kept."""
    own = dict(config)
    every, kept = (_period(own.pop(name, None), name) for name in (_CLEANUP_PERIOD, _PERIOD))
    if every is not None and every > _DAY:
        raise BadRequest(f"queue-config: {_CLEANUP_PERIOD} is longer than P1D: finished tasks are removed once a day")
    if kept is not None:
        days = -(-kept // _DAY)  # nothing is removed sooner than asked for
        if own.setdefault(_DAYS, days) != days:
            raise BadRequest(f"queue-config: {_DAYS} and {_PERIOD} are both given and differ: send only one of them")
    return own


def _period(text: object, name: str) -> timedelta | None:
    if text is None:
        return None
    try:
        found = parse_duration(text) if isinstance(text, str) and text.startswith("P") else None
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise BadRequest(f"queue-config: {name} is {str(text)[:80]!r}: an ISO 8601 duration such as P90D is expected")
    return found


def _of_warehouse(view: ManagementView, warehouse_id: str, action: WarehouseAction) -> Scope:
    warehouse = access.warehouse(view.context, warehouse_id, action).target
    return Scope(warehouse.project_id, warehouse.id)


def _of_project(view: ManagementView, action: ProjectAction) -> Scope:
    return Scope(access.project(view.context, view.project_id, action).target.id)


def _settings_response(scope: Scope, queue: Queue) -> Response:
    found = queue_settings.of(scope, queue)
    settings: dict[str, Any] = dict(found.settings)
    if _DAYS in settings:
        settings[_PERIOD] = f"P{settings[_DAYS]}D"
    body: dict[str, Any] = {"queue_config": settings, "max_seconds_since_last_heartbeat": found.max_silence_s}
    return Response(QueueConfigShape.of(body))


def _stored(view: ManagementView, scope: Scope, queue: Queue, body: Body) -> Response:
    silence = body.get("max_seconds_since_last_heartbeat")
    config = body.get("queue_config")
    if _DAYS in queue.settings:
        config = _in_days(config)
    queue_settings.store(scope, queue, config, max_silence_s=silence, context=view.context)
    return Response(status=204)


_WAREHOUSE = "warehouse/<str:warehouse_id>/task-queue/<str:queue_name>"

routes = [
    path(f"{_WAREHOUSE}/config", WarehouseQueueConfig.as_view()),
    path(f"{_WAREHOUSE}/schedule", WarehouseQueueSchedule.as_view()),
    path("project/task-queue/<str:queue_name>/config", ProjectQueueConfig.as_view()),
]
