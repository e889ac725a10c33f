"""Records the run of a task by a worker: heartbeats, progress, and how the attempt ended."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import close_old_connections, transaction
from procrastinate import BaseRetryStrategy, RetryDecision
from procrastinate.exceptions import JobAborted
from procrastinate.jobs import Job
from psycopg.types.json import Jsonb

from lakewarden.context import SYSTEM, Caller, RequestContext
from lakewarden.events.change_recording import Change, record
from lakewarden.prepared_statements import execute, fetch
from lakewarden.tasks import holding, queue_settings, scheduling
from lakewarden.tasks.queues import QUEUES, cancelled
from lakewarden.tasks.scope import Scope

logger = logging.getLogger(__name__)

STOPPED_RETRY_S = 60
MAX_MESSAGE = 2000
MOST_ATTEMPTS = 16


class GivenUp(Exception):
    """The last attempt that the queue's settings allow failed."""


class Stopped(Exception):
    """A request asked for the task to stop: its code ends here."""


class Postponed(Exception):
    """The task cannot be done yet: it runs again at `at`, and this attempt does not count as failed."""

    def __init__(self, message: str, at: datetime) -> None:
        super().__init__(message)
        self.at = at


class Superseded(Exception):
    """The worker was silent for so long that another one has the job or has started the task again.

    This run must not record anything more. If the worker still holds the job, the job is queued again rather than
    finished: a job must never end before its task.
    """


class Retries(BaseRetryStrategy):
    """Repeats a failed attempt after 2, 4, 8 … seconds, unless it was the last; a superseded one is always repeated."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        if isinstance(exception, Superseded):
            return RetryDecision(retry_in={"seconds": 1})
        if isinstance(exception, GivenUp) or job.attempts >= MOST_ATTEMPTS - 1:
            return None
        return RetryDecision(retry_in={"seconds": 2 ** (job.attempts + 1)})


class Attempt:
    """One run of a task; `details` is JSON that the management API shows."""

    def __init__(self, task_id: UUID, number: int | None) -> None:
        self.task_id = task_id
        self.number = number  # None: the task has no record
        self.details: dict[str, Any] = {}
        self.message = ""

    def heartbeat(self, *, progress: float = 0.0) -> None:
        """Record that the run is alive. Raises Stopped if it must end, Superseded if another attempt has started."""
        if self.number is None:
            return
        parameters = {"id": self.task_id, "number": self.number, "progress": progress, "details": Jsonb(self.details)}
        rows = fetch(_HEARTBEAT, parameters)
        if not rows:
            raise Superseded
        if rows[0][0]:
            raise Stopped


@contextmanager
def attempt(task_id: str | None) -> Iterator[Attempt]:
    """Record one run of the task's code, which is the body of the `with`; None: the task has no record.

    Raises what the body raises, GivenUp after the last attempt, Superseded if another attempt has started, JobAborted
    if the task was stopped on request or had ended before (its worker died at the very end): then the body does not
    run. Code after the `with` also runs if the body raised Postponed.
    """
    # each thread has its own connection, which may have been closed by the server since the last job
    close_old_connections()
    run = _begin(UUID(task_id)) if task_id else Attempt(UUID(int=0), None)
    try:
        yield run
    except Stopped:
        end_stopped(run)
        raise JobAborted from None
    except Superseded:
        logger.warning(
            "attempt %s of task %s was considered dead, and another attempt has started", run.number, run.task_id
        )
        raise
    except Postponed as later:
        if _standing(run)[0]:
            end_stopped(run)
            raise JobAborted from None
        with transaction.atomic():
            if not end(run, "SUCCESS", str(later), outcome=None):
                raise Superseded from None
            scheduling.defer_again(run.task_id, at=later.at)
        return
    except Exception as error:  # every failure is recorded, and raised again
        reason = f"{type(error).__name__}: {error}".replace("\x00", "")[:MAX_MESSAGE]
        wants_stop, is_last = _standing(run)
        if wants_stop:
            end_stopped(run, reason)
            raise JobAborted from error
        end(run, "FAILED", reason, outcome="FAILED" if is_last else None)
        if is_last:
            raise GivenUp(f"The last attempt failed: {reason}") from error
        raise
    is_ended = end(run, "SUCCESS", run.message or None, outcome="SUCCESS", progress=1.0)
    if task_id and not is_ended:
        raise Superseded


def _begin(task_id: UUID) -> Attempt:
    hold = holding.current()
    with transaction.atomic():
        # The task is locked before its job, as everywhere. A worker that is given the job after the check below waits
        # for this lock, so its attempt begins after this one.
        fetch("select 1 from task where id = %s for update", [task_id])
        if hold is not None and not hold.is_valid():
            raise Superseded
        execute(LOST, [task_id])
        rows = fetch(_BEGIN, {"id": task_id, "job": None if hold is None else hold.job_id})
    if not rows:
        logger.warning("task %s has ended, or its record was removed: it is not run", task_id)
        raise JobAborted
    return Attempt(task_id, rows[0][0])


def _standing(run: Attempt) -> tuple[bool, bool]:
    """Whether a request asked the task to stop, and whether this was its last attempt."""
    rows = fetch(_STANDING, [run.task_id])
    if not rows:
        return False, False
    wants_stop, attempts, project_id, warehouse_id, queue_name = rows[0]
    most = MOST_ATTEMPTS
    if queue_name in QUEUES and "max-attempts" in QUEUES[queue_name].settings:
        most = queue_settings.value(Scope(project_id, warehouse_id), queue_name, "max-attempts")
    return wants_stop, attempts + 1 >= most


def end_stopped(run: Attempt, reason: str | None = None) -> None:
    """End the attempt of a stopped task: the task is cancelled if that was requested, else it runs again later."""
    with transaction.atomic():
        rows = fetch("select cancel_requested, queue_name from task where id = %s for update", [run.task_id])
        is_over = bool(rows and rows[0][0])
        default = cancelled(rows[0][1]) if is_over else "Stopped on request"
        if not end(run, "CANCELLED", reason or default, outcome="CANCELLED" if is_over else None):
            raise Superseded
        if not is_over:
            scheduling.defer_again(run.task_id, after_s=STOPPED_RETRY_S)


def end(run: Attempt, status: str, message: str | None, *, outcome: str | None, progress: float | None = None) -> bool:
    """Record the end of an attempt, and of the task if `outcome` is given; False if another
    attempt has started since.
    """
    parameters = {"id": run.task_id, "number": run.number, "status": status, "outcome": outcome, "message": message}
    with transaction.atomic():
        rows = fetch(_END, {**parameters, "progress": progress, "details": Jsonb(run.details) if run.details else None})
        if rows and outcome is not None:
            project_id, warehouse_id, *described = rows[0]
            data = {"outcome": outcome, **dict(zip(_DESCRIBED, described, strict=True))}
            if warehouse_id is not None:
                data["warehouse-id"] = str(warehouse_id)
            context = RequestContext(Caller(SYSTEM), str(run.task_id))
            record(Change("endTask", "task", str(run.task_id), project_id, data), context)
    return bool(rows)


_DESCRIBED = ("queue-name", "attempts", "entity-type", "entity-id")
LOST = """
    update task_attempt set ended_at = now(), status = 'FAILED', message = 'Its worker was lost'
    where task_id = %s and ended_at is null
