from pathlib import Path
from types import SimpleNamespace

import pytest

from standalone.postgres import diagnosis


def explain(text: str) -> str:
    return diagnosis.explain("It failed", text, place=Path("/"), log=Path("/log"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'FATAL:  could not write lock file "postmaster.pid": No space left on device',
            "the disk that holds / is full: free some space, or give another directory with --data-dir",
        ),
        (
            "FATAL:  could not map anonymous shared memory: Cannot allocate memory",
            "the system has too little memory for it: end other programs and start again",
        ),
        (
            'initdb: error: could not create directory "/data/postgres": Permission denied',
            "it may not use /: start as the owner of it, or give another directory with --data-dir",
        ),
    ],
    ids=["disk full", "memory", "permission"],
)
def test_known_cause_is_a_sentence_with_a_remedy(text: str, said: str) -> None:
    assert explain(text) == f"It failed: {said} (log: /log)."


def test_unknown_cause_is_the_last_error_line() -> None:
    text = "LOG:  starting\nFATAL:  first\nPANIC:  second\nLOG:  shut down\n"
    assert explain(text) == "It failed: PANIC:  second (log: /log)."


def test_text_without_errors_is_its_last_line() -> None:
    assert explain("one\ntwo\n\n") == "It failed: two (log: /log)."
    assert explain("") == "It failed: it wrote nothing (log: /log)."


def test_taken_port_is_recognised() -> None:
    line = 'LOG:  could not bind IPv4 address "127.0.0.1": Address already in use'
    assert diagnosis.port_was_taken(line)
    assert not diagnosis.port_was_taken("FATAL:  out of memory")


def test_full_disk_that_cut_off_the_log_is_found_by_its_free_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    assert explain("PANIC:  cannot abort").startswith("It failed: the disk that holds / is full: ")
