"""Parts of pages that a browser follows: what comes, who sees it, how it ends, and what it holds."""

import re
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from console import visits
from console.models import ConsoleSession
from ingest.models import IngestLogHead, IngestSource
from lakewarden import config
from lakewarden.events import reader_places
from lakewarden.events.models import EventSink
from lakewarden.http import health
from lakewarden.http.request_threads import THREADS
from tenants.models import Warehouse
from tenants.services import projects
from tests.installation import Grant
from tests.integration.console.visitor import Visitor
from tests.servers.asgi_client import AsgiClient
from tests.servers.asgi_stream import AsgiStream, streamed


@pytest.fixture(autouse=True)
def often(database: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(visits, "LIVE_S", 0.1)
    reader_places._places.cache_clear()
    yield
    reader_places._places.cache_clear()


@pytest.fixture
def activity(warehouse: Warehouse) -> str:
    IngestLogHead.objects.create(warehouse=warehouse, last_position=5, buffered_events=1234, total_events=5000)
    return f"/console/warehouses/{warehouse.id}/activity"


def shown(stream: AsgiStream, text: str) -> str:
    """What the stream sends, once it has this text."""
    while text not in (found := stream.block().text):
        pass
    return found


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_part_comes_at_once_and_again_when_it_has_changed(visitor: Visitor, activity: str) -> None:
    with streamed(visitor("admin"), activity) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        first = shown(stream, "1,234")
        assert "<html" not in first
        for _ in range(3):
            assert stream.block().text == "", "nothing has changed: it only says that it is alive"
        assert reader_places.taken() == 1
        until(lambda: THREADS._running.taken == 0)
        IngestLogHead.objects.update(buffered_events=4321)
        shown(stream, "4,321")
    until(lambda: reader_places.taken() == 0)


def test_the_sinks_of_events_are_followed_by_administrators_only(visitor: Visitor, grant: Grant) -> None:
    grant("bob", "ownership")
    for name, status in (("bob", 403), ("stranger", 403)):
        with streamed(visitor(name), "/console/events") as refused:
            assert refused.status == status
            assert refused.body()["error"]["code"] == status
    with streamed(visitor("admin"), "/console/events") as stream:
        shown(stream, "No sink of events")
        EventSink.objects.create(name="lake", delivered=0, failure="full", failing_since=timezone.now())
        shown(stream, "full")


def test_what_senders_call_themselves_is_text_and_begins_no_event(
    visitor: Visitor, activity: str, warehouse: Warehouse
) -> None:
    name = "<script>alert(1)</script>\r\n\r\nevent: end\rdata: {}\ndata: x\u2028y"
    now = timezone.now()
    IngestSource.objects.create(
        warehouse=warehouse, principal="oidc~sender", source_id=name, connected_at=now, last_activity_at=now
    )
    with streamed(visitor("admin"), activity) as stream:
        found = stream.block()
        assert found.event == "message"
        assert "&lt;script&gt;" in found.text
        assert "<script>" not in found.text
        assert stream.block().text == ""


def take_all_rights(warehouse: Warehouse, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("delete from authz_grant where principal_id = %s", [f"oidc~{name}"])
    projects.bump_epoch(warehouse.project_id)


def test_a_right_that_is_taken_away_ends_the_stream(
    visitor: Visitor, activity: str, warehouse: Warehouse, grant: Grant
) -> None:
    grant("bob", "select")
    browser = visitor("bob")
    with streamed(browser, activity) as stream:
        shown(stream, "1,234")
        take_all_rights(warehouse, "bob")
        IngestLogHead.objects.update(buffered_events=4321)
        last = stream.event()
        assert (last.event, last.data["error"]["code"]) == ("end", 404)
        stream.rest()
    with streamed(browser, activity) as again:
        assert again.status == 404


@pytest.mark.parametrize("end", ["signed out", "idle", "too old"])
def test_the_end_of_the_session_ends_the_stream(visitor: Visitor, activity: str, end: str) -> None:
    browser, long_ago = visitor("admin"), timezone.now() - timedelta(days=30)
    with streamed(browser, activity) as stream:
        shown(stream, "1,234")
        if end == "signed out":
            ConsoleSession.objects.all().delete()
        else:
            ConsoleSession.objects.update(**{"used_at" if end == "idle" else "created_at": long_ago})
        last = stream.event()
        assert (last.event, last.data["error"]["code"]) == ("end", 401)
    with streamed(browser, activity) as again:
        assert again.status == 401, "not a way to the provider, which a browser would follow from here"


def test_an_open_page_keeps_no_session_open(visitor: Visitor, activity: str) -> None:
    browser, earlier = visitor("admin"), timezone.now() - timedelta(minutes=30)
    with streamed(browser, activity) as stream:
        shown(stream, "1,234")
        ConsoleSession.objects.update(used_at=earlier)
        for _ in range(4):
            stream.block()
        assert ConsoleSession.objects.get().used_at == earlier
    browser.get(activity)
    assert ConsoleSession.objects.get().used_at > earlier


def test_the_streams_of_a_user_are_limited_in_all_sessions_together(
    visitor: Visitor, activity: str, grant: Grant, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant("bob", "select")
    now = config.current()
    events = now.events.model_copy(update={"readers": 8, "readers_of_one_caller": 2})
    monkeypatch.setattr(config, "current", lambda: now.model_copy(update={"events": events}))
    with streamed(visitor("admin"), activity), streamed(visitor("admin"), activity):
        another = AsgiClient({"cookie": f"{visitor('admin').headers['cookie']}; other=1"})
        with streamed(another, activity) as third:
            assert (third.status, third.headers["retry-after"]) == (429, "5")
        with streamed(visitor("bob"), activity) as others:
            assert others.status == 200
        assert another.get(activity).status == 200
    until(lambda: reader_places.taken() == 0)


@pytest.mark.parametrize("headers", [{}, {"cookie": "lakewarden-session=made-up"}], ids=["none", "made up"])
def test_nobody_follows_without_a_session(client: AsgiClient, activity: str, headers: dict[str, str]) -> None:
    with streamed(AsgiClient(headers), activity) as stream:
        assert stream.status == 401
        assert reader_places.taken() == 0


def test_pages_without_such_a_part_answer_as_ever(visitor: Visitor, warehouse: Warehouse) -> None:
    found = visitor("admin").call("GET", "/console/warehouses", headers={"accept": "text/event-stream"})
    assert (found.status, found.headers["content-type"].partition(";")[0]) == (200, "text/html")


def test_a_stream_ends_when_the_server_stops(visitor: Visitor, activity: str) -> None:
    try:
        with streamed(visitor("admin"), activity) as stream:
            stream.block()
            health.STOPPING.set()
            stream.rest()
            assert stream.has_ended()
    finally:
        health.STOPPING.clear()


@pytest.mark.parametrize("page", ["activity", "/console/events"])
def test_without_scripts_there_is_the_state_and_a_way_to_load_it_again(
    visitor: Visitor, activity: str, page: str
) -> None:
    address = activity if page == "activity" else page
    html: Any = visitor("admin").get(address).body.decode()
    assert re.search(rf'data-live="{address}"', html)
    assert f'<a href="{address}">Load again</a>' in html