"""
_BEGIN = """
    with begun as (
        update task t set attempt = t.attempt + 1, progress = 0, details = null, message = null, outcome = null,
            finished_at = null, last_heartbeat_at = now(), updated_at = now()
        where t.id = %(id)s and (t.outcome is null or t.outcome = 'FAILED')
            and (%(job)s::bigint is null or t.job_id = %(job)s::bigint)
        returning t.id, t.attempt,
            coalesce((select j.scheduled_at from procrastinate_jobs j where j.id = t.job_id), t.scheduled_for) as at
    )
    insert into task_attempt (task_id, attempt, scheduled_for) select id, attempt, at from begun returning attempt
"""
_HEARTBEAT = """
    update task t set last_heartbeat_at = now(), progress = %(progress)s, details = %(details)s, updated_at = now()
    where t.id = %(id)s and t.attempt = %(number)s
    returning (select j.abort_requested from procrastinate_jobs j where j.id = t.job_id)
"""
_STANDING = """
    select coalesce(j.abort_requested, false), coalesce(j.attempts, 0), t.project_id, t.warehouse_id, t.queue_name
    from task t left join procrastinate_jobs j on j.id = t.job_id where t.id = %s
"""
_END = """
    with ended as (
        update task_attempt set ended_at = now(), status = %(status)s, message = %(message)s,
            details = %(details)s::jsonb, progress = coalesce(%(progress)s::float, progress)
        where task_id = %(id)s and attempt = %(number)s::int
    )
    update task set outcome = %(outcome)s::text, message = %(message)s, updated_at = now(),
        details = coalesce(%(details)s::jsonb, details),
        finished_at = case when %(outcome)s::text is null then null else now() end,
        progress = coalesce(%(progress)s::float, progress), last_heartbeat_at = now()
    where id = %(id)s and (%(number)s::int is null or attempt = %(number)s::int)
    returning project_id, warehouse_id, queue_name, attempt, entity_type, entity_id
"""
