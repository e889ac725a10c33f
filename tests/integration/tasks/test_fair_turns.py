"""A project with many tasks does not delay others: the tasks of different projects take turns."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import transaction

from lakewarden.tasks import purge, scheduling
from lakewarden.tasks.scope import Entity, Scope
from tests.integration.tasks.purges import sql

pytestmark = pytest.mark.usefixtures("database")

GREEDY, MODEST = "greedy", "modest"


def ask(project: str, count: int, *, not_before: datetime | None = None) -> None:
    scope = Scope(project, uuid4())
    for _ in range(count):
        table = Entity("table", str(uuid4()))
        with transaction.atomic():
            purge.request({}, f"file:///{table.id}", scope=scope, entity=table, owner=table.id, not_before=not_before)


def taken(count: int) -> Sequence[str]:
    """The projects of the next jobs that a worker takes."""
    ((worker,),) = sql("insert into procrastinate_workers default values returning id")
    found = []
    for _ in range(count):
        ((job,),) = sql("select id from procrastinate_fetch_job_v2(array['tabular_purge'], %s)", worker)
        ((project,),) = sql("select project_id from task where job_id = %s", job)
        found.append(project)
    return found


@pytest.mark.parametrize("not_before", [None, datetime.now(UTC) - timedelta(hours=1)])
def test_who_asks_for_little_does_not_wait_for_who_asks_for_much(not_before: datetime | None) -> None:
    ask(GREEDY, 20, not_before=not_before)
    ask(MODEST, 2, not_before=not_before)
    assert taken(5) == [GREEDY, MODEST, GREEDY, MODEST, GREEDY]


def test_tasks_that_fall_due_together_take_turns_too() -> None:
    due = datetime.now(UTC) + timedelta(days=7)
    ask(GREEDY, 20, not_before=due)
    ask(MODEST, 1, not_before=due)
    sql("update procrastinate_jobs set scheduled_at = now()")
    assert taken(3) == [GREEDY, MODEST, GREEDY]


def test_a_task_that_is_run_again_takes_its_turn() -> None:
    ask(GREEDY, 20)
    ask(MODEST, 3)
    ((last,),) = sql("select id from task where project_id = %s order by job_id desc limit 1", GREEDY)
    sql("delete from procrastinate_jobs where id = (select job_id from task where id = %s)", last)
    with transaction.atomic():
        scheduling.defer_again(last)
    assert MODEST not in taken(22)[6:]
