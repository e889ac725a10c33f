"""Reads tasks and their attempts, for the management API."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from lakewarden.errors import BadRequest, NoSuchTask
from lakewarden.paging import Page
from lakewarden.prepared_statements import fetch
from lakewarden.tasks.scope import Entity, Scope


class Status(StrEnum):
    SCHEDULED = "SCHEDULED"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    CANCELLED = "CANCELLED"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Filter:
    """None does not filter; an empty list finds nothing. `entities` are (type, id)."""

    statuses: Sequence[Status] | None = None
    queues: Sequence[str] | None = None
    entities: Sequence[tuple[str, str]] | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """`attempt` is the number of the latest attempt (0: none yet), `picked_up_at` is when it began."""

    id: UUID
    scope: Scope
    queue_name: str
    entity: Entity
    status: Status
    scheduled_for: datetime
    picked_up_at: datetime | None
    attempt: int
    last_heartbeat_at: datetime | None
    progress: float
    parent_id: UUID | None
    created_at: datetime
    updated_at: datetime | None
    message: str | None
    details: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class AttemptInfo:
    """`duration` is None while it runs."""

    attempt: int
    status: Status
    scheduled_for: datetime
    started_at: datetime
    duration: timedelta | None
    message: str | None
    progress: float
    details: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class TaskDetails:
    """`data` is what the task was created with."""

    task: TaskInfo
    data: dict[str, Any]
    attempts: list[AttemptInfo] = field(default_factory=list)


def find(scope: Scope, wanted: Filter, page: Page) -> tuple[list[TaskInfo], str | None]:
    """A page of tasks, newest first, and the key of the next page.

    Raises BadRequest for a page token of another list.
    """
    entities = wanted.entities
    parameters = {
        **scope.parameters,
        "statuses": None if wanted.statuses is None else [status.value for status in wanted.statuses],
        "queues": None if wanted.queues is None else list(wanted.queues),
        "all_entities": entities is None,
        "types": [kind for kind, _ in entities or ()],
        "ids": [identifier for _, identifier in entities or ()],
        "after": wanted.created_after,
        "before": wanted.created_before,
        "behind": _behind(page.after),
        "limit": page.limit,
    }
    rows = fetch(_LIST.format(condition=scope.condition), parameters)
    found = [_info(row) for row in rows]
    return page.cut([(info, str(info.id)) for info in found])


def get(scope: Scope, task_id: str, *, attempts: int) -> TaskDetails:
    """A task with its latest attempts, newest first. Raises NoSuchTask if it is missing or outside of the scope."""
    missing = NoSuchTask(f"Task does not exist: {task_id}")
    try:
        key = UUID(task_id)
    except ValueError:
        raise missing from None
    rows = fetch(_ONE.format(condition=scope.condition), {**scope.parameters, "id": key})
    if not rows:
        raise missing
    *row, data = rows[0]
    return TaskDetails(_info(row), data, [_attempt(row) for row in fetch(_ATTEMPTS, [key, attempts])])


def in_other_projects(scope: Scope, task_ids: Sequence[str]) -> list[tuple[str, str]]:
    """Those of the tasks that belong to another project than the scope, each with its project's id."""
    keys = [key for key in map(_uuid, task_ids) if key is not None]
    return [(str(key), project_id) for key, project_id in fetch(_ELSEWHERE, [keys, scope.project_id])]


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _behind(key: str | None) -> UUID | None:
    if key is None:
        return None
    try:
        return UUID(key)
    except ValueError:
        raise BadRequest("Invalid page-token: it was not issued for this list") from None


def _info(row: Sequence[Any]) -> TaskInfo:
    identifier, project_id, warehouse_id, queue, kind, entity_id, name, status, *rest = row
    entity = Entity(kind, entity_id, tuple(name))
    return TaskInfo(identifier, Scope(project_id, warehouse_id), queue, entity, Status(status), *rest)


def _attempt(row: Sequence[Any]) -> AttemptInfo:
    number, status, *rest = row
    return AttemptInfo(number, Status(status), *rest)


# the end of a run is recorded first in `task` and then in the job, so the task counts as running until the job ends
STATUS = """
    case
        when t.outcome in ('SUCCESS', 'CANCELLED') then t.outcome
        when j.status = 'doing' and j.abort_requested then 'STOPPING'
        when j.status = 'doing' then 'RUNNING'
        when j.status = 'todo' then 'SCHEDULED'
        else 'FAILED'
    end
"""
_COLUMNS = f"""
    t.id, t.project_id, t.warehouse_id, t.queue_name, t.entity_type, t.entity_id, t.entity_name, {STATUS},
    case when j.status = 'todo' then coalesce(j.scheduled_at, t.scheduled_for) else t.scheduled_for end,
    (select a.started_at from task_attempt a where a.task_id = t.id and a.attempt = t.attempt),
    t.attempt, t.last_heartbeat_at, t.progress, t.parent_id, t.created_at, t.updated_at, t.message, t.details
"""  # noqa: S608 text of our own
_FROM = "from task t left join procrastinate_jobs j on j.id = t.job_id"
_LIST = f"""
    select {_COLUMNS} {_FROM}
    where {{condition}}
        and (%(statuses)s::text[] is null or {STATUS} = any(%(statuses)s::text[]))
        and (%(queues)s::text[] is null or t.queue_name = any(%(queues)s::text[]))
        and (%(all_entities)s or (t.entity_type, t.entity_id) in
             (select * from unnest(%(types)s::text[], %(ids)s::text[])))
        and (%(after)s::timestamptz is null or t.created_at > %(after)s::timestamptz)
        and (%(before)s::timestamptz is null or t.created_at < %(before)s::timestamptz)
        and (%(behind)s::uuid is null or t.id < %(behind)s::uuid)
    order by t.id desc limit %(limit)s
"""  # noqa: S608 text of our own
_ONE = f"select {_COLUMNS}, t.arguments {_FROM} where {{condition}} and t.id = %(id)s"
_ATTEMPTS = """
    select attempt, status, scheduled_for, started_at, ended_at - started_at, message, progress, details
    from task_attempt where task_id = %s order by attempt desc limit %s
"""
_ELSEWHERE = "select id, project_id from task where id = any(%s::uuid[]) and project_id <> %s"
