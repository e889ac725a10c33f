"""A chain of good and bad commits leads to the same state and outcomes as the same commits one by one."""

import json
import re
from random import Random
from typing import Any

import pytest

from catalog.services import pointer, tables
from catalog.services.pointer import Stored
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.together import NO_SUCH_UUID, Committing, Outcome, together


def any_commit(random: Random) -> tuple[list[Any], list[Any]]:
    """Requirements and updates, good and bad."""
    updates = [
        random.choice(
            [
                set_properties(**{random.choice("abc"): str(random.random())}),
                {"action": "remove-properties", "removals": [random.choice("abc")]},
                {"action": "upgrade-format-version", "format-version": random.choice([1, 2, 2, 3])},
                set_properties(),
                {"action": "set-properties"},
                {"action": "set-current-schema", "schema-id": random.choice([0, 7])},
                {"action": "assign-uuid", "uuid": "no uuid"},
            ]
        )
        for _ in range(random.choice([1, 1, 1, 2]))
    ]
    required: list[Any] = random.choice(
        [[], [], [NO_SUCH_UUID], [{"type": "assert-current-schema-id", "current-schema-id": 0}]]
    )
    return required, updates


@pytest.mark.parametrize("seed", range(6))
def test_a_chain_equals_the_same_commits_one_after_another(
    lake: Lake, committing: Committing, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 the same commits each time
    monkeypatch.setattr(tables, "now_ms", lambda: 1_900_000_000_000)
    asked = [any_commit(random) for _ in range(25)]
    for name in ("chained", "alone"):
        lake.create_table(name)
    chained: list[Outcome] = []
    left = list(asked)
    while left:
        group, left = left[: (size := random.choice([1, 3, 9]))], left[size:]
        chained += together(*[committing.to("chained", *updates, requirements=each) for each, updates in group])
    alone: list[Outcome] = []
    for each, updates in asked:
        try:
            alone.append(pointer.commit(committing.to("alone", *updates, requirements=each)))
        except Exception as error:  # noqa: BLE001 the outcome
            alone.append(error)

    def plain(outcome: Outcome, name: str) -> Any:
        """Without what differs between any two tables, and any two files."""
        if not isinstance(outcome, Stored):
            return type(outcome), re.sub(r"[0-9a-f-]{36}", "uuid", str(outcome)).replace(name, "")
        metadata = outcome.metadata.decode()
        for number, file in enumerate(sorted({*log_of(metadata), outcome.tabular.metadata_location})):
            metadata = metadata.replace(file, f"file {number}")
        row = outcome.tabular
        return row.version, metadata.replace(str(row.uuid), "uuid").replace(row.location, "location")

    assert [plain(each, "chained") for each in chained] == [plain(each, "alone") for each in alone]


def log_of(metadata: str) -> list[str]:
    return [each["metadata-file"] for each in json.loads(metadata)["metadata-log"]]
