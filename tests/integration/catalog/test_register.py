"""`POST …/register`: metadata files that are there become tables."""

import gzip
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from catalog.access import tabular_chain
from catalog.models import Tabular
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.ledger.models import Grant as GrantRow
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tests.installation import ADMIN, Grant
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import Recorded, local
from tests.integration.catalog.registering import register


@pytest.fixture
def dropped(lake: Lake) -> Any:
    """The last answer of the table `orders`, which was dropped and whose files are there."""
    lake.create_table("orders", properties={"a": "b"})
    told = lake.load("orders")
    lake.client.delete(lake.table("orders"))
    return told


def test_register_brings_a_dropped_table_back(lake: Lake, dropped: Any, recorded: Recorded) -> None:
    answer = register(lake, "again", dropped["metadata-location"])
    assert answer.json() == lake.load("again") == dropped
    assert recorded() == ["registerTable"]


def test_a_registered_table_takes_commits(lake: Lake, dropped: Any) -> None:
    register(lake, "again", dropped["metadata-location"])
    told = lake.commit("again", set_properties(c="d")).json()
    assert told["metadata"]["properties"]["c"] == "d"
    assert told["metadata"]["metadata-log"][-1]["metadata-file"] == dropped["metadata-location"]


def test_register_reads_what_others_write(lake: Lake, dropped: Any) -> None:
    file = local(dropped["metadata-location"])
    foreign = {**dropped["metadata"], "x-engine": {"big": 2**62 + 1}}
    del foreign["metadata-log"], foreign["snapshot-log"]
    other = file.with_name("v7.gz.metadata.json")
    other.write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps(foreign, indent=2).encode()))
    told = register(lake, "again", f"file:{other}").json()
    assert told["metadata"]["x-engine"] == {"big": 2**62 + 1}
    assert told["metadata"]["metadata-log"] == []
    assert told["metadata-location"] == f"file:{other}"


@pytest.mark.parametrize("taken", ["table", "view"])
def test_register_with_a_taken_name(lake: Lake, dropped: Any, taken: str) -> None:
    (lake.create_table if taken == "table" else lake.create_view)("Again")
    assert register(lake, "again", dropped["metadata-location"]).error() == (409, "AlreadyExistsException")


def test_the_same_file_is_registered_once(lake: Lake, dropped: Any) -> None:
    assert register(lake, "one", dropped["metadata-location"]).status == 200
    answer = register(lake, "two", dropped["metadata-location"])
    assert answer.error() == (409, "AlreadyExistsException")
    assert "overlaps" in answer.message()


def test_overwrite_replaces_the_table_of_the_name(lake: Lake, recorded: Recorded) -> None:
    first = lake.create_table("orders").json()
    second = lake.commit("orders", set_properties(a="b")).json()
    before = Tabular.objects.get().id
    told = register(lake, "Orders", first["metadata-location"], overwrite=True)
    assert told.json() == lake.load("orders") == first
    assert first["metadata"] != second["metadata"]
    assert Tabular.objects.get().id != before
    assert owners_of(Tabular.objects.get().id) == [("oidc~engine", "ownership")]
    assert recorded() == ["createTable", "updateTable", "dropTable", "registerTable"]


def test_overwrite_keeps_the_owner_and_what_others_may_do(lake: Lake, grant: Grant) -> None:
    told = lake.create_table("orders").json()
    chain = tabular_chain(Tabular.objects.select_related("namespace__warehouse__project").get())
    ledger.give(chain, [(PrincipalId("oidc~reader"), Privilege.SELECT)], granted_by=ADMIN)
    before = owners_of(Tabular.objects.get().id)
    for privilege in ("create", "modify"):
        grant("other", privilege)
    assert register(lake.as_user("other"), "orders", told["metadata-location"], overwrite=True).status == 200
    assert owners_of(Tabular.objects.get().id) == before == [("oidc~engine", "ownership"), ("oidc~reader", "select")]
    assert not GrantRow.objects.filter(object_id=chain[-1].id).exists()
    assert lake.as_user("reader").client.get(lake.table("orders")).status == 200


def owners_of(identifier: UUID) -> list[tuple[str, str]]:
    rows = GrantRow.objects.filter(object_id=str(identifier)).order_by("principal_id")
    return list(rows.values_list("principal_id", "privilege"))


