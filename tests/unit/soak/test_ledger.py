"""The ledger of the soak reports exactly the histories in which something is lost, doubled or wrong."""

import pytest

from tests.soak.ledger import Finding, GrowingSet, Outcome, Register, Requests, Verdict
from tests.soak.slots import ABSENT, listed, shown
from tests.soak.wire import outcome_of


def verdicts(*findings: Finding | None) -> list[Verdict]:
    return [each.verdict for each in findings if each is not None]


def register(*writes: tuple[str, float, Outcome, float]) -> Register:
    """Of the value "first", and then these: value, sent, outcome, ended."""
    found = Register("r", "first")
    for value, sent, outcome, ended in writes:
        found.send(value, sent).end(outcome, ended)
    return found


def test_what_was_acknowledged_before_a_read_must_be_shown() -> None:
    found = register(("second", 1, Outcome.ACKNOWLEDGED, 2))
    assert verdicts(found.read("first", 3, 4)) == [Verdict.LOST]
    assert verdicts(found.read("second", 3, 4)) == []


def test_what_was_under_way_may_be_shown_or_not() -> None:
    assert verdicts(register(("second", 1, Outcome.ACKNOWLEDGED, 5)).read("first", 3, 4)) == []
    assert verdicts(register(("second", 1, Outcome.ACKNOWLEDGED, 5)).read("second", 3, 4)) == []


def test_what_a_read_has_shown_stays() -> None:
    found = register(("second", 1, Outcome.UNKNOWN, 2))
    assert verdicts(found.read("second", 3, 4)) == []
    assert verdicts(found.read("first", 5, 6)) == [Verdict.LOST]


def test_a_read_that_began_before_another_had_ended_may_show_less() -> None:
    found = register(("second", 1, Outcome.UNKNOWN, 2))
    found.read("second", 3, 6)
    assert verdicts(found.read("first", 5, 7)) == []


@pytest.mark.parametrize("value", ["second", "never"])
def test_what_was_refused_or_never_asked_for_is_wrong(value: str) -> None:
    found = register(("second", 1, Outcome.REFUSED, 2))
    assert verdicts(found.read(value, 3, 4)) == [Verdict.WRONG]


def test_what_was_sent_after_a_read_is_wrong() -> None:
    assert verdicts(register(("second", 5, Outcome.ACKNOWLEDGED, 6)).read("second", 3, 4)) == [Verdict.WRONG]


@pytest.mark.parametrize(("read", "later"), [("first", "second"), ("second", "first")])
def test_an_unknown_outcome_that_is_settled_does_not_change_again(read: str, later: str) -> None:
    found = register(("second", 1, Outcome.UNKNOWN, 2))
    assert not found.is_certain
    assert verdicts(found.read(read, 3, 4)) == []
    found.settle(5)
    assert (found.is_certain, found.value) == (True, read)
    assert verdicts(found.read(read, 6, 7)) == []
    assert len(verdicts(found.read(later, 8, 9))) == 1


def test_the_next_write_waits_until_the_last_is_certain() -> None:
    with pytest.raises(AssertionError, match="not over"):
        register(("second", 1, Outcome.UNKNOWN, 2)).send("third", 3)


def test_a_load_by_one_name_and_a_list_see_their_part_of_a_value() -> None:
    found = Register("table", ABSENT)
    found.send(("live", "a", 1), 1).end(Outcome.ACKNOWLEDGED, 2)
    found.send(("live", "b", 1), 3).end(Outcome.ACKNOWLEDGED, 4)
    assert verdicts(found.read(None, 5, 6, shown("a")), found.read(1, 5, 6, shown("b"))) == []
    assert verdicts(found.read(1, 5, 6, shown("a"))) == [Verdict.LOST]
    assert verdicts(found.read(False, 5, 6, listed("b"))) == [Verdict.LOST]
    assert verdicts(found.read(7, 5, 6, shown("b"))) == [Verdict.WRONG]


def growing(*writes: tuple[str, float, Outcome, float]) -> GrowingSet:
    found = GrowingSet("s")
    for value, sent, outcome, ended in writes:
        found.send(value, sent).end(outcome, ended)
    return found


def test_elements_that_were_acknowledged_or_seen_stay() -> None:
    found = growing(("a", 1, Outcome.ACKNOWLEDGED, 2), ("b", 1, Outcome.UNKNOWN, 2))
    assert found.read(["a", "b"], 3, 4) == []
    assert verdicts(*found.read([], 5, 6)) == [Verdict.LOST, Verdict.LOST]
    assert found.has_seen("b")


def test_an_unknown_element_may_be_there_or_not() -> None:
    found = growing(("b", 1, Outcome.UNKNOWN, 2))
    assert found.read([], 3, 4) == []
    assert found.read(["b"], 5, 6) == []


def test_an_element_that_is_there_twice_is_doubled() -> None:
    assert verdicts(*growing(("a", 1, Outcome.ACKNOWLEDGED, 2)).read(["a", "a"], 3, 4)) == [Verdict.DOUBLED]


def test_elements_that_were_refused_or_never_asked_for_are_wrong() -> None:
    found = growing(("a", 1, Outcome.REFUSED, 2), ("c", 9, Outcome.ACKNOWLEDGED, 10))
    assert verdicts(*found.read(["a", "x", "c"], 3, 4)) == [Verdict.WRONG] * 3


def test_records_must_agree_with_the_answers() -> None:
    outcomes = {
        "kept": Outcome.ACKNOWLEDGED,
        "lost": Outcome.ACKNOWLEDGED,
        "twice": Outcome.UNKNOWN,
        "half": Outcome.ACKNOWLEDGED,
        "whole": Outcome.ACKNOWLEDGED,
        "refused": Outcome.REFUSED,
        "never": Outcome.REFUSED,
        "unknown": Outcome.UNKNOWN,
    }
    recorded = {"kept": 1, "twice": 2, "half": 1, "whole": 2, "refused": 1, "unknown": 1}
    found = Requests(outcomes).judge(recorded, {"half": 2, "whole": 2}, 9)
    assert {each.what.split()[0]: each.verdict for each in found} == {
        "lost": Verdict.LOST,
        "twice": Verdict.DOUBLED,
        "half": Verdict.LOST,
        "refused": Verdict.WRONG,
    }


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Outcome.ACKNOWLEDGED),
        (204, Outcome.ACKNOWLEDGED),
        (409, Outcome.REFUSED),
        (503, Outcome.REFUSED),
        (500, Outcome.UNKNOWN),
        (504, Outcome.UNKNOWN),
    ],
)
def test_an_answer_of_503_promises_that_nothing_was_applied(status: int, outcome: Outcome) -> None:
    assert outcome_of(status) is outcome
