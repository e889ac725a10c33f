"""Locations of tables: inside the warehouse, without overlap, empty, and without a purge in progress."""

from pathlib import Path

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from catalog.models import Tabular
from lakewarden import asgi
from lakewarden.tasks.purge import purge_location
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.locations import move
from tests.integration.catalog.observed import Recorded, eventually, local
from tests.integration.catalog.staged import commit_staged


def test_a_table_lies_below_the_warehouse_by_default(lake: Lake, warehouse: Warehouse) -> None:
    location = lake.create_table("orders").json()["metadata"]["location"]
    assert location.startswith(warehouse.location + "/")
    assert Tabular.objects.get().location == location


def test_a_table_lies_below_its_namespace_when_that_has_a_location(lake: Lake, warehouse: Warehouse) -> None:
    lake.create_namespace("hr", properties={"location": f"{warehouse.location}/people/"})
    location = lake.create_table("staff", within="hr").json()["metadata"]["location"]
    assert location.startswith(f"{warehouse.location}/people/")


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "file://{}/"])
def test_a_location_may_be_chosen_and_is_kept_as_written(lake: Lake, base: Path, form: str) -> None:
    asked = form.format(base / "mine")
    told = lake.create_table("orders", location=asked).json()
    assert told["metadata"]["location"] == asked.rstrip("/")
    assert Tabular.objects.get().location == f"file://{base / 'mine'}"
    assert local(told["metadata-location"]).parent == base / "mine" / "metadata"


@pytest.mark.parametrize(
    "location",
    [
        "file:///elsewhere/t",
        "file://{base}",
        "file://{base}/",
        "file://{base}-not/t",
        "file://{base}/../t",
        "file://{base}/a/%2e%2e/%2E%2E/t",
        "file://{base}//t",
        "file://{base}/./t",
        "file://{base}/t\x00",
        "s3://bucket/t",
        "{base}/t",
        "relative",
        "",
        "file://{base}/" + "x" * 256,
        "file://{base}/" + "/".join(["folder"] * 200),
    ],
)
def test_locations_outside_or_impossible_are_refused(lake: Lake, base: Path, location: str, recorded: Recorded) -> None:
    asked = location.replace("{base}", str(base))
    lake.create_table("orders")
    staged = lake.create_table("staged", stage_create=True).json()
    staged["metadata"]["location"] = asked
    answers = [
        lake.create_table("other", location=asked),
        lake.create_table("other", location=asked, stage_create=True),
        lake.create_view("other", location=asked),
        lake.commit("orders", move(asked)),
        commit_staged(lake, "staged", staged),
    ]
    assert {answer.status for answer in answers} == {400}
    assert recorded() == ["createTable"]
    # the first metadata file, and the folders of the creation that was staged at a place of its own
    assert [each.parent.name for each in base.rglob("*") if each.is_file()] == ["metadata"]
    assert len(list(base.rglob("*"))) == 7


