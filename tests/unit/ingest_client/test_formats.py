"""Lines as events and rows: what is filled in, what stays byte for byte, what is refused."""

import json

import pytest

from ingest.client.errors import WrongLine
from ingest.client.files import batches, formats
from ingest.client.files.formats import Event, Events, Rows
from ingest.client.files.lines import Line
from ingest.client.messages import Limits


def line(content: str, number: int = 3) -> Line:
    return Line(number, content.encode(), 10 * number)


GOOD = {"sequence": 1, "timestamp": 2, "operation": "INSERT", "table": "users", "rowId": "a", "after": {"id": 1}}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"operation": None}, "operation is null; it must be a string"),
        ({"operation": "UPSERT"}, "operation is 'UPSERT'; it must be INSERT, UPDATE, DELETE"),
        ({"table": ""}, "table is empty"),
        ({"rowId": 7}, "rowId is 7; it must be a string"),
        ({"sequence": 1.5}, "sequence is 1.5; it must be a whole number, from 0 to"),
        ({"sequence": 2**63}, "sequence is 9223372036854775808; it must be"),
        ({"sequence": -1}, "sequence is -1; it must be"),
        ({"timestamp": "now"}, 'timestamp is "now"; it must be a whole number of milliseconds since 1970'),
        ({"after": [1]}, r"after is \[1\]; it must be a JSON object"),
        ({"after": None}, "after is missing: INSERT must carry the row"),
        ({"metadata": "x" * 100}, "metadata is .*…; it must be a JSON object"),
    ],
)
def test_wrong_events_name_line_and_member(change: dict[str, object], fault: str) -> None:
    with pytest.raises(WrongLine, match=f"line 3: {fault}"):
        Events(None, [], 0)(line(json.dumps(GOOD | change)))


@pytest.mark.parametrize(("name", "fault"), [("table", "or give --table"), ("rowId", "or give --key COLUMN")])
def test_missing_members_that_options_can_bring(name: str, fault: str) -> None:
    with pytest.raises(WrongLine, match=fault):
        Events(None, [], 0)(line(json.dumps({each: GOOD[each] for each in GOOD if each != name})))


def test_options_fill_in_what_is_missing() -> None:
    event = Events("people", ["id"], 1000)(line('{"operation": "INSERT", "after": {"id": 1.50}}'))
    assert (event.sequence, b'"id": 1.50' in event.content) == (1003, True)
    read = json.loads(event.content)
    assert (read["table"], read["rowId"], read["sequence"]) == ("people", "1.50", 1003)
    assert read["timestamp"] > 1_700_000_000_000
    deleted = Events("people", ["id"], 0)(line('{"operation": "DELETE", "before": {"id": "x"}}'))
    assert json.loads(deleted.content)["rowId"] == "x"


@pytest.mark.parametrize(
    ("row", "key", "expected"),
    [
        ('{"id": 9007199254740993}', ["id"], "9007199254740993"),
        ('{"id": "ü"}', ["id"], "ü"),
        ('{"id": true}', ["id"], "true"),
        ('{"a": 1, "b": "x,y"}', ["a", "b"], '[1,"x,y"]'),
    ],
)
def test_row_ids(row: str, key: list[str], expected: str) -> None:
    assert json.loads(Rows("t", key, 0)(line(row)).content)["rowId"] == expected


def test_later_files_have_higher_sequences() -> None:
    first = formats.base()
    assert formats.base(first + 10**12) == first + 10**12
    assert formats.base() >= first
    assert first < 2**53


def event(sequence: int, size: int = 10) -> Event:
    return Event(line("", sequence), b"x" * size, sequence)


def test_batches_are_cut_by_count_and_bytes() -> None:
    limits = Limits(max_batch_size=3, max_message_size=batches.ENVELOPE + 100)
    cut = list(batches.cut(iter([event(1), event(2), event(3), event(4), event(5, 90), event(6, 100)]), limits))
    assert [None if each is None else each.span for each in cut] == [(1, 3), (4, 4), (5, 5), (6, 6)]


def test_a_pause_of_the_input_sends_what_waits() -> None:
    cut = list(batches.cut(iter([event(1), None, None, event(2)]), Limits()))
    assert [None if each is None else each.span for each in cut] == [(1, 1), None, (2, 2)]


def test_sequences_must_grow() -> None:
    lines = [line(json.dumps(GOOD | {"sequence": each}), each + 1) for each in (1, 3, 3)]
    found = batches.events(iter(lines), Events(None, [], 0))
    for _ in range(2):
        next(found)
    with pytest.raises(WrongLine, match="line 4: sequence is 3, but that of the event before it is 3"):
        next(found)
