"""Purges that are not done, found by the place that they remove: for whoever wants it, or deletes what is around it.

Tasks are locked before their jobs, here as everywhere.
"""

from typing import Final

from lakewarden.prepared_statements import fetch
from lakewarden.storage.places import range_below
from lakewarden.tasks import records
from lakewarden.tasks.queues import PURGE

# the form that the index task_purge_place has
PLACES: Final = f"""
    select t.lock as location, t.attempt = 0 and exists (
            select 1 from procrastinate_jobs j where j.id = t.job_id and j.status = 'todo' and j.attempts = 0
                and j.scheduled_at is not null) as can_be_withdrawn
    from task t where t.queue_name = '{PURGE}' and (t.outcome is null or t.outcome = 'FAILED')
"""  # noqa: S608 text of our own
"""SQL for other modules' queries, which read it as `({PLACES}) purge`, once for each index that they look `location` up
in: the places of purges that are not done, and whether that still waits for its time and can be withdrawn."""


def withdraw(location: str, *, reason: str) -> None:
    """Cancel the purge of `location` if it waits for its time, as part of the caller's transaction.

    One that was asked for explicitly never waits, and one that has begun goes on.
    """
    for (task_id,) in fetch(_LOCK, [location]):
        if fetch(_UNQUEUE, [task_id]):
            records.withdraw(task_id, reason=reason)


def count_below(location: str) -> int:
    """How many purges of places below `location` wait, run or have failed."""
    return int(fetch(_COUNT, {"queue": PURGE, **range_below(location)})[0][0])


_LOCK = f"""
    select t.id from task t
    where t.queue_name = '{PURGE}' and (t.outcome is null or t.outcome = 'FAILED') and t.lock = %s and t.attempt = 0
    order by t.id for update
"""  # noqa: S608 text of our own
# a worker that takes the job meanwhile has it locked: then its status is another one when we come to it
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
