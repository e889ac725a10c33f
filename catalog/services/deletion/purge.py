"""What a purge may remove: the places of its own object alone, looked at right before each batch; and when it is
taken back, for somebody who takes the place while it still waits.
"""

from uuid import UUID

from catalog.models import occupied_locations
from lakewarden.prepared_statements import fetch
from lakewarden.storage.interface import StorageError
from lakewarden.tasks import purge, records


def ensure_own(location: str, owner: str | None) -> None:
    """Raises StorageError when another object's, a namespace's or a warehouse's location is in the way."""
    if foreign := occupied_locations.foreign_to_purge(location, _id(owner)):
        raise StorageError(f"{location} is, holds or lies in {foreign}: nothing of it is removed")


def settled(location: str, owner: str | None) -> None:
    """The place is nobody's from now on."""
    if identifier := _id(owner):
        occupied_locations.forget_purged(identifier, location)


def take_back(location: str) -> None:
    """Cancel the removal of the files at `location` if it waits for its time, as part of the caller's transaction.

    One that somebody asked for in so many words never waits, and one that has begun goes on: the location is then
    still taken (`locations.ensure_apart`).
    """
    for (task_id,) in fetch(_WITHDRAW, {"queue": purge.QUEUE, "location": location}):
        records.withdraw(task_id, reason="Taken back: a table was made or registered there")


def _id(owner: str | None) -> UUID | None:
    try:
        return UUID(owner or "")
    except ValueError:
        return None


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
