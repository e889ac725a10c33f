"""No caller can use up what others need of the server: memory for bodies, threads, places in the queue, health checks."""

import gzip
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connections

from lakewarden import asgi, config
from lakewarden.audit import refusals
from lakewarden.http import health, request_threads
from tests.integration.catalog.lake import Lake
from tests.servers import asgi_client
from tests.servers.asgi_client import Answer

MIB = 1024 * 1024
SOON_S = 10
"""Far longer than an answer takes, and shorter than the wait for a lock."""
CHUNKED = {"transfer-encoding": "chunked"}


class Pouring:
    """A body of 20 MiB in pieces of 64 KiB; `taken` counts the bytes that the server read."""

    def __init__(self, headers: dict[str, str], token: str | None = None) -> None:
        self.taken = 0
        self.answer: list[dict[str, Any]] = []
        self._answered_after: int | None = None
        self._headers = headers | ({"authorization": f"Bearer {token}"} if token else {})

    def send(self, path: str) -> tuple[int, dict[bytes, bytes]]:
        """Status and headers; `taken` is the number of bytes that were read before the answer."""
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in self._headers.items()],
            "client": ("192.0.2.7", 40000),
        }
        asgi_client.run(asgi.application(scope, self._receive, self._send))
        assert self._answered_after is not None
        self.taken = self._answered_after
        return self.answer[0]["status"], dict(self.answer[0]["headers"])

    async def _receive(self) -> dict[str, Any]:
        self.taken += 64 * 1024
        return {"type": "http.request", "body": b" " * 64 * 1024, "more_body": self.taken < 20 * MIB}

    async def _send(self, message: Any) -> None:
        if not self.answer:
            self._answered_after = self.taken
        self.answer.append(message)


@pytest.mark.parametrize("token", [None, "expired"])
@pytest.mark.parametrize(("headers", "most"), [(CHUNKED, 128 * 1024), ({"content-length": str(20 * MIB)}, 0)])
def test_a_large_body_is_not_read_for_somebody_without_a_valid_token(
    lake: Lake, token: str | None, headers: dict[str, str], most: int
) -> None:
    """Rights: none, not even a valid token."""
    refusals.PENDING.take()
    body = Pouring(headers, token)
    status, answered = body.send(lake.path("namespaces"))
    assert (status, answered[b"connection"], answered[b"www-authenticate"][:6]) == (401, b"close", b"Bearer")
    assert body.taken <= most
    noted, _ = refusals.PENDING.take()
    assert [(each.outcome, each.source) for each in noted] == [("unauthenticated", "192.0.2.7")]


@pytest.mark.parametrize("path", ["/console", "/health", "/nothing"])
def test_a_large_body_is_not_read_where_nobody_needs_a_token(lake: Lake, path: str) -> None:
    """Rights: none, not even a token."""
    body = Pouring(CHUNKED)
    assert body.send(path)[0] in {405, 413}
    assert body.taken <= 128 * 1024


def test_a_body_that_is_too_large_is_refused_before_it_is_read(lake: Lake) -> None:
    """Rights: only a valid token."""
    body = Pouring({"content-length": str(33 * MIB)}, "stranger")
    assert body.send(lake.path("namespaces"))[0] == 413
    assert body.taken == 0


