"""Arrays that grow without being opened."""

import json

import pytest
from msgspec import Raw

from catalog.iceberg.entries import extended


@pytest.mark.parametrize("stored", ["[]", "[ ]", "[" + " \t\r\n" * 100 + "]", '[{"a": "]"}]', '[ {"a":1} , [2] ]'])
@pytest.mark.parametrize("added", [[], [{"b": 1}], [{"b": 1}, 2]])
def test_entries_are_appended_to_any_array(stored: str, added: list[object]) -> None:
    made = bytes(extended(Raw(stored), added)).decode()
    assert json.loads(made) == [*json.loads(stored), *added]


def test_what_is_stored_stays_as_it_was_written() -> None:
    stored = '[{"n" :1.50,"n2":1e2} , 3 '
    made = bytes(extended(Raw(stored + "]"), [1])).decode()
    assert made.startswith(stored)
