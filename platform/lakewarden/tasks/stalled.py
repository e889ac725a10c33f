"""Jobs whose worker died (kill -9, power) are given back to the queue."""

import logging

from procrastinate.contrib.django import app

logger = logging.getLogger(__name__)


@app.periodic(cron="* * * * *")
@app.task(name="retry_stalled_jobs", queue="housekeeping", queueing_lock="retry_stalled_jobs", pass_context=False)
async def retry_stalled_jobs(timestamp: int) -> None:  # noqa: ARG001 the scheduler passes when it was due
    """Runs each minute; a worker without a heartbeat for 30 s (the library's default) counts as dead."""
    for job in await app.job_manager.get_stalled_jobs():
        logger.warning("job %s (%s) lost its worker and is started again", job.id, job.task_name)
        await app.job_manager.retry_job(job)
