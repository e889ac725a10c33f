"""The queue as a worker sees it: what the worker does not hold any more, it does not end.

A worker that was silent for too long (a paused machine) has lost its jobs to another. When it goes on, and is through
with one, the job is the other's: without this, it would be taken from under it, or be run once more beside it.
"""

from datetime import datetime

from procrastinate import utils
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager


class HeldJobs(JobManager):
    """Each time that a job is given back its `attempts` grow: that is what tells one holder from the next."""

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:  # noqa: FBT001 the library's
        told = {"id": job.id, "attempts": job.attempts, "status": status.value, "delete_job": delete_job}
        await self.connector.execute_query_async(_FINISH, **told)

    async def retry_job(
        self,
        job: Job,
        retry_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        """As the library's, where None leaves a thing as it is, and `retry_at` None is now."""
        told = {"at": retry_at or utils.utcnow(), "priority": priority, "queue": queue, "lock": lock}
        await self.connector.execute_query_async(_RETRY, id=job.id, attempts=job.attempts, **told)


_HELD = """
    with held as materialized (
        select id from procrastinate_jobs
        where id = %(id)s and status = 'doing' and attempts = %(attempts)s for update
    )
"""
_FINISH = _HELD + "select procrastinate_finish_job_v1(id, %(status)s, %(delete_job)s) from held"  # noqa: S608 text of our own
_RETRY = _HELD + "select procrastinate_retry_job_v2(id, %(at)s, %(priority)s, %(queue)s, %(lock)s) from held"  # noqa: S608 as above
