"""A session locks a row for ever: requests that need it get an error in time, and other requests are not delayed."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from lakewarden import config
from tests.integration.catalog.lake import Lake, set_properties
from tests.servers.asgi_client import Answer

LOCK_S = 1.0
MACHINE_S = 5.0
"""Additional time for a busy machine."""
CROWD = 20
"""More requests than the server has threads."""


@pytest.fixture
def impatient(lake: Lake, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection]:
    """A session outside of the server; the server's own sessions wait for its locks no longer than LOCK_S."""
    with monkeypatch.context() as patch, closing(psycopg.connect(database_url)) as other:
        patch.setenv("LAKEWARDEN__DATABASE__LOCK_TIMEOUT_S", str(LOCK_S))
        config.current.cache_clear()
        _renew(database_url)
        yield other
    config.current.cache_clear()
    _renew(database_url)


def _renew(url: str) -> None:
    """Terminate all sessions, so that new ones get the current settings."""
    connection.close()
    with closing(psycopg.connect(url, autocommit=True)) as ending:
        ending.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid() and application_name like 'lakewarden%'"
        )


CHANGES: dict[str, tuple[str, Callable[[Lake], Answer]]] = {
    "commit": ("tabular", lambda lake: lake.commit("orders", set_properties(a="b"))),
    "drop": ("tabular", lambda lake: lake.client.delete(lake.table("orders"))),
    "namespace": (
        "namespace",
        lambda lake: lake.client.post(f"{lake.namespace('sales')}/properties", {"updates": {"a": "b"}}),
    ),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_of_a_row_that_is_held_is_refused_in_time(
    lake: Lake, impatient: psycopg.Connection, kind: str
) -> None:
    """Rights: a session of the database that holds one row."""
    assert lake.create_table("orders").status == 200
    table, change = CHANGES[kind]
    before = lake.load("orders")["metadata"]["properties"]
    impatient.execute(sql.SQL("select 1 from {} for update").format(sql.Identifier(table)))
    begun = time.monotonic()
    answer = change(lake)
    assert time.monotonic() - begun < 3 * LOCK_S + MACHINE_S
    assert answer.error() == (503, "ServiceUnavailableException")
    assert int(answer.headers["retry-after"]) >= 1
    assert "nothing was changed" in answer.message()
    assert lake.load("orders")["metadata"]["properties"] == before
    impatient.rollback()
    assert change(lake).status in {200, 204}


def test_a_crowd_behind_one_row_leaves_room_for_others(lake: Lake, impatient: psycopg.Connection) -> None:
    """Rights: `modify` on one table, and a session of the database that holds its row."""
    assert lake.create_table("orders").status == 200
    assert lake.create_table("others").status == 200
    impatient.execute("select 1 from tabular where name = 'orders' for update")
    over = threading.Event()

    def storm() -> list[int]:
        statuses = []
        while not over.is_set():
            statuses.append(lake.commit("orders", set_properties(a="b")).status)
        return statuses

    waits = []
    with ThreadPoolExecutor(CROWD) as crowd:
        stormed = [crowd.submit(storm) for _ in range(CROWD)]
        time.sleep(2 * LOCK_S)  # by now all commits wait for the row
        for number in range(5):
            begun = time.monotonic()
            assert lake.commit("others", set_properties(a=str(number))).status == 200
            waits.append(time.monotonic() - begun)
        over.set()
        assert {status for each in stormed for status in each.result()} == {503}
    assert max(waits) < 3 * LOCK_S + MACHINE_S, waits
    impatient.rollback()
    assert lake.commit("orders", set_properties(a="b")).status == 200


@pytest.mark.parametrize("kind", ["commits", "creations"])
def test_a_batch_that_waits_in_vain_is_not_tried_one_by_one(
    lake: Lake, impatient: psycopg.Connection, kind: str
) -> None:
    """Rights: modify on some tables, and a session of the database that locks the table to which every change is
    written.
    """
    names = [f"t{number}" for number in range(12)]

    def change(name: str) -> Answer:
        return lake.create_table(f"{name}-new") if kind == "creations" else lake.commit(name, set_properties(a="b"))

    for name in names:
        assert lake.create_table(name).status == 200
        assert lake.commit(name, set_properties(a="a")).status == 200
    with ThreadPoolExecutor(len(names)) as pool:
        impatient.execute("lock table outbox_event in access exclusive mode")
        begun = time.monotonic()
        answers = list(pool.map(change, names))
        assert time.monotonic() - begun < 4 * LOCK_S + 4
        assert {answer.error() for answer in answers} == {(503, "ServiceUnavailableException")}
        impatient.rollback()
        assert {answer.status for answer in pool.map(change, names)} == {200}
