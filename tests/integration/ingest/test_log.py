"""The log holds each batch once, at dense positions in the order of commits, whatever replicas do at the same time."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from ingest.models import IngestLogHead, IngestRequestCount, IngestSource
from ingest.services import log
from ingest.services.log import Decided, Outcome, Request, Verdict
from ingest.services.targets import Place
from lakewarden import config
from lakewarden.hot.connections import connection
from lakewarden.hot.sessions import Session
from tenants.models import Warehouse
from tests.integration.ingest.batches import ROOMY, TABLES, append, batch, logged, open_source, run, unchanged
from tests.integration.ingest.changed import limits


async def opened(warehouse_id: UUID, *sources: str, last_acked: int | None = 0) -> None:
    for source in sources or ("s",):
        await open_source(warehouse_id, principal="oidc~a", source_id=source, shard_name="shard", last_acked=last_acked)


def appended(warehouse_id: UUID, *groups: list[log.Batch], **opening: Any) -> list[list[Outcome]]:
    async def append_all() -> list[list[Outcome]]:
        await opened(warehouse_id, *sorted({each.source_id for group in groups for each in group}), **opening)
        return [await append(warehouse_id, group, capacity=ROOMY) for group in groups]

    return run(append_all())


def verdicts(outcomes: list[Outcome]) -> list[str]:
    return [each.verdict for each in outcomes]


def test_batches_are_kept_byte_for_byte_at_dense_positions(warehouse: Warehouse) -> None:
    content = b'[ {"sequence": 9007199254740993, "after": {"a": 1.10, "a": 1e400}} ]'
    group = [batch(1, content=content), batch(2), batch(1, source="other")]
    ((first, second, other),) = appended(warehouse.id, group)
    assert [each.verdict for each in (first, second, other)] == [Verdict.APPENDED] * 3
    assert logged(warehouse.id)[0] == (1, "s", 1, content)
    assert [row[:3] for row in logged(warehouse.id)] == [(1, "s", 1), (2, "s", 2), (3, "other", 1)]
    found = IngestLogHead.objects.get()
    size = sum(each.size for each in group)
    assert (found.last_position, found.flushed_position, found.buffered_batches) == (3, 0, 3)
    assert (found.buffered_events, found.buffered_bytes, found.total_bytes) == (3, size, size)
    assert (found.checks, found.duplicates) == (3, 0)


def test_a_repeated_batch_is_recognised_and_a_different_one_of_its_number_is_refused(warehouse: Warehouse) -> None:
    groups = [[batch(1), batch(2)], [batch(1), batch(2), batch(3)], [batch(2, content=b"[0]"), batch(3), batch(3)]]
    _, again, other = appended(warehouse.id, *groups)
    assert verdicts(again) == ["duplicate", "duplicate", "appended"]
    assert verdicts(other) == ["different", "duplicate", "duplicate"]
    assert [each.expected for each in other] == [4, 4, 4]
    assert [row[2] for row in logged(warehouse.id)] == [1, 2, 3]
    assert IngestLogHead.objects.get().duplicates == 5


def test_a_gap_is_refused_with_the_number_that_is_expected(warehouse: Warehouse) -> None:
    first, second = appended(warehouse.id, [batch(1), batch(3), batch(4)], [batch(2), batch(3)])
    assert verdicts(first) == ["appended", "gap", "gap"]
    assert [each.expected for each in first] == [2, 2, 2]
    assert verdicts(second) == ["appended", "appended"]


def test_a_new_source_begins_where_its_client_says_or_anywhere(warehouse: Warehouse) -> None:
    ((lost, right),) = appended(warehouse.id, [batch(43), batch(45)], last_acked=42)
    assert (lost.verdict, right.verdict, right.expected) == (Verdict.APPENDED, Verdict.GAP, 44)
    ((begun,),) = appended(warehouse.id, [batch(2**62, source="new")], last_acked=None)
    assert begun.verdict == Verdict.APPENDED
    assert IngestSource.objects.get(source_id="new").last_received_sequence == 2**62


def test_a_client_cannot_set_a_known_source_ahead_or_back(warehouse: Warehouse) -> None:
    appended(warehouse.id, [batch(1)])
    for claim in (99, 0, None):
        assert run(open_source(warehouse.id, principal="oidc~a", source_id="s", shard_name="", last_acked=claim)) == 1


def test_the_same_id_of_another_caller_is_another_source(warehouse: Warehouse) -> None:
    async def both() -> list[Outcome]:
        await opened(warehouse.id)
        await open_source(warehouse.id, principal="oidc~b", source_id="s", shard_name="", last_acked=None)
        group = [batch(1), batch(7, principal="oidc~b")]
        return await append(warehouse.id, group, capacity=ROOMY)

    assert verdicts(run(both())) == ["appended", "appended"]


def test_a_source_that_is_not_open_is_unknown(warehouse: Warehouse) -> None:
    async def send(warehouse_id: UUID) -> list[Outcome]:
        return await append(warehouse_id, [batch(1, source="never")], capacity=ROOMY)

    run(opened(warehouse.id))
    assert verdicts(run(send(warehouse.id))) == ["unknown"]
    assert verdicts(run(send(uuid4()))) == ["unknown"]


def test_what_does_not_fit_is_refused_until_the_pipeline_has_flushed(warehouse: Warehouse) -> None:
    async def fill() -> list[list[str]]:
        await opened(warehouse.id, "s", "t")
        room = batch(1).size * 2
        first = await append(warehouse.id, [batch(1), batch(2), batch(3), batch(1, source="t")], capacity=room)
        full = await append(warehouse.id, [batch(3), batch(1)], capacity=room)
        assert await log.mark_flushed(warehouse.id, upto=1)
        roomy = await append(warehouse.id, [batch(3), batch(1), batch(2)], capacity=room)
        return [verdicts(each) for each in (first, full, roomy)]

    assert run(fill()) == [
        ["appended", "appended", "full", "full"],
        ["full", "duplicate"],
        ["appended", "persisted", "duplicate"],
    ]


def test_what_was_flushed_is_marked_once_and_never_ahead(warehouse: Warehouse) -> None:
    async def mark() -> list[bool]:
        await opened(warehouse.id)
        await append(warehouse.id, [batch(1), batch(2), batch(3)], capacity=ROOMY)
        return [await log.mark_flushed(warehouse.id, upto=upto) for upto in (2, 2, 1, 4, 3)]

    assert run(mark()) == [True, False, False, False, True]
    found = IngestLogHead.objects.get()
    assert (found.flushed_position, found.buffered_batches, found.buffered_events, found.buffered_bytes) == (3, 0, 0, 0)
    assert found.total_batches == 3


def test_the_head_tells_what_waits_and_since_when(warehouse: Warehouse) -> None:
    assert run(log.head(uuid4())) is None
    appended(warehouse.id, [batch(1)], [batch(2)])
    before = run(log.head(warehouse.id))
    run(log.mark_flushed(warehouse.id, upto=1))
    after = run(log.head(warehouse.id))
    run(log.mark_flushed(warehouse.id, upto=2))
    empty = run(log.head(warehouse.id))
    assert before
    assert after
    assert empty
    assert before.oldest_at
    assert before.oldest_at < after.oldest_at == after.newest_at  # type: ignore[operator]
    assert (empty.oldest_at, empty.buffered_batches) == (None, 0)


@pytest.mark.parametrize("seed", range(3))
def test_replicas_that_race_keep_positions_dense_and_each_batch_once(warehouse: Warehouse, seed: int) -> None:
    """Six sessions send overlapping groups of the same sources while readers follow the log."""
    draw = random.Random(seed)  # noqa: S311
    sources = ["a", "b", "c"]
    last = 40
    seen: list[int] = []
    finished = asyncio.Event()

    async def replica() -> None:
        at = dict.fromkeys(sources, 1)
        while min(at.values()) <= last:
            group = []
            for source in draw.sample(sources, draw.randint(1, 3)):
                upto = min(at[source] + draw.randint(0, 4), last + 1)
                group += [batch(number, source=source) for number in range(at[source], upto)]
            outcomes = await append(warehouse.id, group, capacity=ROOMY) if group else []
            for outcome, sent in zip(outcomes, group, strict=True):
                assert outcome.verdict in {Verdict.APPENDED, Verdict.DUPLICATE}
                at[sent.source_id] = max(at[sent.source_id], sent.sequence_number + 1)

    async def reader() -> None:
        """Never sees a position appear below one that it has seen."""
        while True:
            is_over = finished.is_set()
            async with connection() as usable:
                cursor = await usable.execute(
                    "select position from ingest_batch where warehouse_id = %s and position > %s order by position",
                    [warehouse.id, seen[-1] if seen else 0],
                )
                found = [position for (position,) in await cursor.fetchall()]
            assert found == list(range(len(seen) + 1, len(seen) + len(found) + 1))
            seen.extend(found)
            if is_over:
                return

    async def race() -> None:
        await opened(warehouse.id, *sources)
        reading = asyncio.create_task(reader())
        await asyncio.gather(*(replica() for _ in range(6)))
        finished.set()
        await reading

    run(race())
    rows = logged(warehouse.id)
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1)) == seen
    for source in sources:
        assert [row[2] for row in rows if row[1] == source] == list(range(1, last + 1))


def test_a_session_that_ends_after_the_commit_leaves_no_doubt(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer is lost; the repeated statement finds its own batch, which counts as appended."""
    sent = 0
    fetch = Session.fetch

    async def lossy(self: Session, *arguments: Any) -> list[Any]:
        nonlocal sent
        rows = await fetch(self, *arguments)
        sent += 1
        if sent == 1:
            raise psycopg.OperationalError("the session has ended")
        return rows

    run(opened(warehouse.id))
    monkeypatch.setattr(Session, "fetch", lossy)
    ((outcome,),) = [run(append(warehouse.id, [batch(1)], capacity=ROOMY))]
    assert (outcome.verdict, outcome.position, sent) == (Verdict.APPENDED, 1, 2)
    assert len(logged(warehouse.id)) == 1


