"""Commits that share their work: each caller's outcome is its own, and as if the commits had come one by one."""

from pathlib import Path

import pytest

from catalog.models import Tabular, TabularDocument
from catalog.services.pointer import Stored
from lakewarden.errors import CommitFailed
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import Recorded, local
from tests.integration.catalog.together import Committing, together


@pytest.fixture
def committing(lake: Lake) -> Committing:
    return Committing(lake.warehouse_id)


def test_commits_to_one_table_are_chained(lake: Lake, base: Path, committing: Committing, recorded: Recorded) -> None:
    before = lake.create_table("orders").json()
    outcomes = together(*[committing.prepared("orders", set_properties(**{f"k{n}": "x"})) for n in range(5)])
    assert all(isinstance(each, Stored) for each in outcomes), outcomes
    states = [each for each in outcomes if isinstance(each, Stored)]
    assert [each.tabular.version for each in states] == [2, 3, 4, 5, 6]
    after = lake.load("orders")
    assert after["metadata"]["properties"].keys() >= {f"k{n}" for n in range(5)}
    assert after["metadata-location"] == states[-1].tabular.metadata_location
    log = [each["metadata-file"] for each in after["metadata"]["metadata-log"]]
    assert log == [before["metadata-location"], *[each.tabular.metadata_location for each in states[:-1]]]
    for each in states:
        assert local(each.tabular.metadata_location).read_bytes() == each.metadata
    assert Tabular.objects.get().version == TabularDocument.objects.get().version == 6
    assert recorded() == ["createTable", *["updateTable"] * 5]


def test_a_refused_commit_costs_the_others_nothing(lake: Lake, committing: Committing) -> None:
    for name in ("orders", "bills"):
        lake.create_table(name)
    wrong = {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
    outcomes = together(
        committing.prepared("orders", set_properties(a="1")),
        committing.prepared("orders", set_properties(b="1"), requirements=[wrong]),
        committing.prepared("orders", set_properties(c="1")),
        committing.prepared("bills", set_properties(d="1")),
    )
    assert [type(each) for each in outcomes] == [Stored, CommitFailed, Stored, Stored]
    properties = lake.load("orders")["metadata"]["properties"]
    assert properties.keys() & {"a", "b", "c"} == {"a", "c"}
    assert lake.load("bills")["metadata"]["properties"]["d"] == "1"
