"""The ledger of commits: what was acknowledged is in the history once, and what is there was acknowledged or unknown."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from benchmarks.ledger_under_kills import Outcome
from benchmarks.load.requests import Endpoint
from benchmarks.scenarios.commits import PropertyWorkload
from benchmarks.scenarios.ledger import Ledger

if TYPE_CHECKING:
    from benchmarks.rest_client import RestClient


class Client:
    """Answers a load with a table whose history is `files`, the newest last."""

    def __init__(self, files: list[str]) -> None:
        self.files = files

    def load(self, *_: str) -> dict[str, Any]:
        log = [{"metadata-file": each} for each in self.files[:-1]]
        return {"metadata-location": self.files[-1], "metadata": {"metadata-log": log, "properties": {}}}


def check(ledger: Ledger, *files: str) -> str | None:
    return ledger.check(cast("RestClient", Client(list(files))))


def ledger(*acknowledged: str, unknown: int = 0) -> Ledger:
    return Ledger("n", "t", "start", list(acknowledged), unknown=unknown)


def test_what_was_acknowledged_is_there() -> None:
    assert check(ledger("a", "b"), "start", "a", "b") is None


@pytest.mark.parametrize(
    ("held", "files", "what"),
    [
        (ledger("a", "b"), ("start", "b"), "1 acknowledged commits are not in the table's history: ['a']"),
        (ledger("a", "a"), ("start", "a"), "two commits were answered with the same metadata file"),
        (ledger("a"), ("start", "a", "b"), "1 states that no answer spoke of: ['b']"),
        (ledger("a", unknown=1), ("start", "a", "b", "c"), "2 states that no answer spoke of"),
    ],
)
def test_what_is_lost_or_doubled_is_said(held: Ledger, files: tuple[str, ...], what: str) -> None:
    assert what in str(check(held, *files))


def test_what_was_not_answered_may_be_there_or_not() -> None:
    assert check(ledger("a", unknown=1), "start", "a", "b") is None
    assert check(ledger("a", unknown=1), "start", "a") is None


def test_a_history_that_is_longer_than_its_log_goes_on_in_the_older_files(tmp_path: Path) -> None:
    older = tmp_path / "a.json"
    older.write_text(json.dumps({"metadata-log": [{"metadata-file": "start"}]}))
    assert check(ledger(f"file://{older}", "b"), f"file://{older}", "b") is None


def test_a_connection_that_ends_before_the_answer_leaves_one_unknown() -> None:
    held = ledger()
    workload = PropertyWorkload(Endpoint("127.0.0.1", 1, "", "", None), [held, held], ["u", "u"])
    workload.lost(1)
    found = Outcome()
    found.note(workload, None)
    assert (held.unknown, found.unknown, found.commits, found.problems) == (1, 1, 0, [])
