"""Queues, reschedules and withdraws tasks, always in the transaction of the change that needs them.

A task is one row, which the management API shows, with a job (procrastinate's), which a worker runs. A task that runs
again gets a new job but keeps its id.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from procrastinate.tasks import Task
from psycopg.types.json import Jsonb

from lakewarden.ids import new_id
from lakewarden.prepared_statements import execute, fetch
from lakewarden.tasks.scope import Entity, Scope


def add(
    task: Task[Any, Any, Any],
    arguments: dict[str, Any],
    *,
    scope: Scope,
    entity: Entity,
    lock: str | None = None,
    scheduled_for: datetime | None = None,
    parent_id: UUID | None = None,
) -> UUID:
    """Queue `task`, which is called with `task_id` and the arguments, in the caller's transaction; returns its id.

    Tasks with the same `lock` run one at a time.
    """
    row = planned(task, arguments, scope=scope, entity=entity, lock=lock)
    row["arguments"] = Jsonb(row["arguments"])
    fetch(_ADD, {**row, "at": scheduled_for, "parent_id": parent_id})
    identifier: UUID = row["id"]
    return identifier


def planned(
    task: Task[Any, Any, Any], arguments: dict[str, Any], *, scope: Scope, entity: Entity, lock: str | None
) -> dict[str, Any]:
    """What `add` would queue, as a row for ADDED."""
    identifier = new_id()
    given = {"task_id": str(identifier), **arguments}
    job = {"queue": task.queue, "name": task.name, "lock": lock, "arguments": given}
    about = {"entity_type": entity.type, "entity_id": entity.id, "entity_name": list(entity.name)}
    return {"id": identifier, **scope.parameters, **job, **about}


def defer_again(identifier: UUID, *, at: datetime | None = None, after_s: int = 0) -> None:
    """Give the task a new job, due at its `resume_at`, else at `at`, else in `after_s`
    seconds, and clear its outcome.
    """
    fetch(_DEFER_AGAIN, {"id": identifier, "at": at, "after_s": after_s})


def withdraw(identifier: UUID, *, reason: str) -> None:
    """Cancel the task in the caller's transaction; a running one learns it from its next heartbeat or its end."""
    execute(_WITHDRAW, {"id": identifier, "reason": reason})


def hurry(identifiers: Collection[UUID]) -> None:
    """Make those of the tasks that wait run as soon as possible, in the caller's transaction."""
    fetch(_LOCK, [list(identifiers)])
    execute(_HURRY, [list(identifiers)])


_LOCK = "select id from task where id = any(%s::uuid[]) and outcome is null order by id for update"
_HURRY = """
    with hurried as (
        update task t set scheduled_for = now(), updated_at = now()
        where t.id = any(%s::uuid[]) and t.outcome is null returning t.job_id
    )
    update procrastinate_jobs j set scheduled_at = now() from hurried
    where j.id = hurried.job_id and j.status = 'todo'
"""
_WITHDRAW = """
    with unqueued as (
        delete from procrastinate_jobs where id = (select job_id from task where id = %(id)s) and status <> 'doing'
    )
    update task set outcome = 'CANCELLED', finished_at = now(), updated_at = now(), message = %(reason)s::text
    where id = %(id)s and outcome is null
"""
# the more tasks of its project are waiting, the lower is the priority of a new one: projects take turns, and one that
# queues thousands of tasks does not delay the others
_TURN = """(select -count(*)::int from (
        select from task where project_id = {project} and queue_name = {queue} and outcome is null
            and scheduled_for <= coalesce({at}, now()) limit 1000) behind)"""
_JOB = """(procrastinate_defer_jobs_v1(array[row({values})::procrastinate_job_to_defer_v1]))[1] as id"""
_TURN_OF_NEW = _TURN.format(project="%(project_id)s", queue="%(queue)s", at="%(at)s::timestamptz")
_TURN_OF_DUE = _TURN.format(project="due.project_id", queue="due.queue_name", at="due.at")
_ADD = f"""
    with job as (
        select {
    _JOB.format(
        values=f"%(queue)s::text, %(name)s::text, {_TURN_OF_NEW}, %(lock)s::text, null, %(arguments)s::jsonb, "
        "%(at)s::timestamptz"
    )
}
    )
    insert into task (id, project_id, warehouse_id, queue_name, task_name, arguments, lock, job_id, entity_type,
                      entity_id, entity_name, parent_id, scheduled_for)
    select %(id)s, %(project_id)s, %(warehouse_id)s, %(queue)s, %(name)s, %(arguments)s::jsonb, %(lock)s::text, job.id,
           %(entity_type)s, %(entity_id)s, %(entity_name)s::text[], %(parent_id)s, coalesce(%(at)s::timestamptz, now())
    from job
    returning id
"""  # noqa: S608 text of our own
PLANNED: Final = """id uuid, project_id text, warehouse_id uuid, queue text, name text, lock text, arguments jsonb,
    entity_type text, entity_id text, entity_name text[]"""
"""The columns of what `planned` returns."""
ADDED: Final = f"""
    turns as materialized (
        select project_id, queue, at, {_TURN.format(project="due.project_id", queue="due.queue", at="due.at")} as turn
        from (select distinct project_id, queue, at from to_add) due
    ),
    jobs as materialized (
        select a.id as task_id, {
    _JOB.format(values="a.queue, a.name, t.turn - a.place, a.lock, null, a.arguments, a.at")
}
        from (
            select *, row_number() over (partition by project_id order by id)::int - 1 as place from to_add
        ) a
        join turns t on t.project_id = a.project_id and t.queue = a.queue and t.at is not distinct from a.at
    ),
    tasks as (
        insert into task (id, project_id, warehouse_id, queue_name, task_name, arguments, lock, job_id, entity_type,
                          entity_id, entity_name, scheduled_for)
        select a.id, a.project_id, a.warehouse_id, a.queue, a.name, a.arguments, a.lock, jobs.id, a.entity_type,
               a.entity_id, a.entity_name, coalesce(a.at, now())
        from to_add a join jobs on jobs.task_id = a.id
    )
"""  # noqa: S608 text of our own
"""SQL for a statement that adds several tasks: follows `to_add` in its `with` list, which has the columns PLANNED, and
`at` (null: now).
"""
_DEFER_AGAIN = f"""
    with due as (
        select id, project_id, queue_name, task_name, lock, arguments,
               coalesce(resume_at, %(at)s::timestamptz, now() + make_interval(secs => %(after_s)s)) as at
        from task where id = %(id)s
    ),
    job as (
        select due.at, {
    _JOB.format(values=f"due.queue_name, due.task_name, {_TURN_OF_DUE}, due.lock, null, due.arguments, due.at")
}
        from due
    )
    update task set job_id = job.id, scheduled_for = job.at, resume_at = null, outcome = null, finished_at = null,
                    cancel_requested = false, updated_at = now()
    from job where task.id = %(id)s
    returning task.id
"""  # noqa: S608 text of our own
