"""A deletion is restored or completed as a whole, also when undrop, expiry, cancellation and moves run at the same
time.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from uuid import UUID

import pytest
from django.db import connection, transaction
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.exceptions import JobAborted

from catalog.models import Deletion, Namespace, Tabular
from catalog.services.deletion import expire
from catalog.services.namespaces import lock_tree
from lakewarden.context import SYSTEM, Caller, RequestContext
from tests.integration.catalog.deleted_namespaces import (
    SetProfile,
    cancel,
    drop,
    namespace,
    pass_time,
    route,
    run_job,
    tasks,
    undrop,
)
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer

TABLES = 5
WAITING = """
    select count(*) from pg_locks l join pg_stat_activity a using (pid)
    where not l.granted and a.datname = current_database()
"""
BY_SYSTEM = RequestContext(Caller(SYSTEM), "test")


@pytest.fixture
def lake(lake: Lake, set_profile: SetProfile, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """`sales` with its tables is dropped and can be restored for an hour; a batch of its expiry is one object."""
    for number in range(TABLES):
        lake.create_table(f"t{number}")
    set_profile(3600)
    assert drop(lake).status == 204
    monkeypatch.setattr(expire, "BATCH", 1)
    return lake


def wait_for_waiting(sessions: int) -> None:
    deadline = time.monotonic() + 60
    with connection.cursor() as cursor:
        while True:
            cursor.execute(WAITING)
            if cursor.fetchone() == (sessions,):
                return
            assert time.monotonic() < deadline, f"never waited {sessions} sessions for a lock"
            time.sleep(0.01)


@contextmanager
def tree_held(lake: Lake) -> Iterator[None]:
    """Another session locks the tree: a restoration waits until the end of the block."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            lock_tree(UUID(lake.warehouse_id), exclusive=True)
            held.set()
            release.wait(30)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert held.wait(10)
        yield
    finally:
        release.set()
        holder.join()


def _ended(deletion: Deletion) -> list[int]:
    """All batches of its expiry, in a thread with a session of its own."""
    try:
        return list(expire.batches(deletion.id, BY_SYSTEM))
    finally:
        connection.close()


def live() -> int:
    return Tabular.objects.count()


def test_an_undrop_that_was_sent_in_time_is_refused_when_the_expiry_has_begun_meanwhile(lake: Lake) -> None:
    deletion = Deletion.objects.get()
    sales = namespace("sales")
    with ThreadPoolExecutor(1) as pool:
        with tree_held(lake):
            asked = pool.submit(undrop, lake, sales)
            wait_for_waiting(1)
            with connection.cursor() as cursor:
                cursor.execute("update deletion set expires_at = clock_timestamp()")
            assert next(expire.batches(deletion.id, BY_SYSTEM)) == 1
        refused = asked.result(60)
    assert refused.error() == (409, "ConflictException")
    assert "sales can no longer be restored. It could be restored until " in refused.json()["error"]["message"]
    assert refused.json()["error"]["message"].endswith(", and its removal has begun")
    assert live() == 0
    assert run_job() == TABLES
    assert not Namespace.everything.exists()
    assert undrop(lake, sales).error() == (404, "NoSuchNamespaceException")


def test_an_undrop_that_waited_until_its_time_was_over_is_refused(lake: Lake) -> None:
    with ThreadPoolExecutor(1) as pool:
        with tree_held(lake):
            asked = pool.submit(undrop, lake, namespace("sales"))
            wait_for_waiting(1)
            with connection.cursor() as cursor:
                cursor.execute("update deletion set expires_at = clock_timestamp()")
        refused = asked.result(60)
    assert refused.error() == (409, "ConflictException")
    assert "removal has begun" not in refused.json()["error"]["message"]
    assert run_job() == TABLES + 1


def test_an_expiry_that_waits_for_an_undrop_removes_nothing(lake: Lake) -> None:
    deletion = Deletion.objects.get()
    with connection.cursor() as cursor:
        cursor.execute("update deletion set expires_at = clock_timestamp() + interval '2 seconds'")
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert Deletion.objects.select_for_update().get() == deletion
            ended = pool.submit(_ended, deletion)
            wait_for_waiting(1)
            # what an undrop does
            with connection.cursor() as cursor:
                cursor.execute("update tabular set deletion_id = null, deleted_at = null")
                cursor.execute("update namespace set deletion_id = null, deleted_at = null")
            deletion.delete()
        assert ended.result(60) == []
    assert live() == TABLES


