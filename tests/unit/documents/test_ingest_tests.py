"""docs/reference/ingest-tests.md: everything that the gateway's code knows has a line, and its tests exist."""

import ast
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from ingest import metrics
from ingest.api import requests, routes, socket
from ingest.models import IngestPipeline
from ingest.protocol import AckStatus, ClientMessage, NackReason

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "ingest-tests.md").read_text()
SOURCES = "".join(each.read_text() for each in sorted((ROOT / "ingest").rglob("*.py")))
FOLDERS = dict(re.findall(r"\b([A-Z]) =\s`(tests/[\w/]+)`", PAGE))


def rows(heading: str) -> dict[str, list[str]]:
    """The first cells of a table, and the tests of each."""
    table = re.search(rf"^\| {re.escape(heading)} \| tests \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table, heading
    cells = [line.strip("| ").split(" | ") for line in table[1].splitlines()]
    return {name: re.findall(r"`([^`]+)`", tests) for first, tests in cells for name in _names(first)}


def _names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell) or [cell]


def written(pattern: str) -> set[str]:
    """What the gateway's source says."""
    return set(re.findall(pattern, SOURCES))


EVERYTHING: dict[str, set[str]] = {
    "route": set(routes._PATH.pattern.decode().rpartition("(?P<what>")[2].rstrip(")").split("|")),
    "message of a client": {
        str(msgspec.inspect.type_info(each).tag)  # type: ignore[attr-defined]
        for each in get_args(ClientMessage)
    },
    "status of an `ack`": set(AckStatus),
    "reason of a `nack`": set(NackReason),
    "message of the server": written(r'_message\(\s*"(\w+)"'),
    # the parser of messages closes with 1009 itself
    "code of a closed socket": {"1009"}
    | {
        str(each) for each in (socket.POLICY, socket.TOO_SLOW, socket.UNAUTHORIZED, socket.GOING_AWAY, socket.TRY_AGAIN)
    },
    "state": {*IngestPipeline.State.values, "receiving"},
    "series of `/lakehouse/metrics`": {
        *written(r'sample\(\s*"(\w+)"'),
        *written(r'\(\s*"(lakewarden_ingest_\w+)"'),
        metrics.BATCH_EVENTS.name,
        metrics.APPEND_SECONDS.name,
        *(f"lakewarden_ingest_fallback{each}" for each in written(r'f"\{prefix\}(\w+)"')),
    },
}


@pytest.mark.parametrize("heading", EVERYTHING)
def test_everything_that_the_code_knows_has_a_line(heading: str) -> None:
    assert set(rows(heading)) == {str(each) for each in EVERYTHING[heading]}


def test_headers_that_the_gateway_reads_and_writes_have_a_line() -> None:
    given = {each.lower() for each in rows("header")}
    assert given == {each for each in given if f'"{each}"' in SOURCES}
    assert {each for each in written(r'b"(x-ratelimit-[a-z]+|retry-after)"') if each not in given} == set()
    assert requests._METHODS == {"cdc": "POST", "flush": "POST"}


def test_each_line_has_a_test_and_each_test_exists() -> None:
    named = set(re.findall(r"`(\w/[\w/]+\.py::\w+)`", PAGE))
    assert len(named) > 40
    for each in re.findall(r"^\| (?!---).*\|$", PAGE, re.MULTILINE):
        assert "::test_" in each or each.endswith(("| tests |", "| as above |")), each
    assert [each for each in sorted(named) if not _exists(each)] == []


def _exists(named: str) -> bool:
    path, _, function = named.partition("::")
    file = ROOT / FOLDERS[path[0]] / path[2:]
    if not file.exists():
        return False
    body = ast.parse(file.read_text()).body
    return any(isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name == function for each in body)
