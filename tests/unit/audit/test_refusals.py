from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lakewarden.audit.losses import OVERFULL, entries
from lakewarden.audit.refusals import Pending, Refusal

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


def denied(object_id: str = "1", **changed: Any) -> Refusal:
    return replace(DENIED, object_id=object_id, **changed)


def test_equal_refusals_are_one_with_their_number_and_times() -> None:
    pending = Pending()
    for number in range(300):
        pending.add(replace(DENIED, at=NOW + timedelta(seconds=number), request_id=str(number), user_agent=str(number)))
    assert pending.take() == (
        [replace(DENIED, count=300, last_at=NOW + timedelta(seconds=299), request_id="0", user_agent="0")],
        {},
    )
    assert pending.take() == ([], {})


def test_a_path_that_is_about_nothing_known_tells_no_refusals_apart() -> None:
    pending = Pending()
    for number in range(300):
        pending.add(replace(DENIED, object_type="request", object_id=f"/catalog/v1/{number}"))
    (only,), lost = pending.take()
    assert (only.count, only.object_id, lost) == (300, "/catalog/v1/0", {})


def test_refusals_wait_until_their_window_is_over() -> None:
    pending = Pending()
    pending.add(DENIED)
    pending.add(denied("2", at=NOW + timedelta(seconds=5)))
    assert pending.take(before=NOW) == ([], {})
    assert pending.take(before=NOW + timedelta(seconds=3)) == ([DENIED], {})
    assert [each.object_id for each in pending.take()[0]] == ["2"]


def test_they_wait_no_longer_when_half_the_room_is_filled() -> None:
    pending = Pending(capacity=4)
    for number in range(3):
        pending.add(denied(str(number)))
    assert len(pending.take(before=NOW - timedelta(seconds=3))[0]) == 3


def test_one_caller_takes_nobody_else_s_room() -> None:
    pending = Pending(of_one_caller=2)
    for number in range(300):
        pending.add(denied(str(number)))
    pending.add(denied(actor="oidc~ada"))
    assert pending.take(before=NOW) == ([], {})  # the number of lost entries is written with the others
    taken, lost = pending.take()
    assert sorted((refusal.actor, refusal.object_id) for refusal in taken) == [
        ("oidc~ada", "1"),
        ("oidc~eve", "0"),
        ("oidc~eve", "1"),
    ]
    assert lost == {("p", "oidc~eve"): 298}


def test_a_storm_of_bad_tokens_is_summed_up_by_source() -> None:
    pending = Pending()
    for number in range(1000):
        pending.add(replace(STRANGE, at=NOW + timedelta(milliseconds=number), asked=f"GET /{number}"))
    pending.add(replace(STRANGE, source="10.0.0.2"))
    taken, lost = pending.take()
    assert [(refusal.source, refusal.count) for refusal in taken] == [("10.0.0.1", 1000), ("10.0.0.2", 1)]
    assert lost == {}


def test_what_does_not_fit_is_counted_for_its_project() -> None:
    pending = Pending(capacity=1)
    pending.add(DENIED)
    for number, project_id in enumerate(("p", "q", "p")):
        pending.add(denied(f"more {number}", project_id=project_id))
    assert pending.take() == ([DENIED], {("p", OVERFULL): 2, ("q", OVERFULL): 1})


def test_bad_tokens_do_not_displace_what_was_denied() -> None:
    pending = Pending(capacity=2)
    for number in range(9):
        pending.add(replace(STRANGE, source=f"10.0.0.{number}"))
    pending.add(replace(STRANGE, source="10.0.0.0"))  # joins what is there
    pending.add(DENIED)
    taken, lost = pending.take()
    assert (sum(refusal.count for refusal in taken), lost) == (4, {(None, OVERFULL): 7})
    assert DENIED in taken


def test_what_was_given_back_comes_again_with_what_was_lost() -> None:
    pending = Pending(capacity=1)
    later = replace(DENIED, at=NOW + timedelta(seconds=1))
    pending.add(STRANGE)
    pending.add(DENIED)
    taken, _ = pending.take()
    pending.add(later)
    pending.give_back(taken, Counter({("p", OVERFULL): 5}))
    both = replace(DENIED, count=2, last_at=later.at)
    assert pending.take() == ([both, STRANGE], {("p", OVERFULL): 5})


def test_what_was_lost_is_an_entry_of_each_project_and_caller() -> None:
    ours, servers, eves = entries(Counter({("p", OVERFULL): 2, (None, OVERFULL): 3, ("p", "oidc~eve"): 4}), "decisions")
    assert (ours.object_type, ours.object_id, ours.project_id, ours.count) == ("project", "p", "p", 2)
    assert (servers.object_type, servers.project_id, servers.outcome) == ("server", None, "lost")
    assert servers.reason.startswith("3 decisions arrived faster")
    assert (eves.actor, eves.project_id, eves.count) == ("oidc~eve", "p", 4)
    assert eves.reason.startswith("4 different decisions of this caller arrived faster")
