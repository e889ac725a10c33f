"""Removes finished tasks after their retention time: one task for each project, once a day."""

import logging

from django.db import close_old_connections, transaction
from procrastinate.contrib.django import app

from lakewarden.prepared_statements import execute, fetch
from lakewarden.tasks import queue_settings, scheduling
from lakewarden.tasks.attempts import Retries, attempt
from lakewarden.tasks.queues import CLEANUP, QUEUES
from lakewarden.tasks.scope import Entity, Scope

logger = logging.getLogger(__name__)

BATCH = 10_000


@app.periodic(cron="41 2 * * *")
@app.task(name="plan_task_log_cleanup", queue="housekeeping", queueing_lock="plan_task_log_cleanup", pass_context=False)
def plan_task_log_cleanup(timestamp: int) -> int:  # noqa: ARG001 the scheduler passes when it was due
    """Runs each night; queues the cleanup of each project that has something to remove; returns how many."""
    close_old_connections()
    default = QUEUES[CLEANUP].settings["retention-days"].default
    due = fetch(_DUE, {"queue": CLEANUP, "default": default})
    for (project_id,) in due:
        with transaction.atomic():
            request(project_id)
    return len(due)


def request(project_id: str) -> None:
    """Queue the cleanup of one project, in the caller's transaction."""
    lock = f"{CLEANUP}:{project_id}"
    scheduling.add(task_log_cleanup, {}, scope=Scope(project_id), entity=Entity("project", project_id), lock=lock)


@app.task(name="task_log_cleanup", queue=CLEANUP, retry=Retries())
def task_log_cleanup(task_id: str) -> int:
    """Remove tasks that succeeded or were cancelled longer ago than the project's setting `retention-days`.

    Returns how many. Failed tasks stay until they are run again or cancelled, because their work is not done.
    """
    removed = 0
    with attempt(task_id) as run:
        rows = fetch("select project_id from task where id = %s", [task_id])
        project_id = rows[0][0] if rows else ""
        days = queue_settings.value(Scope(project_id), CLEANUP, "retention-days")
        while gone := len(fetch(_FORGET, {"project_id": project_id, "days": days, "batch": BATCH})):
            removed += gone
            run.details["tasks-removed"] = removed
            run.heartbeat()
        execute(_FORGET_JOBS, [])
        run.message = f"{removed} tasks were older than {days} days"
    logger.info("project %s: %d finished tasks were older than %d days and were removed", project_id, removed, days)
    return removed


_DUE = """
    select distinct t.project_id from task t
    left join task_queue_config c on c.project_id = t.project_id and c.warehouse_id is null and c.queue_name = %(queue)s
    where t.outcome in ('SUCCESS', 'CANCELLED') and t.finished_at
        < now() - make_interval(days => coalesce((c.settings->>'retention-days')::int, %(default)s))
        and not exists (select 1 from task p where p.project_id = t.project_id and p.warehouse_id is null
                        and p.queue_name = %(queue)s and p.outcome is null)
"""
_FORGET = """
    delete from task where id in (
        select id from task where project_id = %(project_id)s and outcome in ('SUCCESS', 'CANCELLED')
            and finished_at < now() - make_interval(days => %(days)s)
        limit %(batch)s
    )
    returning 1
"""
# jobs of stopped runs, whose task has another job now or has ended
_FORGET_JOBS = """
    delete from procrastinate_jobs j
    where j.status = 'aborted' and not exists (select 1 from task t where t.job_id = j.id and t.outcome is null)
"""
