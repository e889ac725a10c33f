"""Table routes: create, staged create, load, list, drop, rename."""

import gzip
import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from catalog.models import Tabular, TabularDocument
from lakewarden import config
from lakewarden.authz.ledger.models import Grant
from tests.integration.catalog.lake import Lake, add_snapshot, identifier, set_branch, set_properties
from tests.integration.catalog.observed import Recorded, local
from tests.integration.catalog.staged import CREATE, commit_staged
from tests.servers.asgi_client import Answer


def on_disk(answer: Any) -> Any:
    """The metadata file that an answer points to."""
    content = local(answer["metadata-location"]).read_bytes()
    return json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)


def rename(lake: Lake, source: dict[str, Any], destination: dict[str, Any]) -> Answer:
    return lake.client.post(lake.path("tables", "rename"), {"source": source, "destination": destination})


def test_create_answers_with_fresh_ids_and_writes_the_file(lake: Lake, recorded: Recorded) -> None:
    created = lake.create_table("orders", properties={"a": "b"})
    told = created.json()
    metadata = told["metadata"]
    assert created.status == 200
    assert [field["id"] for field in metadata["schemas"][0]["fields"]] == [1, 2]
    assert metadata["last-column-id"] == 2
    assert metadata["format-version"] == 2
    assert metadata["properties"]["a"] == "b"
    assert UUID(metadata["table-uuid"])
    assert told["config"] == {}
    assert metadata == on_disk(told)
    assert told["metadata-location"].startswith(metadata["location"] + "/metadata/00000-")
    assert recorded() == ["createTable"]


def test_the_creator_becomes_the_owner(lake: Lake) -> None:
    lake.create_table("orders")
    grant = Grant.objects.get(object_type="table")
    assert (grant.principal_id, grant.privilege) == ("oidc~engine", "ownership")
    assert grant.object_id == str(Tabular.objects.get().id)


def test_load_equals_create_and_the_file(lake: Lake) -> None:
    created = lake.create_table("orders").json()
    assert lake.load("orders") == created
    assert lake.load("ORDERS") == created


