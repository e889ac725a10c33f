from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lakewarden.audit.refusals import Pending, Refusal, _losses

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
    assert pending.take() == ([DENIED] * 3, {})
    assert pending.take() == ([], {})


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
    assert lost == {}


def test_what_does_not_fit_is_counted_for_its_project() -> None:
    pending = Pending(capacity=1)
    pending.add(DENIED)
    for project_id in ("p", "q", "p"):
        pending.add(replace(DENIED, project_id=project_id))
    assert pending.take() == ([DENIED], {"p": 2, "q": 1})


def test_bad_tokens_do_not_displace_what_was_denied() -> None:
    pending = Pending(capacity=2)
    for number in range(9):
        pending.add(replace(STRANGE, source=f"10.0.0.{number}"))
    pending.add(replace(STRANGE, source="10.0.0.0"))  # joins what is there
    pending.add(DENIED)
    taken, lost = pending.take()
    assert (sum(refusal.count for refusal in taken), lost) == (4, {None: 7})
    assert DENIED in taken


def test_what_was_given_back_comes_again_with_what_was_lost() -> None:
    pending = Pending(capacity=1)
    later = replace(DENIED, at=NOW + timedelta(seconds=1))
    pending.add(STRANGE)
    pending.add(DENIED)
    taken, _ = pending.take()
    pending.add(later)
    pending.give_back(taken, {"p": 5})
    assert pending.take() == ([STRANGE, later], {"p": 6})


def test_what_was_lost_is_an_entry_of_each_project() -> None:
    ours, servers = _losses({"p": 2, None: 3}, "decisions")
    assert (ours.object_type, ours.object_id, ours.project_id, ours.count) == ("project", "p", "p", 2)
    assert (servers.object_type, servers.project_id, servers.outcome) == ("server", None, "lost")
    assert servers.reason.startswith("3 decisions came faster")
