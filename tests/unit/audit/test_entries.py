"""Values from requests, cut to the size that a row can hold."""

from datetime import UTC, datetime

import pytest

from lakewarden.audit.entries import Entry, _values


@pytest.mark.parametrize("text", ["\x00a", "\ud800", "ü" * 300, "a" * 10_000, ""])
def test_whatever_was_sent_can_be_written(text: str) -> None:
    entry = Entry(
        at=datetime(2026, 11, 21, tzinfo=UTC),
        actor=text,
        action="drop",
        object_type="table",
        object_id=text,
        outcome="denied",
        reason=text,
        user_agent=text,
    )
    texts = [value for value in _values(entry) if isinstance(value, str)]
    for value in texts:
        assert "\x00" not in value
        value.encode()
    actor, _, _, _, object_id, _, reason, _, user_agent, _ = texts
    assert len(actor) <= 200
    assert len(object_id) <= 200
    assert len(reason) <= 500
    assert len(user_agent.encode()) <= 256
