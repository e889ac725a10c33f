"""Takes back the removal of a dropped table's files, for somebody who takes the place while it still waits."""

from lakewarden.prepared import fetch
from lakewarden.tasks import purge, records


def take_back(location: str) -> None:
    """Cancel the removal of the files at `location` if it waits for its time, as part of the caller's transaction.

    One that somebody asked for in so many words never waits, and one that has begun goes on: the location is then
    still taken (`locations.ensure_apart`).
    """
    for (task_id,) in fetch(_WITHDRAW, {"queue": purge.QUEUE, "location": location}):
        records.withdraw(task_id, reason="Taken back: a table was made or registered there")


# a worker that takes the job meanwhile has it locked: then its status is another one when we come to it
_WITHDRAW = """
    with withdrawn as (
        delete from procrastinate_jobs j using task t
        where t.job_id = j.id and t.queue_name = %(queue)s and j.queue_name = %(queue)s and j.lock = %(location)s
            and j.status = 'todo' and t.attempt = 0 and j.attempts = 0 and j.scheduled_at is not null
        returning t.id
    )
    select id from withdrawn
"""
