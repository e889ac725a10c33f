"""Equal decisions become one entry with their number; what does not fit is counted."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from lakewarden.audit.decision_buffer import Decisions, Group, Key, entries
from lakewarden.audit.losses import OVERFULL
from lakewarden.context import Allowed

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def key(object_id: str = "t1", *, actor: str = "oidc~ada", role: str | None = None) -> Key:
    return (actor, role, "get_metadata", "table", object_id)


def group(object_id: str = "t1", *, project_id: str | None = "p", request_id: str = "r1", seconds: int = 0) -> Group:
    allowed = Allowed("get_metadata", "table", object_id, project_id, ("describe",))
    return Group(allowed, request_id, "Spark", at=NOW + timedelta(seconds=seconds))


def test_equal_decisions_are_one_entry_with_their_number() -> None:
    decisions = Decisions()
    assert not decisions.again(key())
    decisions.add(key(), group())
    assert all(decisions.again(key()) for _ in range(9))
    groups, lost = decisions.take()
    (entry,) = entries(groups)
    assert (entry.count, entry.request_id, entry.at, entry.outcome) == (10, "r1", NOW, "allowed")
    assert (entry.actor, entry.object_id, entry.project_id) == ("oidc~ada", "t1", "p")
    assert entry.details == {"privileges": ["describe"]}
    assert entry.last_at is not None
    assert lost == {}
    assert not decisions.again(key())


def test_another_object_actor_or_role_is_another_entry() -> None:
    decisions = Decisions()
    for each in (key(), key("t2"), key(actor="oidc~bob"), key(role="7")):
        assert not decisions.again(each)
        decisions.add(each, group())
    found = list(entries(decisions.take()[0]))
    assert [entry.assumed_role for entry in found] == ["", "", "", "7"]
    assert {entry.count for entry in found} == {1}


def test_two_threads_that_find_nothing_add_to_the_same() -> None:
    decisions = Decisions()
    decisions.add(key(), group(seconds=1))
    decisions.add(key(), group(request_id="r2"))
    (entry,) = entries(decisions.take()[0])
    assert (entry.count, entry.at) == (2, NOW)
    assert entry.last_at == NOW + timedelta(seconds=1)


def test_what_does_not_fit_is_counted_for_its_project() -> None:
    decisions = Decisions(capacity=1)
    decisions.add(key(), group())
    decisions.add(key("t2"), group("t2"))
    decisions.add(key("t3"), group("t3", project_id="q"))
    assert decisions.again(key())  # what is there goes on
    groups, lost = decisions.take()
    assert ([each.count for each in groups.values()], lost) == ([2], {("p", OVERFULL): 1, ("q", OVERFULL): 1})


def test_what_was_given_back_joins_what_came_meanwhile() -> None:
    decisions = Decisions(capacity=2)
    for name in ("t1", "t2"):
        decisions.add(key(name), group(name))
    groups, _ = decisions.take()
    decisions.add(key("t2"), group("t2", seconds=5))
    decisions.add(key("t3"), group("t3", seconds=5))
    decisions.give_back(groups, Counter({("p", OVERFULL): 4}))
    found, lost = decisions.take()
    assert {each.object_id: (each.count, each.at) for each in entries(found)} == {
        "t2": (2, NOW),
        "t3": (1, NOW + timedelta(seconds=5)),
    }
    assert lost == {("p", OVERFULL): 5}


def test_one_caller_takes_nobody_else_s_room() -> None:
    decisions = Decisions(of_one_caller=2)
    for number in range(9):
        decisions.add(key(f"t{number}"), group(f"t{number}"))
    decisions.add(key(actor="oidc~bob"), group())
    groups, lost = decisions.take()
    assert [actor for actor, *_ in groups] == ["oidc~ada", "oidc~ada", "oidc~bob"]
    assert lost == {("p", "oidc~ada"): 7}
    decisions.add(key(), group())
    assert decisions.take()[1] == {}