def test_the_log_goes_with_its_warehouse(warehouse: Warehouse) -> None:
    appended(warehouse.id, [batch(1)])
    warehouse.delete()
    assert not IngestLogHead.objects.exists()
    assert not IngestSource.objects.exists()


def test_nothing_is_appended_on_decisions_that_are_not_true_any_more(warehouse: Warehouse) -> None:
    """A right that was revoked, a table that was made or dropped, a warehouse that was deactivated."""

    async def stale() -> list[str]:
        await opened(warehouse.id)
        now = await unchanged(warehouse.id)
        gone = Place(uuid4(), "gone", "t", None)
        found = [
            await log.append(warehouse.id, [batch(1)], capacity=ROOMY, decided=decided)
            for decided in (Decided(now.epoch - 1, frozenset()), Decided(now.epoch, frozenset({gone})), now)
        ]
        return [outcomes[0].verdict for outcomes in found]

    assert run(stale()) == ["unknown", "unknown", "appended"]
    warehouse.status = Warehouse.Status.INACTIVE
    warehouse.save()
    assert verdicts(run(append(warehouse.id, [batch(2)], capacity=ROOMY))) == ["unknown"]
    assert [row[2] for row in logged(warehouse.id)] == [1]


def test_a_source_too_many_is_not_opened(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of a caller nor of the warehouse: nobody can take all that there may be."""
    limits(monkeypatch, max_sources=3, max_sources_per_caller=2)

    async def open_some() -> list[bool]:
        wanted = [("x", "a"), ("x", "b"), ("x", "c"), ("x", "a"), ("y", "a"), ("y", "b"), ("y", "a")]
        return [
            (
                await log.open_source(
                    warehouse.id, principal=principal, source_id=source, shard_name="", last_acked=None
                )
            ).is_open
            for principal, source in wanted
        ]

    assert run(open_some()) == [True, True, False, True, True, False, True]


def request(key: str, content: bytes = b"[1]", principal: str = "oidc~a", *, is_acknowledged: bool = False) -> Request:
    return Request(
        principal, "http-cdc-1", key, 1, content, TABLES, content, len(content), is_acknowledged=is_acknowledged
    )


def test_a_repeated_request_is_recognised_by_its_key(warehouse: Warehouse) -> None:
    async def send() -> list[list[Outcome]]:
        await log.begin(warehouse.id)
        groups = [
            [request("k"), request("k"), request("other")],
            [request("k"), request("k", b"[2]"), request("k", principal="oidc~b")],
            [request("more"), request("full", b"[1,2,3]")],
        ]
        decided = await unchanged(warehouse.id)
        return [await log.append_requests(warehouse.id, group, capacity=16, decided=decided) for group in groups]

    assert [verdicts(each) for each in run(send())] == [
        ["appended", "duplicate", "appended"],
        ["duplicate", "different", "appended"],
        ["appended", "full"],
    ]
    assert [row[0] for row in logged(warehouse.id)] == [1, 2, 3, 4]
    assert IngestLogHead.objects.get().duplicates == 3


def test_a_request_too_many_is_not_stored(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of a caller nor of the warehouse, whoever is asked: it is the database that counts."""
    limits(monkeypatch, max_requests=4, max_requests_per_caller=2)
    groups = [
        [request("1")],
        [request("1"), request("2"), request("3")],
        [request("3"), request("2"), request("2", b"[2]"), request("3", is_acknowledged=True)],
        [request("1", principal="oidc~b"), request("4"), request("2", principal="oidc~b")],
        [request("5", principal="oidc~c"), request("1", principal="oidc~b"), request("1", b"[2]")],
    ]

    async def send() -> list[list[Outcome]]:
        await log.begin(warehouse.id)
        decided = await unchanged(warehouse.id)
        return [await log.append_requests(warehouse.id, group, capacity=ROOMY, decided=decided) for group in groups]

    assert [verdicts(each) for each in run(send())] == [
        ["appended"],
        ["duplicate", "appended", "many"],
        ["appended", "duplicate", "different", "duplicate"],
        ["appended", "many", "many"],
        ["many", "duplicate", "different"],
    ]


def test_requests_of_an_earlier_span_count_until_they_are_not_recognised_any_more(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits(monkeypatch, max_requests_per_caller=1)
    decided = run(unchanged(warehouse.id))

    def send(key: str) -> str:
        (outcome,) = run(log.append_requests(warehouse.id, [request(key)], capacity=ROOMY, decided=decided))
        return str(outcome.verdict)

    run(log.begin(warehouse.id))
    assert send("1") == "appended"
    before = timedelta(seconds=config.current().ingest.recognised_s)
    for age, verdict in ((before - timedelta(hours=1, minutes=1), "many"), (before + timedelta(hours=1), "appended")):
        began_at = datetime.now(UTC) - age
        IngestRequestCount.objects.update(began_at=began_at)
        assert send("2") == verdict


def test_a_number_before_the_first_one_of_a_source_was_never_received(warehouse: Warehouse) -> None:
    first, second = appended(warehouse.id, [batch(7)], [batch(6), batch(7), batch(8)], last_acked=None)
    assert verdicts(first) == ["appended"]
    assert verdicts(second) == ["gap", "duplicate", "appended"]
    assert second[0].expected == 9