def _undrop_after(pause_s: float, lake: Lake, dropped: Namespace) -> Answer:
    time.sleep(pause_s)
    return undrop(lake, dropped)


@pytest.mark.parametrize("ahead_ms", [0, 20, 60])
def test_who_comes_first_decides_for_all_objects(lake: Lake, ahead_ms: int) -> None:
    (job,) = ProcrastinateJob.objects.filter(task_name="expire_deletion")
    deletion, sales = Deletion.objects.get(), namespace("sales")
    with connection.cursor() as cursor:
        cursor.execute("update deletion set expires_at = clock_timestamp() + make_interval(secs => %s)", [0.1])
    with ThreadPoolExecutor(1) as pool:
        restored = pool.submit(_undrop_after, 0.1 - ahead_ms / 1000, lake, sales)
        time.sleep(0.1)
        while Deletion.objects.filter(id=deletion.id).exists():
            with suppress(JobAborted):  # it was restored since the look
                expire.expire_deletion(**job.args)
        status = restored.result(60).status
    assert status in {204, 404, 409}
    assert live() == Tabular.everything.count() == (TABLES if status == 204 else 0)


def test_a_cancellation_locks_the_tree_before_the_task_as_an_undrop_does(lake: Lake) -> None:
    """Otherwise the two would deadlock."""
    sales = namespace("sales")
    with ThreadPoolExecutor(2) as pool:
        with tree_held(lake):
            restored = pool.submit(undrop, lake, sales)
            wait_for_waiting(1)
            cancelled = pool.submit(cancel, lake)
            wait_for_waiting(2)
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("select id from task for update nowait")
        assert restored.result(60).status == 204
        assert cancelled.result(60).status == 204
    assert live() == TABLES
    assert [each["status"] for each in tasks(lake)] == ["CANCELLED"]


def test_a_deletion_whose_removal_has_begun_cannot_be_cancelled(lake: Lake) -> None:
    pass_time(3600)
    next(expire.batches(Deletion.objects.get().id, BY_SYSTEM))
    refused = cancel(lake)
    assert refused.error() == (409, "ConflictException")
    assert "its removal has begun" in refused.json()["error"]["message"]
    assert [each["status"] for each in tasks(lake)] == ["SCHEDULED"]
    assert run_job() == TABLES
    assert not Deletion.objects.exists()


def test_a_task_that_is_cancelled_while_it_runs_but_before_its_removal_has_begun(lake: Lake) -> None:
    with connection.cursor() as cursor:
        cursor.execute("update procrastinate_jobs set status = 'doing'")
    assert cancel(lake).status == 204
    assert live() == TABLES
    assert not Deletion.objects.exists()


def test_an_undrop_of_what_was_moved_meanwhile_is_refused(lake: Lake, set_profile: SetProfile) -> None:
    """The caller was authorized to restore it by the old path."""
    assert undrop(lake, namespace("sales")).status == 204
    lake.create_namespace("archive")
    table = Tabular.objects.get(name="t0")
    assert lake.client.delete(lake.table("t0")).status == 204
    move = route(lake, f"namespace/{namespace('sales').id}/move")
    with ThreadPoolExecutor(2) as pool:
        with tree_held(lake):
            moved = pool.submit(lake.client.post, move, {"destination": ["archive", "sales"]})
            wait_for_waiting(1)
            restored = pool.submit(undrop, lake, table)
            wait_for_waiting(2)
        assert moved.result(60).status == 200
        assert restored.result(60).error() == (409, "ConflictException")
    assert undrop(lake, table).status == 204
    assert lake.load("t0", within=("archive", "sales"))


def test_a_tree_that_is_dropped_for_good_while_what_was_dropped_in_it_expires(lake: Lake) -> None:
    assert lake.create_namespace("sales").status == 200
    lake.create_table("orders")
    table = Tabular.objects.get()
    assert lake.client.delete(lake.table("orders")).status == 204
    inner = Deletion.objects.get(object_id=table.uuid)
    pass_time(3600)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert list(expire.batches(inner.id, BY_SYSTEM)) == [1]
            dropped = pool.submit(drop, lake, force="true")
            wait_for_waiting(1)
        assert dropped.result(60).status == 204
    assert not Tabular.everything.filter(id=table.id).exists()
    assert Namespace.everything.count() == 1
