"""`POST …/tables/{table}`: what a commit changes, refuses and leaves behind."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from catalog.models import Tabular
from lakewarden.audit.models import AuditEntry
from lakewarden.events.models import OutboxEvent
from tests.integration.catalog.lake import Lake, add_snapshot, set_branch, set_properties
from tests.integration.catalog.observed import Recorded, local

NIL = "00000000-0000-0000-0000-000000000000"


def metadata_files(base: Path) -> set[Path]:
    return set(base.rglob("*.metadata.json"))


def test_commit_moves_the_pointer_to_a_file_that_equals_the_answer(lake: Lake, recorded: Recorded) -> None:
    before = lake.create_table("orders").json()
    uuid = {"type": "assert-table-uuid", "uuid": before["metadata"]["table-uuid"].upper()}
    after = lake.commit("orders", set_properties(a="b"), requirements=[uuid]).json()
    assert after.keys() == {"metadata-location", "metadata"}
    assert after["metadata"]["properties"]["a"] == "b"
    assert after["metadata"]["metadata-log"][-1]["metadata-file"] == before["metadata-location"]
    assert "/metadata/00001-" in after["metadata-location"]
    assert json.loads(local(after["metadata-location"]).read_bytes()) == after["metadata"]
    assert lake.load("orders") == {**after, "config": {}}
    assert local(before["metadata-location"]).exists()
    assert recorded() == ["createTable", "updateTable"]


def test_commit_is_recorded_with_who_what_and_where(lake: Lake) -> None:
    before = lake.create_table("orders").json()
    headers = {"x-request-id": "request-7", "user-agent": "spark"}
    body: dict[str, Any] = {"requirements": [], "updates": [set_properties(a="b")]}
    told = lake.client.post(lake.table("orders"), body, headers=headers).json()
    entry, event = AuditEntry.objects.get(action="updateTable"), OutboxEvent.objects.get(type="updateTable")
    assert (entry.actor, entry.request_id, entry.user_agent) == ("oidc~engine", "request-7", "spark")
    assert (event.actor, event.request_id) == ("oidc~engine", "request-7")
    assert entry.details == event.data
    assert event.data == {
        "name": "orders",
        "namespace": ["sales"],
        "warehouse-id": lake.warehouse_id,
        "metadata-location": told["metadata-location"],
        "previous-metadata-location": before["metadata-location"],
        "version": 2,
    }


@pytest.mark.parametrize("codec", ["gzip", "GZIP", "none"])
def test_metadata_files_are_compressed_as_the_table_asks(lake: Lake, codec: str) -> None:
    told = lake.create_table("orders", properties={"write.metadata.compression-codec": codec}).json()
    content = local(told["metadata-location"]).read_bytes()
    assert told["metadata-location"].endswith(".gz.metadata.json") is (codec != "none")
    assert json.loads(content if codec == "none" else gzip.decompress(content)) == told["metadata"]


def test_an_unknown_compression_is_refused(lake: Lake, recorded: Recorded) -> None:
    answer = lake.create_table("orders", properties={"write.metadata.compression-codec": "zip"})
    assert answer.error() == (400, "IllegalArgumentException")
    assert "'zip'" in answer.message()
    assert recorded() == []


def test_metadata_files_lie_where_the_table_asks_inside_its_location(
    lake: Lake, base: Path, recorded: Recorded
) -> None:
    location = lake.create_table("orders").json()["metadata"]["location"]
    told = lake.commit("orders", set_properties(**{"write.metadata.path": f"{location}/meta/"})).json()
    assert told["metadata-location"].startswith(f"{location}/meta/00001-")
    assert lake.load("orders")["metadata"] == told["metadata"]
    for outside in (f"file://{base}/other", f"{location}/../other", location, "s3://bucket/meta"):
        answer = lake.commit("orders", set_properties(**{"write.metadata.path": outside}))
        assert answer.error() == (400, "IllegalArgumentException")
        assert outside in answer.message()
    assert recorded() == ["createTable", "updateTable"]


@pytest.mark.parametrize(
    "requirement",
    [
        {"type": "assert-table-uuid", "uuid": NIL},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 9},
        {"type": "assert-current-schema-id", "current-schema-id": 9},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 9},
        {"type": "assert-default-spec-id", "default-spec-id": 9},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 9},
    ],
    ids=lambda requirement: str(requirement["type"]),
)
def test_a_requirement_that_does_not_hold_fails_the_commit(
    lake: Lake, base: Path, requirement: dict[str, Any], recorded: Recorded
) -> None:
    before = lake.create_table("orders").json()
    files = metadata_files(base)
    answer = lake.commit("orders", set_properties(a="b"), requirements=[requirement])
    assert answer.error() == (409, "CommitFailedException")
    assert answer.message().startswith("Requirement failed: ")
    assert lake.load("orders") == before
    assert metadata_files(base) == files
    assert recorded() == ["createTable"]


def test_a_snapshot_that_came_too_late_fails_the_commit(lake: Lake) -> None:
    location = lake.create_table("orders").json()["metadata"]["location"]
    assert lake.commit("orders", add_snapshot(1, sequence=5, location=location), set_branch("main", 1)).status == 200
    late = lake.commit("orders", add_snapshot(2, sequence=5, location=location, parent=1), set_branch("main", 2))
    assert late.error() == (409, "CommitFailedException")


@pytest.mark.parametrize(
    ("update", "words"),
    [
        ({"action": "fly"}, "unknown action: fly"),
        ({}, "action"),
        ([], "updates[1]"),
        (7, "updates[1]"),
        (None, "updates[1]"),
        ({"action": "set-properties"}, "updates"),
        ({"action": "set-properties", "updates": {"a": 1}}, "updates[1]"),
        ({"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 2**63}, "updates[1]"),
        ({"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 99}, "99"),
        ({"action": "add-view-version"}, "unknown action"),
        ({"action": "set-location", "location": ""}, "ocation"),
    ],
)
def test_a_bad_update_is_refused_with_its_place(lake: Lake, update: Any, words: str, recorded: Recorded) -> None:
    before = lake.create_table("orders").json()
    answer = lake.commit("orders", set_properties(a="b"), update)
    assert answer.status == 400
    assert words in answer.message()
    assert lake.load("orders") == before
    assert recorded() == ["createTable"]


@pytest.mark.parametrize(
    "requirement", [{"type": "assert-weather"}, {"type": "assert-view-uuid", "uuid": NIL}, {}, [], 7]
)
def test_a_bad_requirement_is_refused(lake: Lake, requirement: Any) -> None:
    lake.create_table("orders")
    assert lake.commit("orders", requirements=[requirement]).status == 400


def test_a_commit_without_a_change_keeps_the_file(lake: Lake, recorded: Recorded) -> None:
    before = lake.create_table("orders").json()
    uuid = {"type": "assert-table-uuid", "uuid": before["metadata"]["table-uuid"]}
    for updates in ([], [{"action": "set-current-schema", "schema-id": 0}]):
        told = lake.commit("orders", *updates, requirements=[uuid]).json()
        assert {**told, "config": {}} == before
    assert Tabular.objects.get().version == 1
    assert recorded() == ["createTable"]


@pytest.mark.parametrize("name", ["nowhere", "report"])
def test_commit_to_what_is_no_table(lake: Lake, name: str) -> None:
    lake.create_view("report")
    assert lake.commit(name, set_properties(a="b")).error() == (404, "NoSuchTableException")


def test_commit_in_a_missing_namespace(lake: Lake) -> None:
    assert lake.commit("orders", set_properties(a="b"), within="nowhere").error() == (404, "NoSuchTableException")