def test_a_caller_cannot_fill_the_memory_for_bodies_with_tiny_compressed_ones(
    lake: Lake, outsider: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: create on `outside`."""
    monkeypatch.setattr(asgi._bodies, "_total", 4 * MIB)
    bomb = gzip.compress(b'{"a": "' + b" " * 30 * MIB + b'"}')
    assert len(bomb) < 64 * 1024
    refused = outsider.client.call("POST", outsider.path("namespaces"), body=bomb, headers={"content-encoding": "gzip"})
    assert refused.error() == (503, "ServiceUnavailableException")
    assert refused.headers["retry-after"] == "1"
    assert asgi._bodies.taken == 0
    assert lake.create_namespace("more").status == 200


@contextmanager
def stuck(lake: Lake, view: str, *, requests: int, database_url: str) -> Iterator[Sequence[Future[Answer]]]:
    """Commits to the attacker's own view, each in a thread, all waiting for a lock that another session holds."""
    with ThreadPoolExecutor(requests) as clients, psycopg.connect(database_url) as holder:
        assert holder.execute("select id from tabular where name = %s for update", [view]).fetchall()
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
        yield [clients.submit(lake.client.post, lake.view(view, within="outside"), body) for _ in range(requests)]
        holder.rollback()


def wait_until_threads_are_taken(least: int) -> None:
    deadline = time.monotonic() + SOON_S
    while request_threads.THREADS._running.taken < least:
        assert time.monotonic() < deadline, request_threads.THREADS._running.taken
        time.sleep(0.01)


def test_a_storm_that_waits_for_a_lock_holds_up_nobody_else(lake: Lake, outsider: Lake, database_url: str) -> None:
    """Rights: create on `outside`, and a view there."""
    assert outsider.create_view("mine", within="outside").status == 200
    assert lake.create_table("orders").status == 200
    threads, share = config.current().server.threads, 12
    with stuck(outsider, "mine", requests=40, database_url=database_url) as answers:
        wait_until_threads_are_taken(share)
        began = time.monotonic()
        lake.load("orders")
        assert lake.create_namespace("another").status == 200
        for path in ("/health", "/health/ready", "/health/live"):
            asked = time.monotonic()
            assert lake.client.get(path).status == 200
            assert time.monotonic() - asked < SOON_S
        assert time.monotonic() - began < SOON_S
        assert share <= request_threads.THREADS._running.held_by("oidc~outsider") < threads
        assert not any(answer.done() for answer in answers)
    assert {answer.result().status for answer in answers} <= {200, 409, 503}


def test_a_queue_that_is_full_refuses_at_once_and_promises_that_nothing_was_done(
    lake: Lake, outsider: Lake, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: create on `outside`, and a view there."""
    assert outsider.create_view("mine", within="outside").status == 200
    monkeypatch.setattr(request_threads.THREADS._places, "_total", 8)
    with stuck(outsider, "mine", requests=24, database_url=database_url) as answers:
        wait_until_threads_are_taken(12)
        refused = outsider.create_view("more", within="outside")
        assert refused.error() == (503, "ServiceUnavailableException")
        assert int(refused.headers["retry-after"]) >= 1
        assert "The request was not started" in refused.message()
        assert lake.create_view("theirs").status == 200
    assert {answer.result().status for answer in answers} <= {200, 409, 503}
    assert outsider.client.get(outsider.view("more", within="outside")).status == 404


def test_health_asks_the_database_again_when_its_session_was_cut(lake: Lake, database_url: str) -> None:
    """Rights: those of the database's operator, who terminates sessions."""
    for _ in range(3):
        assert lake.client.get("/health").status == 200
        with psycopg.connect(database_url, autocommit=True) as operator:
            operator.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where pid <> pg_backend_pid() and datname = current_database()"
            )
        health.DATABASE._ended = float("-inf")
        answer = lake.client.get("/health")
        assert (answer.status, answer.json()["database"]) == (200, "up")
    _let_threads_reconnect()


def _let_threads_reconnect() -> None:
    """Reconnects: the sessions of the requests' threads were terminated too, and the next test must not fail because of
    it.
    """
    count = len(request_threads.THREADS.executor._threads)
    together = threading.Barrier(count)

    def close() -> None:
        together.wait(10)
        connections.close_all()

    for done in [request_threads.THREADS.executor.submit(close) for _ in range(count)]:
        done.result(60)
    connections.close_all()


def test_a_server_that_stops_takes_no_new_work_and_says_so(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights: the operator's."""
    stopping = threading.Event()
    stopping.set()
    monkeypatch.setattr(health, "STOPPING", stopping)
    ready, live = lake.client.get("/health/ready"), lake.client.get("/health/live")
    assert (ready.status, ready.json()["status"]) == (503, "stopping")
    assert live.status == 200
    assert lake.create_namespace("late").error() == (503, "ServiceUnavailableException")


def test_answers_that_nobody_reads_close_the_door_to_who_asked_for_them_only(
    lake: Lake, reader: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights: select on `sales.orders`."""
    monkeypatch.setattr(asgi._unread._shares, "_total", MIB)
    asgi._unread._shares.force("oidc~reader", 900 * 1024)
    try:
        refused = reader.client.get(reader.table("orders"))
        assert refused.error() == (503, "ServiceUnavailableException")
        assert "answers wait to be read" in refused.message()
        assert lake.load("orders")
    finally:
        asgi._unread._shares.give_back("oidc~reader", 900 * 1024)
    assert reader.load("orders")
