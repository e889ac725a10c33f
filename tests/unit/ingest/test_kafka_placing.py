"""What is written to Kafka, and what is refused before, by what a look at the log has found."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from ingest.references import Reference, unpack
from ingest.services import log
from ingest.services.kafka import placing
from ingest.services.log import STALE, Batch, Decided, Elsewhere, Outcome, Request, Verdict
from ingest.services.statements import Unstorable

WAREHOUSE = UUID(int=1)
DECIDED = Decided(1, frozenset())


class Records:
    """Stands for the producer: offsets grow from 10 on, in two partitions; `refused` contents are not taken."""

    topic = "lakewarden-ingest"

    def __init__(self) -> None:
        self.written: list[Batch | Request] = []
        self.refused: set[bytes] = set()
        self.looks = 0

    async def add(self, _warehouse_id: UUID, contents: Sequence[Batch | Request]) -> tuple[str, list[Any]]:
        found: list[Any] = []
        for each in contents:
            if each.content in self.refused:
                found.append(Unstorable("too large"))
                continue
            number = len(self.written)
            self.written.append(each)
            found.append(Reference(self.topic, number % 2, 10 + number, id=str(number)))
        return "the-id", found

    async def look_at_topic(self) -> None:
        self.looks += 1


class Log:
    """Stands for the statements: `rows` are what the look finds; all that comes is appended, or has `verdict`."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.verdict = Verdict.APPENDED
        self.given: list[Elsewhere | None] = []

    async def look(self, *_: object) -> list[tuple[Any, ...]]:
        return self.rows

    async def append(
        self, _warehouse_id: UUID, sent: Sequence[Any], *, elsewhere: Elsewhere | None = None, **_: object
    ) -> list[Outcome]:
        self.given.append(elsewhere)
        return [Outcome(self.verdict, 1, None, 0) for _ in sent]


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Records:
    made = Records()
    monkeypatch.setattr(placing, "_records", lambda: made)
    return made


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Log:
    made = Log()
    monkeypatch.setattr(placing, "run", made.look)
    monkeypatch.setattr(log, "append", made.append)
    monkeypatch.setattr(log, "append_requests", made.append)
    return made


def batch(number: int, *, source: str = "s", content: bytes = b"[]") -> Batch:
    return Batch("p", source, number, 1, content, "{}", 7, 10)


def request(key: str, *, is_acknowledged: bool = False) -> Request:
    return Request("p", "s", key, 1, b"[]", "{}", b"digest", 10, is_acknowledged=is_acknowledged)


def append(*batches: Batch, capacity: int = 1000) -> list[Any]:
    return list(asyncio.run(placing.append(WAREHOUSE, batches, capacity=capacity, decided=DECIDED)))


def append_requests(*requests: Request, capacity: int = 1000) -> list[Any]:
    return list(asyncio.run(placing.append_requests(WAREHOUSE, requests, capacity=capacity, decided=DECIDED)))


def verdicts(outcomes: Sequence[Outcome]) -> list[Verdict]:
    return [each.verdict for each in outcomes]


def test_what_follows_is_written_and_referred_to(records: Records, kept: Log) -> None:
    kept.rows = [(0, True, 4)] * 3
    assert verdicts(append(batch(5), batch(6), batch(7))) == [Verdict.APPENDED] * 3
    assert [each.sequence_number for each in records.written if isinstance(each, Batch)] == [5, 6, 7]
    (elsewhere,) = kept.given
    assert elsewhere is not None
    assert (elsewhere.topic, elsewhere.topic_id, elsewhere.lowest) == (records.topic, "the-id", {0: 10, 1: 11})
    assert [unpack(each).offset for each in elsewhere.contents if each is not None] == [10, 11, 12]


def test_nothing_is_written_for_what_the_log_would_not_take(records: Records, kept: Log) -> None:
    kept.rows = [(0, True, 4), (0, True, 4), (0, False, None), (0, True, 4)]
    outcomes = append(batch(4), batch(6), batch(1, source="closed"), batch(3))
    assert verdicts(outcomes) == [Verdict.APPENDED, Verdict.GAP, Verdict.UNKNOWN, Verdict.APPENDED]
    assert outcomes[1].expected == 5
    assert records.written == []
    assert kept.given[0] is not None
    assert list(kept.given[0].contents) == [None, None]  # the log compares them


def test_the_first_batch_of_a_source_decides_and_what_finds_no_room_is_refused(records: Records, kept: Log) -> None:
    kept.rows = [(0, True, None)] * 3
    outcomes = append(batch(8), batch(9), batch(10), capacity=25)
    assert verdicts(outcomes) == [Verdict.APPENDED, Verdict.APPENDED, Verdict.FULL]
    assert outcomes[2].expected == 10
    assert len(records.written) == 2


def test_one_that_kafka_does_not_take_is_told_alone(records: Records, kept: Log) -> None:
    kept.rows = [(0, True, 0)] * 2
    records.refused = {b"large"}
    first, second = append(batch(1, content=b"large"), batch(2))
    assert isinstance(first, Unstorable)
    assert second.verdict is Verdict.APPENDED


def test_what_was_decided_on_old_rights_writes_nothing(records: Records, kept: Log) -> None:
    assert append(batch(1)) == [STALE]
    assert append_requests(request("a")) == [STALE]
    assert records.written == []


def test_the_topic_is_looked_at_when_no_reference_is_taken(records: Records, kept: Log) -> None:
    kept.rows, kept.verdict = [(0, True, 0)], Verdict.UNKNOWN
    assert verdicts(append(batch(1))) == [Verdict.UNKNOWN]
    assert records.looks == 1


def test_requests_that_are_known_or_repeated_are_only_compared(records: Records, kept: Log) -> None:
    kept.rows = [(0, True, 9, 9), (0, False, 9, 9), (0, False, 9, 9)]
    assert verdicts(append_requests(request("old"), request("new"), request("new"))) == [Verdict.APPENDED] * 3
    assert len(records.written) == 1


def test_requests_beyond_what_is_remembered_are_refused_unless_they_were_acknowledged(
    records: Records, kept: Log
) -> None:
    kept.rows = [(0, False, 1, 1)] * 3
    outcomes = append_requests(request("a"), request("b"), request("c", is_acknowledged=True))
    assert verdicts(outcomes) == [Verdict.APPENDED, Verdict.MANY, Verdict.APPENDED]
    assert verdicts(append_requests(request("a"), request("b"), request("c"), capacity=5)) == [Verdict.FULL] * 3


def test_without_kafka_the_log_has_the_contents(monkeypatch: pytest.MonkeyPatch, kept: Log) -> None:
    monkeypatch.setattr(placing, "_records", lambda: None)
    assert verdicts(append(batch(1))) == verdicts(append_requests(request("a"))) == [Verdict.APPENDED]
    assert kept.given == [None, None]
