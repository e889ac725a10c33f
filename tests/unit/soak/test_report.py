"""The report of a soak: each operation belongs to the fault that it met, and one finding makes the soak fail."""

from tests.soak.book import Book
from tests.soak.ledger import Finding, Outcome, Verdict
from tests.soak.report import made
from tests.soak.timeline import QUIET, Fault, Timeline
from tests.soak.wire import Reply


def book() -> Book:
    """With a fault from second 10 to 12, recovered at 13 and over at 14."""
    fault = Fault("kill-replica", 1, 10, lifted=12, recovered=13, worker_s=1, ended=14)
    return Book([1, 2], [], [], Timeline([fault]), seed=7)


def test_an_operation_belongs_to_the_fault_that_it_met() -> None:
    timeline = book().timeline
    assert [timeline.kind(*each) for each in ((1, 9), (9, 11), (13, 13.5), (15, 16))] == [
        QUIET,
        "kill-replica",
        "kill-replica",
        QUIET,
    ]
    assert not timeline.is_settled(14.5)
    assert timeline.is_settled(20)


def test_a_soak_without_a_finding_is_good() -> None:
    held = book()
    held.note(Reply(None, Outcome.UNKNOWN, 11, 12))
    report = made(held, repeat="--seed 7", seconds=60)
    assert report.is_good
    assert report.totals | {"recovery-s": None} == {
        "fault": "all",
        "times": 1,
        "checked": 1,
        "lost": 0,
        "doubled": 0,
        "wrong": 0,
        "unanswered": 1,
        "applied": 0,
        "not-applied": 0,
        "commits": 0,
        "recovery-s": None,
        "worker-s": {"p50": 1, "max": 1},
    }
    assert 'make soak ARGS="--seed 7"' in report.as_text()


def test_a_finding_is_told_with_its_history() -> None:
    held = book()
    finding = Finding(Verdict.LOST, "table t: gone", 11, [{"value": "first", "outcome": "acknowledged"}])
    held.note(Reply(None, Outcome.UNKNOWN, 11, 12), [finding])
    report = made(held, repeat="", seconds=60)
    assert not report.is_good
    assert report.totals["lost"] == 1
    assert "- [kill-replica] lost: table t: gone\n    value=first outcome=acknowledged" in report.as_text()
    assert report.as_json()["findings"][0]["verdict"] == "lost"
