"""Finds tasks that have not ended but have no job that would run them again; they are ended or get a new job.

A job ends only after its task, so there are few of them: jobs that lost their worker while they were asked to stop,
jobs whose last run failed before the failure could be recorded, and leftovers of older releases.
"""

import logging
from uuid import UUID

from django.db import close_old_connections, transaction

from lakewarden.prepared_statements import execute, fetch
from lakewarden.tasks import scheduling
from lakewarden.tasks.attempts import LOST, Attempt, end, end_stopped

logger = logging.getLogger(__name__)

MOST = 1000


def settle_orphans() -> None:
    """Called each minute by `retry_stalled_jobs`."""
    close_old_connections()
    for task_id, *_ in fetch(_ORPHANS + " limit %(most)s", {"id": None, "most": MOST}):
        with transaction.atomic():
            fetch("select 1 from task where id = %s for update", [task_id])
            # read by a new statement: another process may have given the task a job before this one had the lock
            for _, job_id, is_failed, is_stopped in fetch(_ORPHANS, {"id": task_id}):
                _settle(task_id, job_id, is_failed=is_failed, is_stopped=is_stopped)


def _settle(task_id: UUID, job_id: int | None, *, is_failed: bool, is_stopped: bool) -> None:
    execute(LOST, [task_id])
    if is_failed and not is_stopped:
        reason = "Its last run failed before the reason could be written down: see the log of the workers"
        end(Attempt(task_id, None), "FAILED", reason, outcome="FAILED")
        logger.warning("task %s failed: its job had failed before that was written down", task_id)
        return
    if is_stopped:
        end_stopped(Attempt(task_id, None))
    else:
        scheduling.defer_again(task_id)
    execute("delete from procrastinate_jobs where id = %s", [job_id])
    logger.warning("task %s had lost its job: it is %s", task_id, "stopped as was asked" if is_stopped else "run again")


_ORPHANS = """
    select t.id, j.id, coalesce(j.status = 'failed', false), coalesce(j.abort_requested, false)
    from task t left join procrastinate_jobs j on j.id = t.job_id
    where t.outcome is null and (j.id is null or j.status not in ('todo', 'doing'))
        and (%(id)s::uuid is null or t.id = %(id)s::uuid)
"""