def test_overwrite_of_nothing_is_a_plain_register(lake: Lake, dropped: Any) -> None:
    assert register(lake, "again", dropped["metadata-location"], overwrite=True).status == 200


def test_overwrite_never_replaces_a_view(lake: Lake, dropped: Any) -> None:
    lake.create_view("again")
    answer = register(lake, "again", dropped["metadata-location"], overwrite=True)
    assert answer.error() == (409, "AlreadyExistsException")
    assert lake.client.head(lake.view("again")).status == 204


def test_overwrite_needs_the_right_to_drop(lake: Lake, dropped: Any, grant: Grant) -> None:
    before = lake.create_table("orders").json()
    grant("maker", "create")
    maker = lake.as_user("maker")
    answer = register(maker, "orders", dropped["metadata-location"], overwrite=True)
    assert answer.error() == (403, "ForbiddenException")
    assert lake.load("orders") == before


def test_a_refused_overwrite_keeps_the_table(lake: Lake, dropped: Any, recorded: Recorded) -> None:
    before = lake.create_table("orders").json()
    lake.create_table("other")
    location = dropped["metadata"]["location"].encode()
    file = local(dropped["metadata-location"])
    file.write_bytes(file.read_bytes().replace(location, lake.load("other")["metadata"]["location"].encode()))
    answer = register(lake, "orders", dropped["metadata-location"], overwrite=True)
    assert answer.status == 400
    assert lake.load("orders") == before
    assert recorded() == ["createTable", "createTable"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist"),
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[]", "Invalid table metadata file"),
        (b"{}", "Invalid table metadata file"),
        (b"\x1f\x8bnot gzip", "gzip"),
        (b"\xff\xfe", "Invalid table metadata file"),
        (b'{"format-version": 9}', "Invalid table metadata file"),
        (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", "nested too deeply"),
        (b"PAR1", "not valid JSON"),
    ],
)
def test_files_that_are_no_table_are_refused(lake: Lake, base: Path, content: bytes | None, words: str) -> None:
    (base / "t" / "metadata").mkdir(parents=True)
    file = base / "t" / "metadata" / "v1.metadata.json"
    if content is not None:
        file.write_bytes(content)
    answer = register(lake, "again", f"file://{file}")
    assert answer.error() == (400, "ValidationException")
    assert words in answer.message()
    assert not Tabular.everything.exists()


def test_a_view_file_is_no_table(lake: Lake, base: Path) -> None:
    told = lake.create_view("report").json()
    file = base / "t" / "view.metadata.json"
    file.parent.mkdir()
    file.write_bytes(local(told["metadata-location"]).read_bytes())
    assert register(lake, "again", f"file://{file}").error() == (400, "ValidationException")


def test_a_folder_is_no_metadata_file(lake: Lake, dropped: Any) -> None:
    folder = dropped["metadata-location"].rpartition("/")[0]
    assert register(lake, "again", folder).error() == (400, "ValidationException")


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "file://{base}/../x.json", "s3://b/x", "", "{base}/x", "file://{base}/a\x00"]
)
def test_files_outside_the_warehouse_are_refused(lake: Lake, base: Path, location: str) -> None:
    answer = register(lake, "again", location.replace("{base}", str(base)))
    assert answer.error() == (400, "IllegalArgumentException")


def test_a_link_out_of_the_warehouse_is_not_followed(lake: Lake, dropped: Any, tmp_path: Path) -> None:
    file = local(dropped["metadata-location"])
    file.rename(tmp_path / "outside.json")
    file.symlink_to(tmp_path / "outside.json")
    assert register(lake, "again", dropped["metadata-location"]).status == 400


def test_a_file_outside_its_own_table_is_refused(lake: Lake, dropped: Any, base: Path) -> None:
    copy = base / "copy.metadata.json"
    copy.write_bytes(local(dropped["metadata-location"]).read_bytes())
    answer = register(lake, "again", f"file://{copy}")
    assert answer.error() == (400, "ValidationException")
    assert "not inside" in answer.message()


def test_register_in_a_missing_namespace(lake: Lake, dropped: Any) -> None:
    body = {"name": "again", "metadata-location": dropped["metadata-location"]}
    assert lake.client.post(lake.namespace("nowhere", "register"), body).error() == (404, "NoSuchNamespaceException")