def test_a_link_out_of_the_warehouse_is_refused(lake: Lake, base: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (base / "link").symlink_to(tmp_path / "elsewhere")
    answer = lake.create_table("orders", location=f"file://{base}/link/t")
    assert answer.status == 400
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("place", ["mine", "mine/inside", "."])
def test_locations_of_two_tables_never_overlap(lake: Lake, base: Path, place: str, recorded: Recorded) -> None:
    (base / "tables").mkdir()
    first = f"file:{base}/tables/mine"
    asked = f"file://{base}/tables/{place}".removesuffix("/.")
    lake.create_table("first", location=first)
    lake.create_table("second")
    staged = lake.create_table("third", stage_create=True).json()
    staged["metadata"]["location"] = asked
    answers = [
        commit_staged(lake, "third", staged),
        lake.commit("second", move(asked)),
        lake.create_view("v", location=asked),
    ]
    for answer in answers:
        assert answer.error() == (409, "AlreadyExistsException")
        assert "overlaps" in answer.message()
    assert lake.create_table("third", location=asked).status in {400, 409}
    assert recorded() == ["createTable", "createTable"]


def test_neighbours_with_a_common_beginning_do_not_overlap(lake: Lake, base: Path) -> None:
    assert lake.create_table("a", location=f"file://{base}/a").status == 200
    assert lake.create_table("ab", location=f"file://{base}/ab").status == 200
    assert lake.create_table("a_", location=f"file://{base}/a_").status == 200


def test_a_table_may_move_into_its_own_location(lake: Lake, base: Path) -> None:
    lake.create_table("orders", location=f"file://{base}/mine")
    moved = lake.commit("orders", move(f"file:{base}/mine/deeper")).json()
    assert moved["metadata"]["location"] == f"file:{base}/mine/deeper"
    assert local(moved["metadata-location"]).is_relative_to(base / "mine" / "deeper" / "metadata")
    assert Tabular.objects.get().location == f"file://{base}/mine/deeper"


@pytest.mark.parametrize("kind", ["file", "link", "nested"])
def test_a_place_that_is_not_empty_is_refused(lake: Lake, base: Path, tmp_path: Path, kind: str) -> None:
    place = base / "mine"
    if kind == "file":
        place.write_bytes(b"")
    elif kind == "link":
        (base / "other").mkdir()
        place.symlink_to(base / "other")
    else:
        (place / "deep" / "er").mkdir(parents=True)
        (place / "deep" / "er" / "data.parquet").write_bytes(b"")
    for staged in (False, True):
        answer = lake.create_table("orders", location=f"file://{place}", stage_create=staged)
        assert answer.error() == (400, "IllegalArgumentException")
        assert "not empty" in answer.message()


def test_empty_folders_do_not_count(lake: Lake, base: Path) -> None:
    (base / "mine" / "deep").mkdir(parents=True)
    assert lake.create_table("orders", location=f"file://{base}/mine").status == 200


def test_a_place_that_is_being_cleared_is_refused_until_it_is_clear(lake: Lake, base: Path, recorded: Recorded) -> None:
    place = f"file://{base}/mine"
    lake.create_table("orders", location=place)
    lake.client.delete(lake.table("orders", purgeRequested="true"))
    staged = lake.create_table("again", stage_create=True).json()
    for asked in (place, f"{place}/inside", f"file:{base}/mine/"):
        staged["metadata"]["location"] = asked
        answer = commit_staged(lake, "again", staged)
        assert answer.error() == (503, "ServiceUnavailableException")
        assert answer.headers["retry-after"] == "1"
        assert "still being removed" in answer.message()
    job = ProcrastinateJob.objects.get()
    assert purge_location(**job.args) == 1
    assert not (base / "mine").exists()
    ProcrastinateJob.objects.all()._raw_delete("default")
    assert commit_staged(lake, "again", staged).status == 200
    assert recorded() == ["createTable", "dropTable", "endTask", "createTable"]


def test_old_metadata_files_are_removed_when_the_table_asks_and_only_its_own(
    lake: Lake, base: Path, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = local(lake.create_table("other").json()["metadata-location"])
    first = local(lake.create_table("orders").json()["metadata-location"])
    asked = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    second = local(lake.commit("orders", set_properties(**asked)).json()["metadata-location"])
    third = local(lake.commit("orders", set_properties(a="b")).json()["metadata-location"])
    eventually(lambda: not first.exists())
    assert second.exists()
    assert third.exists()

    forged = third.read_text().replace(str(second), str(other))
    foreign = third.with_name("00009-forged.metadata.json")
    foreign.write_text(forged)
    lake.client.delete(lake.table("orders"))
    body = {"name": "orders", "metadata-location": f"file://{foreign}"}
    assert lake.client.post(lake.namespace("sales", "register"), body).status == 200
    monkeypatch.setattr(asgi, "HOT_ROUTES", [])  # Django removes what it removes before it answers
    for value in "cd":
        assert lake.commit("orders", set_properties(a=value)).status == 200
    assert str(other) not in (base / "x").name
    assert other.exists()
