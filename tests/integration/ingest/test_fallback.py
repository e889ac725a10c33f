"""While the log does not answer: batches are kept in the fallback file, and come into the log in order, once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from ingest.models import IngestLogHead
from ingest.services import appender, log, storing
from ingest.services.appender import Item
from ingest.services.fallback.file import FallbackFull
from ingest.services.fallback.keeper import Fallback
from ingest.services.statements import LogUnavailable
from ingest.services.targets import Place, Target
from lakewarden.context import PrincipalId
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.observed import eventually
from tests.integration.ingest.batches import batch as made
from tests.integration.ingest.batches import logged, run
from tests.integration.ingest.changed import create_table, limits, log_gone, revoke
from tests.integration.ingest.fallbacks import cancelled, drained, started
from tests.integration.ingest.messages import batch, connect, event
from tests.integration.ingest.pipelines import answering, pipeline
from tests.servers.asgi_client import AsgiClient
from tests.servers.asgi_socket import opened

STORED = {"ok", "fallback"}
"""Soon after the log is back, a source goes on in the file until it is replayed."""

pytestmark = pytest.mark.usefixtures("lake")


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    """What a test leaves unreplayed does not go on in the next one."""
    yield
    if storing.FALLBACK is not None:
        run(cancelled(storing.FALLBACK))


@pytest.fixture
def fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _ended: None) -> Fallback:
    return started(tmp_path, monkeypatch)


def test_batches_are_kept_and_replayed_in_order(lake: Warehouse, fallback: Fallback, engine: AsgiClient) -> None:
    with opened() as socket:
        socket.ask(connect(lastAckSequence=0))
        assert socket.ask(batch(1))["status"] == "ok"
        with log_gone():
            for number in range(2, 20):
                socket.send(batch(number))
            answers = [socket.receive() for _ in range(18)]
            assert logged(lake.id)[1:] == []
            assert fallback.waiting(lake.id) == 18
        assert socket.ask(batch(20))["status"] in STORED
    assert {each["status"] for each in answers} == {"fallback"}
    assert answers[0]["details"]["eventsProcessed"] == 1
    drained(fallback)
    assert [row[:3] for row in logged(lake.id)] == [(number, "abc123", number) for number in range(1, 21)]
    eventually(lambda: IngestLogHead.objects.get().fallback_batches in {18, 19})
    found = engine.get("/lakehouse/analytics/status").json()
    assert found["vfsFallbacks"] in {18, 19}
    assert "lakewarden_ingest_fallback_bytes 0" in engine.get("/lakehouse/metrics").body.decode()


def test_a_repetition_is_recognised_in_the_file_and_after_it(lake: Warehouse, fallback: Fallback) -> None:
    with opened() as socket:
        socket.ask(batch(1))
        with log_gone():
            assert socket.ask(batch(2))["status"] == "fallback"
            assert socket.ask(batch(2))["status"] == "duplicate"
            other = socket.ask(batch(2, event(9)))
            gap = socket.ask(batch(5))
            unknown = socket.ask(batch(1))
        drained(fallback)
        assert socket.ask(batch(2))["status"] == "duplicate"
        assert socket.ask(batch(3))["status"] == "ok"
    assert [each["reason"] for each in (other, gap, unknown)] == [
        "invalid_sequence",
        "invalid_sequence",
        "internal_error",
    ]
    assert "3 is expected" in gap["errorMessage"]
    assert [row[2] for row in logged(lake.id)] == [1, 2, 3]


def test_what_was_stored_although_nobody_heard_of_it_is_not_stored_again(
    lake: Warehouse, fallback: Fallback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session ends after the commit: the batch is in the log and in the file."""
    append = log._appended

    async def and_then_silence(*given: Any) -> Any:
        await append(*given)
        raise LogUnavailable("silent")

    with opened() as socket:
        socket.ask(batch(1))
        with monkeypatch.context() as patch:
            patch.setattr(log, "_appended", and_then_silence)
            assert socket.ask(batch(2))["status"] == "fallback"
        assert socket.ask(batch(3))["status"] in STORED
        drained(fallback)
    assert [row[2] for row in logged(lake.id)] == [1, 2, 3]


