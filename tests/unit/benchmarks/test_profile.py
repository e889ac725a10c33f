"""A sample of a stack counts for the innermost layer that it is in, and costs its share of the measured CPU."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.failures import BenchmarkError
from benchmarks.profile.records import Record
from benchmarks.profile.rules import LAYERS, OTHER, Shares, layer_of, shares
from benchmarks.profile.table import Profile, as_markdown

DJANGO = "get_response (/x/site-packages/django/core/handlers/base.py:140)"
SERVICE = "commit (/x/catalog/services/pointer.py:82)"
QUERY = "execute (/x/site-packages/psycopg/cursor.py:97)"
CODEC = "dumps (/usr/lib/python3.11/json/__init__.py:238)"


@pytest.mark.parametrize(
    ("stack", "layer"),
    [
        ([DJANGO], "front door"),
        ([DJANGO, SERVICE], "services"),
        ([DJANGO, SERVICE, QUERY], "SQL"),
        ([DJANGO, SERVICE, CODEC], "services"),
        ([CODEC], OTHER),
        (["acquire (/usr/lib/python3.11/threading.py:12)"], "threads and event loop"),
    ],
)
def test_the_innermost_frame_that_a_layer_owns_decides(stack: list[str], layer: str) -> None:
    assert shares([f"{';'.join(stack)} 3"]).layers == Counter({layer: 3})


def test_what_is_special_stands_above_what_is_general() -> None:
    assert layer_of("/x/catalog/services/metadata_files.py") == "files"
    assert layer_of("/x/catalog/services/tables.py") == "services"
    assert layer_of("/x/site-packages/django/db/models/query.py") == "SQL"
    assert layer_of("/x/platform/lakewarden/hot/coalescer.py") == "SQL"


def test_a_request_costs_its_layers_together() -> None:
    found = shares([f"{DJANGO} 1", f"{DJANGO};{SERVICE} 1", f"{DJANGO};{SERVICE};{QUERY} 2", "no sample"])
    profile = Profile("commit-apart", "subject", per_second=250.0, cpu_us=4000.0, shares=found)
    assert profile.layer_us("SQL") == 2000.0
    assert sum(profile.layer_us(layer) for layer in [*LAYERS, OTHER]) == 4000.0


def test_the_table_has_a_column_for_each_profile_and_names_files_without_the_machines_folders() -> None:
    found = shares([f"{DJANGO};{SERVICE} 3", f"{DJANGO} 1"])
    text = as_markdown([Profile("commit-apart", side, 250.0, 4000.0, found) for side in ("before", "subject")])
    assert "| services | 3,000 | 3,000 |" in text
    assert "| **all** | **4,000** | **4,000** |" in text
    assert "`commit (catalog/services/pointer.py)`" in text
    assert "/x/" not in text


def test_nothing_sampled_is_no_division_by_nothing() -> None:
    assert Shares(Counter(), Counter()).share("SQL") == 0.0


def test_a_kept_profile_is_compared_with_a_later_one(tmp_path: Path) -> None:
    found = shares([f"{DJANGO};{SERVICE} 3", f"{DJANGO} 1"])
    old = Record("a busy machine", [Profile("commit-apart", "subject", 250.0, 4000.0, found)])
    new = Record("a quiet one", [replace(old.profiles[0], cpu_us=1000.0), replace(old.profiles[0], scenario="config")])
    for name, record in (("old", old), ("new", new)):
        record.write(tmp_path / name)
        assert Record.read(tmp_path / name) == record
    text = old.compared_with(new)
    assert "| µs of server CPU per request | commit-apart, old | commit-apart, new |" in text
    assert "| services | 3,000 | 750 |" in text
    assert "config" not in text


@pytest.mark.parametrize("content", ["", "[]", '{"headline": ""}', '{"headline": "", "profiles": [{}]}'])
def test_another_file_is_not_taken_for_a_profile(tmp_path: Path, content: str) -> None:
    file = tmp_path / "file"
    file.write_text(content)
    with pytest.raises(BenchmarkError, match="not a kept profile"):
        Record.read(file)
