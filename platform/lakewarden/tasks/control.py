"""Stops, cancels and reschedules tasks, for the management API."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.utils import timezone

from lakewarden.context import RequestContext
from lakewarden.db_transaction import changing
from lakewarden.errors import BadRequest, Conflict, NoSuchTask
from lakewarden.events.change_recording import Change, record
from lakewarden.prepared_statements import execute, fetch
from lakewarden.tasks import scheduling
from lakewarden.tasks.listing import STATUS, Status
from lakewarden.tasks.queues import cancelled
from lakewarden.tasks.scope import Scope

MAX_TASKS = 100
MOST_DELAY = timedelta(days=365)


class Verb(StrEnum):
    STOP = "stop"
    CANCEL = "cancel"
    RUN_NOW = "run-now"
    RUN_AT = "run-at"


@dataclass(frozen=True, slots=True)
class Action:
    """`at` is only used with RUN_AT."""

    verb: Verb
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Known:
    id: UUID
    job_id: int
    status: Status
    cancel_requested: bool
    queue_name: str


@dataclass(frozen=True, slots=True)
class _OnCancel:
    hold: Callable[[Scope], None]
    undo: Callable[[UUID, RequestContext], None]


def control(scope: Scope, task_ids: Sequence[str], action: Action, *, context: RequestContext) -> None:
    """Apply the action to all of the tasks, or to none.

    Idempotent: cancelling a cancelled task, stopping one that does not run and running one that runs change nothing.
    A stopped task runs again a minute later; a cancelled one never does. Raises BadRequest for more than 100 ids or a
    time more than a year ahead, NoSuchTask for an id outside of the scope, Conflict for a task that has ended or whose
    status does not allow the action.
    """
    _check(task_ids, action)
    with changing():
        for known in _locked(scope, task_ids, action.verb):
            if _DO[action.verb](known, action.at):
                if action.verb is Verb.CANCEL and known.queue_name in _CANCEL:
                    _CANCEL[known.queue_name].undo(known.id, context)
                data = {"queue-name": known.queue_name, "action": action.verb.value, "was": known.status.value}
                if action.at is not None:
                    data["scheduled-for"] = action.at.isoformat()
                if scope.warehouse_id is not None:
                    data["warehouse-id"] = str(scope.warehouse_id)
                record(Change("controlTask", "task", str(known.id), scope.project_id, data), context)


def on_cancel(queue_name: str, *, hold: Callable[[Scope], None], undo: Callable[[UUID, RequestContext], None]) -> None:
    """Register what cancelling a task of the queue must undo; `undo` is called for each task, in the same transaction.

    `hold` takes the locks that come before the task's in the order of locks. If one of them raises, the whole request
    is refused. A task that is running learns by `Attempt.heartbeat` that it was cancelled.
    """
    _CANCEL[queue_name] = _OnCancel(hold, undo)


def _check(task_ids: Sequence[str], action: Action) -> None:
    if len(task_ids) > MAX_TASKS:
        raise BadRequest(f"{len(task_ids)} tasks in one request: at most {MAX_TASKS} are allowed")
    if action.at is not None and action.at > timezone.now() + MOST_DELAY:
        raise BadRequest(f"scheduled-for is {action.at.isoformat()}: at most {MOST_DELAY.days} days ahead are allowed")


def _locked(scope: Scope, task_ids: Sequence[str], verb: Verb) -> list[_Known]:
    """Lock the tasks and then their jobs, in the order of their ids, and return them."""
    keys: dict[UUID, str] = {}
    for task_id in task_ids:
        try:
            keys[UUID(task_id)] = task_id
        except ValueError:
            raise NoSuchTask(f"Task does not exist: {task_id}") from None
    parameters = {**scope.parameters, "ids": list(keys)}
    if verb is Verb.CANCEL:
        for (queue_name,) in fetch(_QUEUES_OF.format(condition=scope.condition), parameters):
            if queue_name in _CANCEL:
                _CANCEL[queue_name].hold(scope)
    found = {row[0] for row in fetch(_LOCK_TASKS.format(condition=scope.condition), parameters)}
    for key, task_id in keys.items():
        if key not in found:
            raise NoSuchTask(f"Task does not exist: {task_id}")
    fetch(_LOCK_JOBS, [list(keys)])
    # read by a new statement: the one that locked does not see what others changed while it waited
    return [_Known(key, job, Status(status), *rest) for key, job, status, *rest in fetch(_STANDING, [list(keys)])]


def _cancel(known: _Known, _at: datetime | None) -> bool:
    if known.status is Status.SUCCESS:
        raise Conflict(f"Task {known.id} has succeeded: it can no longer be cancelled")
    if known.status is Status.CANCELLED or known.cancel_requested:
        return False
    if known.status in {Status.RUNNING, Status.STOPPING}:
        execute("update task set cancel_requested = true, updated_at = now() where id = %s", [known.id])
        fetch(_ABORT, [known.job_id])
    else:
        execute(_FORGET_JOB, [known.job_id])
        execute(_CANCELLED, [cancelled(known.queue_name), known.id])
    return True


def _stop(known: _Known, _at: datetime | None) -> bool:
    if known.status is not Status.RUNNING:
        return False
    fetch(_ABORT, [known.job_id])
    execute("update task set updated_at = now() where id = %s", [known.id])
    return True


def _run_now(known: _Known, _at: datetime | None) -> bool:
    return known.status is not Status.RUNNING and _run_at(known, timezone.now())


def _run_at(known: _Known, at: datetime | None) -> bool:
    if known.status in {Status.SUCCESS, Status.CANCELLED} or known.cancel_requested:
        raise Conflict(f"Task {known.id} has ended ({known.status.value}) and cannot be run again")
    if known.status is Status.RUNNING:
        raise Conflict(f"Task {known.id} is running: stop it before you reschedule it")
    if known.status is Status.STOPPING:
        execute("update task set resume_at = %s, updated_at = now() where id = %s", [at, known.id])
    elif known.status is Status.SCHEDULED:
        execute("update procrastinate_jobs set scheduled_at = %s where id = %s", [at, known.job_id])
        execute("update task set scheduled_for = %s, updated_at = now() where id = %s", [at, known.id])
    else:
        # a failed task gets a new job, which has all its attempts again
        execute(_FORGET_JOB, [known.job_id])
        scheduling.defer_again(known.id, at=at)
    return True


_CANCEL: dict[str, _OnCancel] = {}
_DO: dict[Verb, Callable[[_Known, datetime | None], bool]] = {
    Verb.STOP: _stop,
    Verb.CANCEL: _cancel,
    Verb.RUN_NOW: _run_now,
    Verb.RUN_AT: _run_at,
}
_QUEUES_OF = """
    select distinct t.queue_name from task t where {condition} and t.id = any(%(ids)s::uuid[]) order by 1
"""
_LOCK_TASKS = """
    select t.id from task t where {condition} and t.id = any(%(ids)s::uuid[]) order by t.id for update
"""
_LOCK_JOBS = """
    select id from procrastinate_jobs where id in (select job_id from task where id = any(%s::uuid[]))
    order by id for update
"""
_STANDING = f"""
    select t.id, t.job_id, {STATUS}, t.cancel_requested, t.queue_name
    from task t left join procrastinate_jobs j on j.id = t.job_id where t.id = any(%s::uuid[]) order by t.id
"""  # noqa: S608 text of our own
_ABORT = "select procrastinate_cancel_job_v1(%s, true, false)"
_FORGET_JOB = "delete from procrastinate_jobs where id = %s and status in ('todo', 'failed', 'aborted', 'cancelled')"
_CANCELLED = """
    update task set outcome = 'CANCELLED', finished_at = now(), updated_at = now(), message = %s where id = %s
"""