def test_a_process_takes_over_what_one_before_it_has_left(
    lake: Warehouse, fallback: Fallback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened() as socket:
        socket.ask(batch(1))
        with log_gone():
            assert [socket.ask(batch(number))["status"] for number in (2, 3)] == ["fallback"] * 2
            left = killed(fallback)
    with log_gone():
        next_one = started(tmp_path, monkeypatch)
        assert next_one.waiting(lake.id) == 2
    with opened() as socket:
        assert socket.ask(connect(lastAckSequence=3))["lastAckedSequence"] == 3
        assert socket.ask(batch(4))["status"] in STORED
    drained(next_one)
    assert [row[2] for row in logged(lake.id)] == [1, 2, 3, 4]
    assert not left.exists()


def killed(fallback: Fallback) -> Path:
    """The file, without the process that held it."""
    (file,) = fallback._own.values()
    content = file.path.read_bytes()
    run(cancelled(fallback))
    file.remove()
    copied = file.path.with_name("left.fallback")
    copied.write_bytes(content)
    return copied


def test_requests_are_kept_too_and_repetitions_recognised(
    lake: Warehouse, fallback: Fallback, engine: AsgiClient
) -> None:
    body = {"events": [event(1)]}
    assert engine.post("/lakehouse/cdc", {"events": [event(0)]}).status == 200
    with log_gone():
        first, again = (engine.post("/lakehouse/cdc", body).json() for _ in range(2))
    drained(fallback)
    later = engine.post("/lakehouse/cdc", body).json()
    assert [each["isDuplicate"] for each in (first, again, later)] == [False, True, True]
    assert len(logged(lake.id)) == 2


def test_what_was_acknowledged_is_stored_although_too_many_requests_are_recognised(
    lake: Warehouse, fallback: Fallback, engine: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits(monkeypatch, max_requests_per_caller=1)
    assert engine.post("/lakehouse/cdc", {"events": [event(0)]}).status == 200
    with log_gone():
        assert engine.post("/lakehouse/cdc", {"events": [event(1)]}).status == 200
    drained(fallback)
    assert engine.post("/lakehouse/cdc", {"events": [event(2)]}).status == 429
    assert len(logged(lake.id)) == 2


def test_a_file_that_is_full_refuses(lake: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fallback = started(tmp_path, monkeypatch, most=5000)
    big = [event(1, after={"x": "y" * 1500})]
    with opened() as socket:
        socket.ask(batch(1, *big))
        with log_gone():
            answers = [socket.ask(batch(number, *big)) for number in (2, 3, 4)]
        drained(fallback)
        assert socket.ask(batch(4, *big))["status"] in STORED
    assert [each.get("status") for each in answers] == ["fallback", "fallback", None]
    assert (answers[2]["reason"], answers[2]["shouldRetry"]) == ("buffer_full", True)
    assert "it is full" in answers[2]["errorMessage"]
    assert [row[2] for row in logged(lake.id)] == [1, 2, 3, 4]


def test_a_disk_that_cannot_be_written_is_an_internal_error(
    lake: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    started(tmp_path / "file", monkeypatch)
    with opened() as socket:
        socket.ask(batch(1))
        with log_gone():
            answer = socket.ask(batch(2))
        assert socket.ask(batch(2))["status"] == "ok"
    assert (answer["reason"], answer["shouldRetry"]) == ("internal_error", True)
    assert answer["errorMessage"] == ("The log of the events is not available (Not a directory); nothing was stored")


def test_what_its_sender_may_not_do_any_more_is_set_aside_and_not_lost(
    lake: Warehouse, fallback: Fallback, tmp_path: Path, engine: AsgiClient, grant: Grant
) -> None:
    create_table(engine, lake, "users")
    grant("writer", "modify")
    with opened("writer") as socket:
        socket.ask(batch(1))
        with log_gone():
            assert socket.ask(batch(2))["status"] == "fallback"
            revoke(lake, "writer", "modify")
        drained(fallback)
    assert [row[2] for row in logged(lake.id)] == [1]
    (line,) = (tmp_path / "fallback" / f"{lake.id}.refused.ndjson").read_text().splitlines()
    found = json.loads(line)
    assert (found["caller"], found["source"], found["sequenceNumber"]) == ("oidc~writer", "abc123", 2)
    assert found["events"] == [event(2)]
    assert found["reason"] == "Namespace does not exist: default"  # as they are answered now
    assert fallback.refused[lake.id] == 1


def test_what_is_set_aside_is_bounded_and_the_rest_waits(
    lake: Warehouse, fallback: Fallback, engine: AsgiClient, grant: Grant, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_table(engine, lake, "users")
    grant("writer", "modify")
    limits(monkeypatch, fallback_refused_bytes=600)  # one of these, and not two
    with opened("writer") as socket:
        socket.ask(batch(1))
        with log_gone():
            assert [socket.ask(batch(number))["status"] for number in (2, 3)] == ["fallback"] * 2
            revoke(lake, "writer", "modify")
    file = fallback._folder / f"{lake.id}.refused.ndjson"
    eventually(lambda: file.exists() and file.read_bytes().endswith(b"\n"))
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"  # others are not delayed
    assert fallback.waiting(lake.id) >= 1
    lines = file.rename(file.with_name("moved")).read_text().splitlines()
    drained(fallback)
    lines += file.read_text().splitlines()
    assert [json.loads(each)["sequenceNumber"] for each in lines] == [2, 3]
    assert fallback.refused[lake.id] == 2


def test_one_project_cannot_take_all_of_the_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fallback = started(tmp_path, monkeypatch, most=64 * 1024)
    content = json.dumps([event(1, after={"x": "y" * 2000})]).encode()

    async def filled(project: str, *warehouses: UUID) -> int:
        """Batches that it could keep in them."""
        target = Target({"table": "users"}, Place(uuid4(), "default", "users", None), 1, project)
        for number in range(100):
            sent = made(number, content=content, source=f"s{number}")
            try:
                chosen = warehouses[number % len(warehouses)]
                await fallback.keep(chosen, (PrincipalId("oidc~a"), (), None), Item(sent, (target,)), expected=number)
            except FallbackFull:
                return number
        raise AssertionError("there was always room")

    with log_gone():
        first, second, third = (run(filled(each, uuid4(), uuid4())) for each in ("first", "second", "third"))
    assert 16 <= first <= 24  # three quarters of about 29, then of the rest
    assert 3 <= second <= 7
    assert third >= 1


def test_a_flush_says_whether_some_of_it_came_through_the_file(
    lake: Warehouse, fallback: Fallback, engine: AsgiClient
) -> None:
    pipeline(lake)
    with opened() as socket, answering(batchesFlushed=1):
        socket.ask(batch(1))
        before = engine.post("/lakehouse/flush").json()
        with log_gone():
            assert socket.ask(batch(2))["status"] == "fallback"
        drained(fallback)
        eventually(lambda: IngestLogHead.objects.get().fallback_position == 2)
        through_the_file = engine.post("/lakehouse/flush").json()
        run(log.mark_flushed(lake.id, upto=2))
        assert socket.ask(batch(3))["status"] == "ok"
        after = engine.post("/lakehouse/flush").json()
    assert [each["usedFallback"] for each in (before, through_the_file, after)] == [False, True, False]


def test_a_right_that_changed_for_others_stops_nothing(lake: Warehouse, fallback: Fallback, grant: Grant) -> None:
    with opened() as socket:
        socket.ask(batch(1))
        with log_gone():
            assert socket.ask(batch(2))["status"] == "fallback"
            grant("stranger", "select")
        drained(fallback)
    assert [row[2] for row in logged(lake.id)] == [1, 2]


def test_status_says_recovering_until_the_log_has_room(
    lake: Warehouse, fallback: Fallback, engine: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened() as socket:
        socket.ask(batch(1))
        with log_gone():
            assert socket.ask(batch(2))["status"] == "fallback"
            limits(monkeypatch, buffer_bytes=1)
        assert engine.get("/lakehouse/status").json()["state"] == "recovering"
        limits(monkeypatch, buffer_bytes=1 << 20)
        assert socket.ask(batch(3))["status"] in STORED
    drained(fallback)
    assert engine.get("/lakehouse/status").json()["state"] == "receiving"
    assert [row[2] for row in logged(lake.id)] == [1, 2, 3]


def test_a_warehouse_whose_buffer_is_full_delays_no_other(
    lake: Warehouse, other: Warehouse, fallback: Fallback, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = appender.BATCHES._append

    async def narrow(warehouse_id: UUID, *given: Any, **named: Any) -> Any:
        capacity = 1 if warehouse_id == lake.id else named["capacity"]
        return await append(warehouse_id, *given, **named | {"capacity": capacity})

    with opened(path="/lakehouse/w/lake/ws") as full, opened(path="/lakehouse/w/other/ws") as roomy:
        assert [each.ask(batch(1))["status"] for each in (full, roomy)] == ["ok", "ok"]
        monkeypatch.setattr(appender.BATCHES, "_append", narrow)
        with log_gone():
            assert [each.ask(batch(2))["status"] for each in (full, roomy)] == ["fallback", "fallback"]
        eventually(lambda: [row[2] for row in logged(other.id)] == [1, 2])
        eventually(lambda: fallback.waiting(other.id) == 0)
        assert roomy.ask(batch(3))["status"] == "ok"
        assert fallback.waiting(lake.id) == 1
        monkeypatch.setattr(appender.BATCHES, "_append", append)
    drained(fallback)
    assert [row[2] for row in logged(lake.id)] == [1, 2]


def test_an_error_that_nobody_expects_does_not_end_the_replay(
    lake: Warehouse, fallback: Fallback, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, failures = appender.BATCHES._append, iter([ValueError("surprise")])

    async def once(*given: Any, **named: Any) -> Any:
        for error in failures:
            raise error
        return await append(*given, **named)

    with opened() as socket:
        socket.ask(batch(1))
        with log_gone():
            assert socket.ask(batch(2))["status"] == "fallback"
            monkeypatch.setattr(appender.BATCHES, "_append", once)
        drained(fallback)
    assert [row[2] for row in logged(lake.id)] == [1, 2]


def test_a_client_that_is_ahead_of_the_log_waits_for_the_server_that_has_its_batches(fallback: Fallback) -> None:
    """It was acknowledged up to 5 elsewhere; the log has nothing of it yet."""
    with opened() as socket:
        socket.ask(connect(lastAckSequence=1))
        socket.ask(batch(2))
    with opened() as socket:
        assert socket.ask(connect(lastAckSequence=5))["lastAckedSequence"] == 2
        ahead = socket.ask(batch(6))
        too_far = socket.ask(batch(9))
        assert [socket.ask(batch(number))["status"] for number in (3, 4, 5, 6)] == ["ok"] * 4
    assert (ahead["reason"], ahead["shouldRetry"]) == ("internal_error", True)
    assert "The batches 3 to 5 are not in the log" in ahead["errorMessage"]
    assert too_far["shouldRetry"]
