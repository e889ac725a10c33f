"""Gives jobs whose worker died (kill -9, power failure) back to the queue."""

import logging

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from procrastinate.contrib.django import app
from procrastinate.exceptions import UniqueViolation
from procrastinate.jobs import Status

from lakewarden.prepared_statements import fetch
from lakewarden.tasks.orphans import settle_orphans

logger = logging.getLogger(__name__)

PRIORITY = 100  # higher than all others: it must not wait for the work that has piled up


@app.periodic(cron="* * * * *")
@app.task(
    name="retry_stalled_jobs",
    queue="housekeeping",
    queueing_lock="retry_stalled_jobs",
    priority=PRIORITY,
    pass_context=False,
)
async def retry_stalled_jobs(timestamp: int) -> None:  # noqa: ARG001 the scheduler passes when it was due
    """Runs each minute; a worker without a heartbeat for 30 seconds (the library's default) counts as dead.

    A task is given more time if its queue's `max-seconds-since-last-heartbeat` says so.
    """
    stalled = list(await app.job_manager.get_stalled_jobs())
    patient = await sync_to_async(_given_time)([job.id for job in stalled if job.id is not None]) if stalled else set()
    for job in stalled:
        if job.id not in patient:
            logger.warning("job %s (%s) lost its worker and is started again", job.id, job.task_name)
            try:
                await app.job_manager.retry_job(job)
            # the same periodic job is queued already (queueing_lock); without this, the loop would end here
            except UniqueViolation:
                await app.job_manager.finish_job(job, Status.FAILED, delete_job=True)
    await sync_to_async(settle_orphans)()


def _given_time(job_ids: list[int]) -> set[int]:
    close_old_connections()
    return {job_id for (job_id,) in fetch(_GIVEN_TIME, [job_ids])}


_GIVEN_TIME = """
    select t.job_id from task t
    join task_queue_config c on c.project_id = t.project_id and c.warehouse_id is not distinct from t.warehouse_id
        and c.queue_name = t.queue_name
    where t.job_id = any(%s::bigint[]) and t.last_heartbeat_at > now() - make_interval(secs => c.max_silence_s)
"""
