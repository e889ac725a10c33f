"""POST /v1/{prefix}/transactions/commit: several tables, all or none."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.integration.catalog.lake import Lake, identifier, set_properties
from tests.servers.asgi_client import Answer

Recorded = Callable[[], list[str]]


def change(name: str, *updates: dict[str, Any], requirements: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {"identifier": identifier(name), "requirements": list(requirements), "updates": list(updates)}


def commit(lake: Lake, *changes: dict[str, Any], **headers: str) -> Answer:
    return lake.client.post(lake.path("transactions", "commit"), {"table-changes": list(changes)}, headers=headers)


def properties(lake: Lake, name: str) -> dict[str, str]:
    told: dict[str, str] = lake.load(name)["metadata"]["properties"]
    return told


def test_a_transaction_changes_all_its_tables(lake: Lake, recorded: Recorded) -> None:
    lake.create_table("a")
    lake.create_table("b")
    recorded_before = len(recorded())

    answer = commit(lake, change("a", set_properties(x="1")), change("b", set_properties(x="2")))

    assert (answer.status, answer.body) == (204, b"")
    assert [properties(lake, name)["x"] for name in "ab"] == ["1", "2"]
    assert recorded()[recorded_before:] == ["updateTable", "updateTable"]


def test_a_failed_requirement_of_one_table_changes_none(lake: Lake, base: Path, recorded: Recorded) -> None:
    lake.create_table("a")
    lake.create_table("b")
    before = [lake.load(name) for name in "ab"]
    files = sorted(base.rglob("*.json"))
    changes = recorded()

    wrong = {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000001"}
    answer = commit(lake, change("a", set_properties(x="1")), change("b", set_properties(x="2"), requirements=[wrong]))

    assert answer.error() == (409, "CommitFailedException")
    assert [lake.load(name) for name in "ab"] == before
    assert sorted(base.rglob("*.json")) == files
    assert recorded() == changes


def test_a_transaction_ends_a_staged_creation(lake: Lake) -> None:
    lake.create_table("a")
    staged = lake.create_table("new", stage_create=True).json()["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": staged["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": staged["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": staged["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": staged["location"]},
    ]
    creation = change("new", *updates, requirements=[{"type": "assert-create"}])

    refused = commit(lake, creation, change("missing", set_properties(x="1")))
    assert refused.error() == (404, "NoSuchTableException")
    assert lake.client.head(lake.table("new")).status == 404

    assert commit(lake, creation, change("a", set_properties(x="1"))).status == 204
    assert lake.load("new")["metadata"]["table-uuid"] == staged["table-uuid"]
    assert properties(lake, "a")["x"] == "1"


def test_a_table_named_twice_is_refused(lake: Lake) -> None:
    lake.create_table("a")

    answer = commit(lake, change("a", set_properties(x="1")), change("A", set_properties(x="2")))

    assert answer.error() == (400, "BadRequestException")
    assert "changed twice" in answer.message()


def test_an_empty_transaction_is_refused(lake: Lake) -> None:
    assert commit(lake).error() == (400, "BadRequestException")


def test_transactions_over_the_same_tables_in_other_orders_lose_nothing(lake: Lake) -> None:
    names = ["a", "b", "c"]
    for name in names:
        lake.create_table(name)

    def work(worker: int) -> list[int]:
        order = names if worker % 2 else names[::-1]
        return [
            commit(lake, *(change(name, set_properties(**{f"w{worker}-{turn}": "1"})) for name in order)).status
            for turn in range(4)
        ]

    with ThreadPoolExecutor(6) as pool:
        statuses = [status for each in pool.map(work, range(6)) for status in each]

    assert statuses == [204] * 24
    expected = {f"w{worker}-{turn}" for worker in range(6) for turn in range(4)}
    for name in names:
        assert expected <= properties(lake, name).keys()
        assert len(lake.load(name)["metadata"]["metadata-log"]) == 24


def test_thirty_two_committers_to_thirty_two_tables_lose_and_double_nothing(lake: Lake) -> None:
    names = [f"t{number}" for number in range(32)]
    for name in names:
        lake.create_table(name, properties={"write.metadata.previous-versions-max": "1000"})

    def work(worker: int) -> list[tuple[str, list[str], int]]:
        """(key, tables, status) of each transaction: four tables, other ones each time, in no common order."""
        done = []
        for turn in range(2):
            key = f"w{worker}-{turn}"
            chosen = [names[(worker * 7 + turn * 5 + step * 11) % 32] for step in range(4)]
            answer = commit(lake, *(change(name, set_properties(**{key: "1"})) for name in chosen))
            done.append((key, chosen, answer.status))
        return done

    with ThreadPoolExecutor(32) as pool:
        ledger = [entry for entries in pool.map(work, range(32)) for entry in entries]

    assert {status for _, _, status in ledger} == {204}
    for name in names:
        expected = {key for key, chosen, _ in ledger if name in chosen}
        metadata = lake.load(name)["metadata"]
        assert {key for key in metadata["properties"] if key.startswith("w") and "-" in key[:4]} == expected
        assert len(metadata["metadata-log"]) == len(expected)
