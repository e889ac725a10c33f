"""Finds purges that are not done by the location that they remove; for creations at and deletions around it.

Tasks are locked before their jobs, as everywhere: otherwise two transactions could deadlock.
"""

from typing import Final

from lakewarden.prepared_statements import fetch
from lakewarden.storage.places import range_below
from lakewarden.tasks import scheduling
from lakewarden.tasks.queues import PURGE

# the condition must have the form of the index task_purge_place
PLACES: Final = f"""
    select t.lock as location, t.attempt = 0 and exists (
            select 1 from procrastinate_jobs j where j.id = t.job_id and j.status = 'todo' and j.attempts = 0
                and j.scheduled_at is not null) as can_be_withdrawn
    from task t where t.queue_name = '{PURGE}' and (t.outcome is null or t.outcome = 'FAILED')
"""  # noqa: S608 text of our own
"""SQL that other modules' queries include as `({PLACES}) purge`: the locations of purges that are not done, and whether
each is still waiting for its time and can be withdrawn."""


def withdraw(location: str, *, reason: str) -> None:
    """Cancel the purge of `location` if it is waiting for its time, in the caller's transaction.

    A purge that was requested explicitly never waits; one that has begun is not cancelled.
    """
    for (task_id,) in fetch(_LOCK, [location]):
        if fetch(_UNQUEUE, [task_id]):
            scheduling.withdraw(task_id, reason=reason)


def count_below(location: str) -> int:
    """How many purges of locations below `location` are waiting, running or failed."""
    return int(fetch(_COUNT, {"queue": PURGE, **range_below(location)})[0][0])


_LOCK = f"""
    select t.id from task t
    where t.queue_name = '{PURGE}' and (t.outcome is null or t.outcome = 'FAILED') and t.lock = %s and t.attempt = 0
    order by t.id for update
"""  # noqa: S608 text of our own
# if a worker is taking the job, this statement waits for its lock and then sees the new status
_UNQUEUE = """
    delete from procrastinate_jobs j using task t
    where t.id = %s and j.id = t.job_id and j.status = 'todo' and j.attempts = 0 and j.scheduled_at is not null
    returning 1
"""
_COUNT = """
    select count(*) from procrastinate_jobs
    where queue_name = %(queue)s and status in ('todo', 'doing', 'failed')
        and lock ~>=~ %(from)s and lock ~<~ %(to)s
"""
