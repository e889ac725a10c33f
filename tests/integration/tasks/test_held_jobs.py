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


def as_worker(story: Callable[[HeldJobs], Awaitable[None]]) -> None:
    connector = app.connector
    assert isinstance(connector, DjangoConnector)

    async def run() -> None:
        with app.replace_connector(connector.get_worker_connector()) as running:
            async with running.open_async():
                await story(HeldJobs(running.connector))

    asyncio.run(run())


def do(deed: str, *, attempts: int) -> list[tuple[str, int]]:
    """With a job that is being run for the fourth time; returns its state afterwards."""
    ((number,),) = sql(
        "insert into procrastinate_jobs (queue_name, task_name, status, attempts) values ('q', 't', 'doing', 3) "
        "returning id"
    )
    job = Job(id=number, queue="q", lock=None, queueing_lock=None, task_name="t", attempts=attempts)
    as_worker(lambda manager: DEEDS[deed](manager, job))
    return [(status, count) for status, count in sql("select status::text, attempts from procrastinate_jobs")]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("deed", DEEDS)
def test_a_job_that_the_worker_holds_is_ended(deed: str) -> None:
    assert do(deed, attempts=3) == AFTER[deed]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("deed", DEEDS)
def test_a_job_that_was_given_to_another_is_left_to_him(deed: str) -> None:
    assert do(deed, attempts=2) == [("doing", 3)]


@pytest.mark.usefixtures("database")
def test_a_job_that_the_worker_was_given_again_counts_as_held() -> None:
    """It was thought dead, gave its own job back, and fetched that anew before the first run was through."""
    ((worker,),) = sql("insert into procrastinate_workers default values returning id")
    sql("insert into procrastinate_jobs (queue_name, task_name) values ('q', 't')")

    async def story(manager: HeldJobs) -> None:
        first = await manager.fetch_job(None, worker)
        assert first is not None
        await manager.retry_job(first)
        assert await manager.fetch_job(None, worker) is not None
        await manager.finish_job(first, Status.SUCCEEDED, delete_job=True)
        manager._has_lost_some = True  # whoever has lost one gives back all that it does not hold
        assert await manager.fetch_job(None, worker) is None

    as_worker(story)
    assert sql("select status::text, attempts from procrastinate_jobs") == [("doing", 1)]
