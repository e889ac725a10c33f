"""What need not be sent again after a failure in the middle of a batch."""

from uuid import uuid4

import pytest

from lakewarden.events.sinks.interface import Message, SinkFailed


@pytest.mark.parametrize(
    ("keys", "settled", "done", "ahead"),
    [
        ("abc", set(), 0, set()),
        ("abc", {0, 1, 2}, 3, set()),
        ("abc", {0, 2}, 1, {2}),
        ("abab", {1, 2, 3}, 0, {1, 3}),
        ("aabb", {0, 3}, 1, set()),
    ],
)
def test_only_events_of_objects_without_an_earlier_failure_are_ahead(
    keys: str, settled: set[int], done: int, ahead: set[int]
) -> None:
    messages = [Message(number, uuid4(), "updateTable", key, b"{}") for number, key in enumerate(keys)]
    failed = SinkFailed.after("full", messages, settled=settled)
    assert (failed.done, set(failed.ahead)) == (done, ahead)
