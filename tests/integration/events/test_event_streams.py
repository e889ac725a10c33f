"""Streams of events and requests that wait for them: what comes, who sees it, what it costs, how it ends."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from lakewarden import config
from lakewarden.audit.models import AuditEntry
from lakewarden.events import log, reader_places
from lakewarden.events.models import LoggedEvent
from lakewarden.hot import sessions
from lakewarden.http import health
from lakewarden.http.event_streams import _WATCH
from lakewarden.http.request_threads import THREADS
from tenants.models import Warehouse
from tenants.services import projects
from tests.installation import Grant
from tests.integration.events.events import all_moved, change
from tests.integration.events.reading import EVENTS, create, names
from tests.servers.asgi_client import AsgiClient
from tests.servers.asgi_stream import streamed

Setting = Callable[..., None]


@pytest.fixture(autouse=True)
def no_events_are_left(database: None) -> Iterator[None]:
    LoggedEvent.objects.all().delete()
    reader_places._places.cache_clear()
    yield
    reader_places._places.cache_clear()


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Setting:
    def chosen(**settings: Any) -> None:
        now = config.current()
        events = now.events.model_copy(update=settings)
        monkeypatch.setattr(config, "current", lambda: now.model_copy(update={"events": events}))

    return chosen


def take_all_rights(warehouse: Warehouse, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("delete from authz_grant where principal_id = %s", [f"oidc~{name}"])
    projects.bump_epoch(warehouse.project_id)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_a_stream_begins_with_what_comes_and_resumes_where_it_ended(engine: AsgiClient, warehouse: Warehouse) -> None:
    create(engine, warehouse, "ns", "before")
    all_moved()
    with streamed(engine, f"{EVENTS}?type=createTable") as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        assert "x-request-id" in stream.headers
        stream.block()
        create(engine, warehouse, "ns", "a", "b")
        all_moved()
        first, second = stream.event(), stream.event()
    assert names({"events": [first.data, second.data]}) == ["createTable a", "createTable b"]
    assert first.data["specversion"] == "1.0"
    create(engine, warehouse, "ns", "c")
    all_moved()
    with streamed(engine, f"{EVENTS}?type=createTable", last_event_id=first.id) as again:
        assert [again.event().data["data"]["name"] for _ in range(2)] == ["b", "c"]
    with streamed(engine, f"{EVENTS}?type=createTable&since=2026-01-01") as oldest:
        assert oldest.event().data["data"]["name"] == "before"


def test_a_page_token_and_the_id_of_an_event_are_the_same(engine: AsgiClient, warehouse: Warehouse) -> None:
    create(engine, warehouse, "ns", "a", "b")
    all_moved()
    token = engine.get(f"{EVENTS}?type=createTable&pageSize=1").json()["next-page-token"]
    with streamed(engine, f"{EVENTS}?type=createTable&pageToken={token}") as stream:
        found = stream.event()
    assert found.data["data"]["name"] == "b"
    assert engine.get(f"{EVENTS}?pageToken={found.id}").json()["events"] == []


@pytest.mark.parametrize(
    ("query", "headers", "named"),
    [
        ("?type=made.up", {}, "type=made.up"),
        ("?since=yesterday", {}, "since=yesterday"),
        ("?pageToken=x", {}, "pageToken"),
        ("", {"last_event_id": "4711"}, "Last-Event-ID"),
        ("?wait=-1", {}, "wait=-1"),
    ],
)
def test_wrong_requests_are_refused_before_the_stream_begins(
    admin: AsgiClient, query: str, headers: dict[str, str], named: str
) -> None:
    with streamed(admin, EVENTS + query, **headers) as stream:
        assert stream.status == 400
        assert named.partition("=")[0] in stream.body()["error"]["message"]


def test_whoever_may_not_read_gets_the_answer_of_others(
    client: AsgiClient, stranger: AsgiClient, warehouse: Warehouse, engine: AsgiClient
) -> None:
    for caller, path, status in (
        (client, EVENTS, 401),
        (stranger, EVENTS, 404),
        (engine, "/management/v1/server/events", 403),
    ):
        with streamed(caller, path) as stream:
            assert stream.status == status
        assert caller.get(f"{path}?wait=5").status == status
    assert reader_places.taken() == 0


def test_a_revoked_right_ends_the_stream_and_shows_nothing_of_what_came_after(
    engine: AsgiClient, warehouse: Warehouse, grant: Grant, client: AsgiClient, setting: Setting
) -> None:
    setting(heartbeat_s=0.2)
    grant("reader", "describe")
    all_moved()
    with streamed(client.as_user("reader"), EVENTS) as stream:
        stream.block()
        create(engine, warehouse, "ns", "a")
        all_moved()
        assert stream.event().data["type"] == "createNamespace"
        assert stream.event().data["data"]["name"] == "a"
        take_all_rights(warehouse, "reader")
        create(engine, warehouse, "ns", "b")
        all_moved()
        last = stream.event()
        assert (last.event, last.data["error"]["code"]) == ("end", 404)
        stream.rest()
    with streamed(client.as_user("reader"), EVENTS, last_event_id=stream.last_id) as again:
        assert again.status == 404


def test_a_right_on_one_table_that_is_taken_away_filters_its_events(
    engine: AsgiClient, warehouse: Warehouse, grant: Grant, client: AsgiClient, setting: Setting
) -> None:
    """The stream goes on, since the reader still sees the project."""
    setting(heartbeat_s=0.2)
    grant("reader", "describe")
    create(engine, warehouse, "ns", "a")
    all_moved()
    with streamed(client.as_user("reader"), EVENTS) as stream:
        stream.block()
        with connection.cursor() as cursor:
            cursor.execute("update authz_grant set privilege = 'pass_grants' where principal_id = 'oidc~reader'")
        projects.bump_epoch(warehouse.project_id)
        create(engine, warehouse, "ns", "b")
        all_moved()
        position = log.last_position()
        until(lambda: stream.block().id == streamed_id(position), "the position of what is hidden")
        assert not stream.has_ended()


def streamed_id(position: int) -> str:
    from lakewarden.paging import next_token  # noqa: PLC0415 the shortest way

    return next_token(str(position))


def test_an_idle_stream_says_that_it_is_alive_and_holds_nothing(
    engine: AsgiClient, warehouse: Warehouse, setting: Setting
) -> None:
    setting(heartbeat_s=0.2)
    with streamed(engine, EVENTS) as stream:
        first = stream.block()
        for _ in range(3):
            found = stream.block()
            assert (found.data, found.id) == (None, first.id)
        assert reader_places.taken() == 1
        assert THREADS._running.taken == 0
    until(lambda: reader_places.taken() == 0, "the place")


def test_many_idle_readers_are_one_statement(
    engine: AsgiClient, warehouse: Warehouse, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakewarden.http import log_watch  # noqa: PLC0415 it reads the configuration when it is imported

    setting(heartbeat_s=60)
    asked: list[float] = []
    original = sessions.fetch

    async def counted(*arguments: Any) -> Any:
        asked.append(time.monotonic())
        return await original(*arguments)

    monkeypatch.setattr(log_watch, "fetch", counted)
    with streamed(engine, EVENTS), streamed(engine, EVENTS), streamed(engine, EVENTS), streamed(engine, EVENTS):
        time.sleep(1)  # from now on it looks once a second
        before = len(asked)
        time.sleep(3)
        assert 1 <= len(asked) - before <= 5


def test_events_of_another_project_wake_nobody(
    engine: AsgiClient, warehouse: Warehouse, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting(heartbeat_s=60)
    all_moved()
    reads: list[int] = []
    original = log.read

    def counted(**named: Any) -> Any:
        reads.append(named["after"])
        return original(**named)

    with streamed(engine, EVENTS) as stream:
        stream.block()
        until(lambda: len(_WATCH._waiting) == 1, "the reader")
        monkeypatch.setattr(log, "read", counted)
        change("elsewhere", 0, project="another")
        all_moved()
        elsewhere = log.last_position()
        until(lambda: _WATCH._end >= elsewhere, "a look at the log")
        assert reads == []
        change("here", 0, project=warehouse.project_id)
        all_moved()
        until(lambda: bool(reads), "the page")
        # what was others' is not looked at again
        assert reads[0] >= elsewhere


def test_too_many_streams_are_refused(
    engine: AsgiClient, warehouse: Warehouse, grant: Grant, client: AsgiClient, setting: Setting
) -> None:
    setting(readers=8, readers_of_one_caller=2)
    grant("reader", "describe")
    with streamed(engine, EVENTS), streamed(engine, EVENTS):
        with streamed(engine, EVENTS) as third:
            assert (third.status, third.headers["retry-after"]) == (429, "5")
        assert engine.get(f"{EVENTS}?wait=5").status == 429
        assert engine.get(EVENTS).status == 200
        with streamed(client.as_user("reader"), EVENTS) as others:
            assert others.status == 200
    setting(readers=1)
    reader_places._places.cache_clear()
    with streamed(engine, EVENTS), streamed(client.as_user("reader"), EVENTS) as second:
        assert (second.status, second.headers["retry-after"]) == (503, "5")


def test_a_reader_who_does_not_read_gets_no_further_pages(
    engine: AsgiClient, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    original = log.read

    def counted(**named: Any) -> Any:
        reads.append(named["after"])
        return original(**named)

    with streamed(engine, f"{EVENTS}?pageSize=5") as stream:
        stream.block()
        stream.stop_reading()
        monkeypatch.setattr(log, "read", counted)
        for number in range(40):
            change(f"t{number}", number, project=warehouse.project_id)
        all_moved()
        time.sleep(2)
        assert len(reads) <= 1


def test_a_stream_ends_when_the_server_stops(engine: AsgiClient, warehouse: Warehouse) -> None:
    try:
        with streamed(engine, EVENTS) as stream:
            stream.block()
            health.STOPPING.set()
            stream.rest()
            assert stream.has_ended()
    finally:
        health.STOPPING.clear()


def test_a_request_waits_for_events(engine: AsgiClient, warehouse: Warehouse) -> None:
    create(engine, warehouse, "ns", "a")
    all_moved()
    at_once = engine.get(f"{EVENTS}?wait=30").json()
    assert "createTable a" in names(at_once)
    token = at_once["next-page-token"]
    with ThreadPoolExecutor(1) as clients:
        waits = clients.submit(engine.get, f"{EVENTS}?wait=30&pageToken={token}")
        until(lambda: reader_places.taken() == 1, "the request")
        create(engine, warehouse, "ns", "b")
        all_moved()
        assert "createTable b" in names(waits.result(20).json())


def test_a_request_that_waits_in_vain_is_answered_with_its_place(engine: AsgiClient, warehouse: Warehouse) -> None:
    create(engine, warehouse, "ns", "a")
    all_moved()
    token = engine.get(EVENTS).json()["next-page-token"]
    began = time.monotonic()
    answer = engine.get(f"{EVENTS}?wait=1&pageToken={token}").json()
    assert (answer["events"], answer["more"], answer["next-page-token"]) == ([], False, token)
    assert time.monotonic() - began >= 1


def test_a_wait_that_is_too_long_is_refused(engine: AsgiClient, warehouse: Warehouse) -> None:
    for wait in ("61", "9" * 40, "1.5", "soon"):
        answer = engine.get(f"{EVENTS}?wait={wait}")
        assert answer.status == 400
        assert "seconds from 0 to 60" in answer.message()


def test_a_stream_is_one_call_and_its_refusal_is_audited(
    engine: AsgiClient, warehouse: Warehouse, grant: Grant, client: AsgiClient, setting: Setting
) -> None:
    from lakewarden.audit import refusals  # noqa: PLC0415 as above
    from lakewarden.usage.call_counter import COUNTS  # noqa: PLC0415

    def counted() -> int:
        return sum(number for (key, number) in COUNTS._counts.items() if "/events" in str(key))

    setting(heartbeat_s=0.1)
    grant("reader", "describe")
    before = counted()
    with streamed(client.as_user("reader"), EVENTS) as stream:
        for _ in range(4):
            stream.block()
        assert counted() == before + 1
        take_all_rights(warehouse, "reader")
        stream.event()
    refusals.flush()
    assert AuditEntry.objects.filter(actor="oidc~reader", outcome="denied").exists()
