"""The worker's job manager: it ends only jobs that the worker still holds, and survives interruptions of the database.

A worker that was silent for too long (a paused machine) has lost its jobs to another worker. procrastinate does not
check that: when the first worker goes on, it would finish the job of the other one, or queue it a second time.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Final, TypeVar

import psycopg
from procrastinate import utils
from procrastinate.connector import BaseConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager, NotificationCallback

logger = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 10.0
END_WITHIN_S: Final = 20.0
"""For how long to try to record the end of a job; after that it is given back to the queue and runs once more."""


class HeldJobs(JobManager):
    """The job manager of one worker; it identifies a held job by id and `attempts` (see `holding.Hold`).

    `answered_at` (monotonic seconds) is when the database last answered.
    """

    def __init__(
        self,
        connector: BaseConnector,
        *,
        answered_at: float | None = None,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(connector)
        self.answered_at = time.monotonic() if answered_at is None else answered_at
        self._is_stopping = is_stopping
        self._held: set[tuple[int | None, int]] = set()
        self._has_lost_some = False

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """Like the library's; None if the database is not reachable: the worker asks again soon."""
        try:
            if self._has_lost_some:
                # a job may have been assigned to this worker although the answer was lost: nobody would run it while
                # this worker is alive, so it is given back
                await self.connector.execute_query_async(
                    _GIVE_BACK, worker_id=worker_id, held=[number for number, _ in self._held]
                )
                self._has_lost_some = False
            job = await super().fetch_job(queues, worker_id)
        except ConnectorException as error:
            if not _is_away(error):
                raise
            self._has_lost_some = True
            logger.warning("no job can be fetched, the database is unreachable: %s", str(error.__cause__).strip())
            return None
        self.answered_at = time.monotonic()
        if job is not None:
            self._held.add((job.id, job.attempts))
        return job

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:  # noqa: FBT001 the library's
        parameters = {"id": job.id, "attempts": job.attempts, "status": status.value, "delete_job": delete_job}
        await self._ended(job, lambda: self.connector.execute_query_async(_FINISH, **parameters))

    async def retry_job(
        self,
        job: Job,
        retry_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        """Like the library's: None keeps a value as it is, and `retry_at` None means now."""
        parameters = {"at": retry_at or utils.utcnow(), "priority": priority, "queue": queue, "lock": lock}
        again = {"id": job.id, "attempts": job.attempts, **parameters}
        await self._ended(job, lambda: self.connector.execute_query_async(_RETRY, **again))

    async def update_heartbeat(self, worker_id: int) -> None:
        await self._patiently(lambda: super(HeldJobs, self).update_heartbeat(worker_id))

    async def defer_periodic_job(self, job: Job, periodic_id: str, defer_timestamp: int) -> int | None:
        return await self._patiently(
            lambda: super(HeldJobs, self).defer_periodic_job(job, periodic_id, defer_timestamp)
        )

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        await self._patiently(
            lambda: super(HeldJobs, self).listen_for_jobs(on_notification=on_notification, queues=queues)
        )

    async def unregister_worker(self, worker_id: int) -> None:
        """Like the library's; a worker that was asked to stop records that, for `lakewarden doctor`."""
        await super().unregister_worker(worker_id)
        if self._is_stopping():
            await self.connector.execute_query_async(_STOPPED, host=socket.gethostname())

    async def _ended(self, job: Job, record_end: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._patiently(record_end, within_s=END_WITHIN_S)
        except ConnectorException as error:
            self._has_lost_some = self._has_lost_some or _is_away(error)
            raise
        finally:
            # the key has `attempts`, because this worker may have been given a job that it lost before
            self._held.discard((job.id, job.attempts))

    async def _patiently(self, ask: Callable[[], Awaitable[T]], *, within_s: float | None = None) -> T:
        """Repeat `ask` until the database answers. Only for idempotent statements."""
        begun, pause_s = time.monotonic(), FIRST_PAUSE_S
        while True:
            try:
                answer = await ask()
            except ConnectorException as error:
                if not _is_away(error) or (within_s is not None and time.monotonic() - begun > within_s):
                    raise
                if pause_s == FIRST_PAUSE_S:
                    logger.warning("the database is unreachable and is tried again: %s", str(error.__cause__).strip())
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                self.answered_at = time.monotonic()
                return answer


def _is_away(error: ConnectorException) -> bool:
    return isinstance(error.__cause__, psycopg.OperationalError | psycopg.InterfaceError)


_HELD = """
    with held as materialized (
        select id from procrastinate_jobs
        where id = %(id)s and status = 'doing' and attempts = %(attempts)s for update
    )
"""
_FINISH = _HELD + "select procrastinate_finish_job_v1(id, %(status)s, %(delete_job)s) from held"  # noqa: S608 text of our own
_RETRY = _HELD + "select procrastinate_retry_job_v2(id, %(at)s, %(priority)s, %(queue)s, %(lock)s) from held"  # noqa: S608 as above
_GIVE_BACK = """
    with lost as materialized (
        select id from procrastinate_jobs
        where worker_id = %(worker_id)s and status = 'doing' and id <> all(%(held)s::bigint[]) for update
    )
    select procrastinate_retry_job_v2(id, now(), null, null, null) from lost
"""
_STOPPED = """
    insert into worker_stop (id, host, stopped_at) values (1, %(host)s, now())
    on conflict (id) do update set host = excluded.host, stopped_at = excluded.stopped_at
"""