def test_load_is_the_same_with_and_without_gzip(lake: Lake) -> None:
    lake.create_table("orders", properties={f"key-{number}": "v" * number for number in range(300)})
    plain = lake.client.get(lake.table("orders"))
    packed = lake.client.get(lake.table("orders"), headers={"accept-encoding": "br, gzip;q=0.5"})
    refused = lake.client.get(lake.table("orders"), headers={"accept-encoding": "gzip;q=0, identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body)
    assert gzip.decompress(packed.body) == plain.body == refused.body
    assert {answer.headers["vary"] for answer in (plain, packed, refused)} == {
        "Accept-Encoding, Authorization, X-Iceberg-Access-Delegation, X-Project-Id, X-Project-Ident, X-Assume-Role"
    }
    assert {answer.headers["cache-control"] for answer in (plain, packed, refused)} == {"private"}


def test_load_with_referenced_snapshots_only(lake: Lake) -> None:
    location = lake.create_table("orders").json()["metadata"]["location"]
    lake.commit("orders", add_snapshot(11, sequence=1, location=location), set_branch("main", 11))
    lake.commit("orders", add_snapshot(12, sequence=2, location=location, parent=11), set_branch("main", 12))
    whole = lake.load("orders")
    refs = lake.client.get(lake.table("orders", snapshots="refs")).json()
    assert [each["snapshot-id"] for each in whole["metadata"]["snapshots"]] == [11, 12]
    assert [each["snapshot-id"] for each in refs["metadata"]["snapshots"]] == [12]
    assert {**refs["metadata"], "snapshots": None} == {**whole["metadata"], "snapshots": None}
    assert refs["metadata-location"] == whole["metadata-location"]
    assert lake.client.get(lake.table("orders", snapshots="all")).json() == whole


def test_load_with_an_unknown_snapshot_mode_is_refused(lake: Lake) -> None:
    lake.create_table("orders")
    answer = lake.client.get(lake.table("orders", snapshots="some"))
    assert answer.error() == (400, "BadRequestException")
    assert "'some'" in answer.message()


def test_load_says_when_the_metadata_file_is_gone_and_a_commit_brings_it_back(lake: Lake) -> None:
    file = local(lake.create_table("orders").json()["metadata-location"])
    file.rename(file.with_name("moved"))
    answer = lake.client.get(lake.table("orders"))
    assert answer.error() == (404, "NotFoundException")
    assert str(file) in answer.message()
    assert lake.commit("orders", set_properties(a="b")).status == 200
    assert lake.load("orders")["metadata"]["properties"]["a"] == "b"


def test_unknown_members_and_64_bit_numbers_survive(lake: Lake) -> None:
    location = lake.create_table("orders").json()["metadata"]["location"]
    snapshot = add_snapshot(2**63 - 1, sequence=1, location=location)
    snapshot["snapshot"]["summary"] |= {"x-tool": "ünïcödé 🦆"}
    snapshot["snapshot"]["x-unknown"] = {"deep": [1, 2.5, None, 2**62 + 1]}
    lake.commit("orders", snapshot, set_branch("main", 2**63 - 1))
    found = lake.load("orders")
    assert found["metadata"]["snapshots"][0]["x-unknown"] == {"deep": [1, 2.5, None, 2**62 + 1]}
    assert found["metadata"]["current-snapshot-id"] == 2**63 - 1
    assert on_disk(found) == found["metadata"]


def test_table_names_are_unique_without_case_across_tables_and_views(lake: Lake, recorded: Recorded) -> None:
    lake.create_table("Orders")
    lake.create_view("report")
    before = recorded()
    for name, words in (
        ("orders", "Table already exists: sales.orders"),
        ("REPORT", "View with same name already exists"),
    ):
        for staged in (False, True):
            answer = lake.create_table(name, stage_create=staged)
            assert answer.error() == (409, "AlreadyExistsException")
            assert words in answer.message()
    assert recorded() == before


@pytest.mark.parametrize("name", ["", "a\x00", "a\nb", "x" * 256])
def test_table_names_that_cannot_be_are_refused(lake: Lake, name: str) -> None:
    assert lake.create_table(name).error() == (400, "IllegalArgumentException")
    assert not Tabular.everything.exists()


def test_create_in_a_missing_namespace(lake: Lake) -> None:
    answer = lake.create_table("orders", within="nowhere")
    assert answer.error() == (404, "NoSuchNamespaceException")
    assert answer.message() == "Namespace does not exist: nowhere"


def test_staged_create_stores_nothing_until_its_commit(lake: Lake, base: Path, recorded: Recorded) -> None:
    staged = lake.create_table("orders", stage_create=True, properties={"a": "b"}).json()
    assert "metadata-location" not in staged
    assert not Tabular.everything.exists()
    assert lake.client.head(lake.table("orders")).status == 404
    assert recorded() == []
    assert list(base.rglob("*.json")) == []

    committed = commit_staged(lake, "orders", staged).json()
    found = lake.load("orders")
    assert found["metadata"] == committed["metadata"] == on_disk(found)
    for member in ("table-uuid", "location", "schemas", "partition-specs", "sort-orders", "properties"):
        assert found["metadata"][member] == staged["metadata"][member]
    assert recorded() == ["createTable"]


def test_commit_of_a_staged_create_whose_name_is_taken_meanwhile(lake: Lake, base: Path, recorded: Recorded) -> None:
    staged = lake.create_table("orders", stage_create=True).json()
    first = lake.create_table("orders").json()
    files = set(base.rglob("*.json"))
    answer = commit_staged(lake, "orders", staged)
    assert answer.error() == (409, "CommitFailedException")
    assert answer.message().startswith("Requirement failed: table already exists")
    assert lake.load("orders") == first
    assert set(base.rglob("*.json")) == files
    assert recorded() == ["createTable"]


def test_commit_of_a_staged_create_when_a_view_has_the_name(lake: Lake) -> None:
    staged = lake.create_table("orders", stage_create=True).json()
    lake.create_view("orders")
    assert commit_staged(lake, "orders", staged).error() == (409, "AlreadyExistsException")


def test_assert_create_stands_alone(lake: Lake) -> None:
    requirements: list[dict[str, Any]] = [CREATE, {"type": "assert-current-schema-id", "current-schema-id": 0}]
    assert lake.commit("orders", set_properties(a="b"), requirements=requirements).error()[0] == 400


def test_head_tells_there_or_not(lake: Lake) -> None:
    lake.create_table("orders")
    lake.create_view("report")
    assert lake.client.head(lake.table("orders")).status == 204
    assert lake.client.head(lake.table("report")).status == 404
    assert lake.client.head(lake.table("nowhere")).status == 404


def test_list_holds_the_tables_of_this_namespace_alone(lake: Lake) -> None:
    lake.create_namespace("sales", "emea")
    for name in ("b", "A", "c"):
        lake.create_table(name)
    lake.create_view("report")
    lake.create_table("deep", within=("sales", "emea"))
    listed = lake.client.get(lake.namespace("sales", "tables")).json()
    assert listed["identifiers"] == [identifier(name) for name in ("A", "b", "c")]


@pytest.mark.parametrize("route", ["tables", "views"])
def test_list_of_a_missing_namespace(lake: Lake, route: str) -> None:
    assert lake.client.get(lake.namespace("nowhere", route)).error() == (404, "NoSuchNamespaceException")


def test_drop_without_purge_forgets_the_table_and_keeps_its_files(lake: Lake, recorded: Recorded) -> None:
    file = local(lake.create_table("orders").json()["metadata-location"])
    assert lake.client.delete(lake.table("orders", purgeRequested="false")).status == 204
    assert file.exists()
    assert lake.client.get(lake.table("orders")).error() == (404, "NoSuchTableException")
    assert lake.client.delete(lake.table("orders")).error() == (404, "NoSuchTableException")
    assert not Tabular.everything.exists()
    assert not TabularDocument.objects.exists()
    assert not Grant.objects.filter(object_type="table").exists()
    assert not ProcrastinateJob.objects.exists()
    assert recorded() == ["createTable", "dropTable"]


def test_drop_with_purge_queues_the_removal_of_its_files(lake: Lake) -> None:
    location = lake.create_table("orders").json()["metadata"]["location"]
    assert lake.client.delete(lake.table("orders", purgeRequested="TRUE")).status == 204
    job = ProcrastinateJob.objects.get()
    assert (job.queue_name, job.lock, job.status) == ("tabular_purge", location, "todo")
    assert job.args["location"] == location
    assert job.scheduled_at is None


def test_a_drop_that_says_nothing_removes_the_files_after_the_grace(lake: Lake) -> None:
    location = lake.create_table("orders").json()["metadata"]["location"]
    before = timezone.now()
    assert lake.client.delete(lake.table("orders")).status == 204
    job = ProcrastinateJob.objects.get()
    assert (job.queue_name, job.lock, job.status) == ("tabular_purge", location, "todo")
    assert job.scheduled_at is not None
    assert timedelta(seconds=55) < job.scheduled_at - before < timedelta(seconds=65)


def test_without_a_grace_the_files_go_at_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = config.current().model_copy(update={"deletion": config.DeletionConfig(purge_grace_s=0)})
    monkeypatch.setattr(config, "current", lambda: at_once)
    lake.create_table("orders")
    assert lake.client.delete(lake.table("orders")).status == 204
    assert ProcrastinateJob.objects.get().scheduled_at is None


def test_a_refused_drop_queues_nothing(lake: Lake) -> None:
    lake.create_table("orders")
    assert lake.client.delete(lake.table("orders", purgeRequested="yes")).error() == (400, "BadRequestException")
    assert lake.client.delete(lake.table("others", purgeRequested="true")).error()[0] == 404
    assert lake.client.head(lake.table("orders")).status == 204
    assert not ProcrastinateJob.objects.exists()


def test_a_name_is_free_again_after_a_drop(lake: Lake) -> None:
    first = lake.create_table("orders").json()["metadata"]
    lake.client.delete(lake.table("orders", purgeRequested="true"))
    second = lake.create_table("orders").json()["metadata"]
    assert first["table-uuid"] != second["table-uuid"]
    assert first["location"] != second["location"]


def test_rename_moves_the_name_and_nothing_else(lake: Lake, recorded: Recorded) -> None:
    lake.create_namespace("hr", "people")
    lake.create_namespace("hr")
    lake.create_namespace("hr", "people")
    before = lake.create_table("orders").json()
    assert rename(lake, identifier("orders"), identifier("Staff 1", ("hr", "people"))).status == 204
    assert lake.load("staff 1", within=("hr", "people")) == before
    assert lake.client.head(lake.table("orders")).status == 404
    assert lake.commit("Staff 1", set_properties(a="b"), within=("hr", "people")).status == 200
    assert recorded()[-2:] == ["renameTable", "updateTable"]


def test_rename_may_change_the_case_alone(lake: Lake) -> None:
    lake.create_table("orders")
    assert rename(lake, identifier("orders"), identifier("Orders")).status == 204
    assert lake.client.get(lake.namespace("sales", "tables")).json()["identifiers"] == [identifier("Orders")]


def test_rename_to_its_own_name_changes_nothing(lake: Lake, recorded: Recorded) -> None:
    lake.create_table("orders")
    assert rename(lake, identifier("orders"), identifier("orders")).status == 204
    assert recorded() == ["createTable"]


@pytest.mark.parametrize("taken", ["table", "view"])
def test_rename_onto_a_taken_name(lake: Lake, taken: str, recorded: Recorded) -> None:
    lake.create_table("orders")
    (lake.create_table if taken == "table" else lake.create_view)("Report")
    answer = rename(lake, identifier("orders"), identifier("report"))
    assert answer.error() == (409, "AlreadyExistsException")
    assert answer.message() == f"Cannot rename sales.orders to sales.report. {taken.capitalize()} already exists"
    assert recorded() == ["createTable", f"create{taken.capitalize()}"]


@pytest.mark.parametrize(
    ("source", "destination", "error"),
    [
        (identifier("nowhere"), identifier("b"), (404, "NoSuchTableException")),
        (identifier("report"), identifier("b"), (404, "NoSuchTableException")),
        (identifier("orders"), identifier("b", "nowhere"), (404, "NoSuchNamespaceException")),
        (identifier("orders"), identifier("b", ()), (404, "NoSuchNamespaceException")),
        (identifier("orders", ()), identifier("b"), (404, "NoSuchTableException")),
        (identifier("orders"), identifier(""), (400, "IllegalArgumentException")),
        (identifier("orders"), identifier("a\x00"), (400, "IllegalArgumentException")),
        (identifier("orders\x00"), identifier("b"), (404, "NoSuchTableException")),
        (identifier("orders"), identifier("b", "sales\x00"), (404, "NoSuchNamespaceException")),
    ],
)
def test_rename_refused(
    lake: Lake, source: dict[str, Any], destination: dict[str, Any], error: tuple[int, str], recorded: Recorded
) -> None:
    lake.create_table("orders")
    lake.create_view("report")
    assert rename(lake, source, destination).error() == error
    assert recorded() == ["createTable", "createView"]
