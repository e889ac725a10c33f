"""Workers that are thought dead and go on, and tasks whose job is lost: each task is ended once, and none for ever open.

The moments at which a worker may die, or be thought dead and go on, and who ends the task:

fetched, not begun           the job is given back; the former worker's late beginning is refused (it holds nothing)
begun                        the job is given back; the former attempt finds out at its next sign of life
announced, removed           the next attempt reads the announcement, and counts it; the former settles nothing any more
settled                      the next attempt finds what is left
task ended, job not          the job is given back, and its run finds nothing to do
stopped, new job, old not    the old job is given up, and belongs to no task
given up, task not settled   the task is an orphan, settled by whoever looks next
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
from procrastinate.exceptions import JobAborted
from procrastinate.jobs import Job

from lakewarden.tasks import attempts, holding
from lakewarden.tasks.attempts import Retries, Superseded
from lakewarden.tasks.holding import Hold
from lakewarden.tasks.orphans import settle_orphans
from tenants.models import Warehouse
from tests.integration.tasks.purges import ask, fill, ledger, outcome, run, sql

JOB = Job(id=1, queue="q", lock=None, queueing_lock=None, task_name="t", attempts=40)
NAMES = ("metadata/v1.json", "data/a.parquet")


@pytest.fixture
def folder(warehouse: Warehouse, tmp_path: Path) -> Path:
    return tmp_path / "lake" / "sales" / "orders"


def take(task: UUID) -> Hold:
    """As a worker fetches it; again, after it was given back."""
    ((number, count),) = sql(
        "update procrastinate_jobs j set status = 'doing' from task t where t.job_id = j.id and t.id = %s "
        "returning j.id, j.attempts",
        task,
    )
    return Hold(number, count)


def give_back(hold: Hold) -> None:
    sql("select procrastinate_retry_job_v2(%s, now(), null, null, null)", hold.job_id)


@contextmanager
def holding_it(hold: Hold) -> Iterator[None]:
    token = holding._CURRENT.set(hold)
    try:
        yield
    finally:
        holding._CURRENT.reset(token)


def test_a_worker_that_begins_after_its_job_was_given_to_another_changes_nothing(
    warehouse: Warehouse, folder: Path
) -> None:
    expected = fill(folder, NAMES)
    task = ask(warehouse, folder)
    former = take(task)
    give_back(former)
    present = take(task)
    with holding_it(present):
        attempt = attempts._begin(task)
    with holding_it(former), pytest.raises(Superseded):
        run(task)
    attempt.heartbeat()
    assert outcome(task)[0] is None
    with holding_it(present):
        run(task)
    assert outcome(task)[0] == "SUCCESS"
    assert ledger(task) == expected


def test_a_job_that_is_no_longer_the_tasks_own_does_nothing(warehouse: Warehouse, folder: Path) -> None:
    """Its worker died when it had given the stopped task another job."""
    fill(folder, NAMES)
    task = ask(warehouse, folder)
    former = take(task)
    sql("select procrastinate_cancel_job_v1(%s, true, false)", former.job_id)
    with holding_it(former), pytest.raises(JobAborted):
        run(task)
    with holding_it(former), pytest.raises(JobAborted):
        run(task)
    assert len(list(folder.rglob("*.*"))) == 2
    assert sql("select count(*) from procrastinate_jobs where status = 'todo'") == [(1,)]


def test_a_superseded_run_does_not_end_the_job() -> None:
    decision = Retries().get_retry_decision(exception=Superseded(), job=JOB)
    assert decision is not None


def test_a_former_attempt_gives_the_task_no_other_job(warehouse: Warehouse, folder: Path) -> None:
    task = ask(warehouse, folder)
    former = attempts._begin(task)
    attempts._begin(task)
    with pytest.raises(Superseded):
        attempts.end_stopped(former)
    assert sql("select count(*) from procrastinate_jobs") == [(1,)]


ENDED = {
    "aborted": ("update procrastinate_jobs set status = 'aborted'", None),
    "succeeded": ("update procrastinate_jobs set status = 'succeeded'", None),
    "gone": ("delete from procrastinate_jobs", None),
    "failed": ("update procrastinate_jobs set status = 'failed'", "FAILED"),
    "stopped": ("update procrastinate_jobs set status = 'failed', abort_requested = true", None),
    "cancelled": (
        """with c as (update task set cancel_requested = true)
        update procrastinate_jobs set status = 'failed', abort_requested = true""",
        "CANCELLED",
    ),
}


@pytest.mark.parametrize("how", ENDED)
def test_a_task_whose_job_has_ended_without_it_is_settled(warehouse: Warehouse, folder: Path, how: str) -> None:
    statement, after = ENDED[how]
    fill(folder, NAMES)
    task = ask(warehouse, folder)
    take(task)
    attempts._begin(task)
    sql(statement)
    settle_orphans()
    assert outcome(task)[0] == after
    assert sql("select 1 from task_attempt where ended_at is null") == []
    waiting = sql("select j.status::text from procrastinate_jobs j join task t on t.job_id = j.id")
    assert waiting == [("todo",)] if after is None else waiting in ([], [("failed",)])
    settle_orphans()
    assert sql("select count(*) from procrastinate_jobs where status = 'todo'") == [(1 if after is None else 0,)]
    if after is None:
        run(task)
        assert (outcome(task)[0], folder.exists()) == ("SUCCESS", False)


def test_tasks_that_wait_or_run_or_are_over_are_no_orphans(warehouse: Warehouse, folder: Path) -> None:
    fill(folder, NAMES)
    _, running, over = (ask(warehouse, folder.with_name(name)) for name in ("a", "b", "c"))
    take(running)
    run(over)
    before = sql("select id, job_id, outcome from task order by id")
    settle_orphans()
    assert sql("select id, job_id, outcome from task order by id") == before
