"""What a worker does to a job that it holds, and to one that another holds by now."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from procrastinate.contrib.django import app
from procrastinate.contrib.django.django_connector import DjangoConnector
from procrastinate.jobs import Job, Status

from lakewarden.tasks.held_jobs import HeldJobs
from tests.integration.tasks.purges import sql

Deed = Callable[[HeldJobs, Job], Awaitable[None]]

DEEDS: dict[str, Deed] = {
    "finish": lambda manager, job: manager.finish_job(job, Status.SUCCEEDED, delete_job=False),
    "finish and delete": lambda manager, job: manager.finish_job(job, Status.SUCCEEDED, delete_job=True),
    "retry": lambda manager, job: manager.retry_job(job),
}
AFTER = {"finish": [("succeeded", 4)], "finish and delete": [], "retry": [("todo", 4)]}


def do(deed: str, *, attempts: int) -> list[tuple[str, int]]:
    """With a job that is being run for the fourth time; returns its state afterwards."""
    ((number,),) = sql(
        "insert into procrastinate_jobs (queue_name, task_name, status, attempts) values ('q', 't', 'doing', 3) "
        "returning id"
    )
    job = Job(id=number, queue="q", lock=None, queueing_lock=None, task_name="t", attempts=attempts)
    connector = app.connector
    assert isinstance(connector, DjangoConnector)

    async def run() -> None:
        with app.replace_connector(connector.get_worker_connector()) as running:
            async with running.open_async():
                await DEEDS[deed](HeldJobs(running.connector), job)

    asyncio.run(run())
    return [(status, count) for status, count in sql("select status::text, attempts from procrastinate_jobs")]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("deed", DEEDS)
def test_a_job_that_the_worker_holds_is_ended(deed: str) -> None:
    assert do(deed, attempts=3) == AFTER[deed]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("deed", DEEDS)
def test_a_job_that_was_given_to_another_is_left_to_him(deed: str) -> None:
    assert do(deed, attempts=2) == [("doing", 3)]
