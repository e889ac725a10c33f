from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakewarden.audit.refusals import Pending, Refusal, _row

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)

DENIED = Refusal(
    outcome="denied",
    actor="oidc~eve",
    action="drop",
    object_type="table",
    object_id="1",
    project_id="p",
    reason="Not allowed",
    request_id="r",
    user_agent="pytest",
    asked="DELETE /catalog/v1/…",
    at=NOW,
)
STRANGE = replace(DENIED, outcome="unauthenticated", actor="anonymous", project_id=None, source="10.0.0.1")


def test_each_denied_request_is_kept() -> None:
    pending = Pending()
    for _ in range(3):
        pending.add(DENIED)
    assert pending.take() == ([DENIED] * 3, 0)
    assert pending.take() == ([], 0)


def test_a_storm_of_bad_tokens_is_summed_up_by_second_and_source() -> None:
    pending = Pending()
    for number in range(1000):
        pending.add(replace(STRANGE, at=NOW + timedelta(milliseconds=number), asked=f"GET /{number}"))
    pending.add(replace(STRANGE, at=NOW + timedelta(seconds=1)))
    pending.add(replace(STRANGE, source="10.0.0.2"))
    taken, lost = pending.take()
    assert sorted((refusal.source, refusal.at.second, refusal.count) for refusal in taken) == [
        ("10.0.0.1", 0, 1000),
        ("10.0.0.1", 1, 1),
        ("10.0.0.2", 0, 1),
    ]
    assert lost == 0


def test_what_does_not_fit_is_counted() -> None:
    pending = Pending(capacity=2)
    pending.add(DENIED)
    pending.add(STRANGE)
    pending.add(DENIED)
    pending.add(replace(STRANGE, source="10.0.0.2"))
    pending.add(STRANGE)  # joins what is there
    taken, lost = pending.take()
    assert (sum(refusal.count for refusal in taken), lost) == (3, 2)


def test_what_was_given_back_comes_again_with_what_was_lost() -> None:
    pending = Pending(capacity=2)
    pending.add(STRANGE)
    taken, _ = pending.take()
    pending.add(DENIED)
    pending.give_back(taken, 5)
    assert pending.take() == ([DENIED, STRANGE], 5)


@pytest.mark.parametrize("text", ["\x00a", "\ud800", "ü" * 300, "a" * 10_000])
def test_whatever_was_sent_can_be_written(text: str) -> None:
    row = _row(replace(DENIED, reason=text, user_agent=text, object_id=text, asked=text))
    for value in (row.reason, row.user_agent, row.object_id, row.details["asked"]):
        assert "\x00" not in value
        value.encode()
    assert len(row.user_agent.encode()) <= 256
    assert len(row.object_id) <= 200
    assert len(row.details["asked"]) <= 200
