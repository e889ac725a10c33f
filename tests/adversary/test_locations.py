"""No caller gets access to another object's files through a location: on every route it must belong to one object only."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from catalog.models import Tabular
from lakewarden.tasks.purge import purge_location
from tests.installation import Grant
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.staged import commit_staged
from tests.servers.asgi_client import Answer

Route = Callable[[Lake, str], Answer]


def move(location: str) -> dict[str, str]:
    return {"action": "set-location", "location": location}


def folder(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def write_data(location: str) -> Path:
    """Files that an engine writes at the location."""
    file = folder(location) / "data" / "part-0.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"rows")
    return file


def run_purges() -> None:
    """Run all waiting tasks, also those scheduled for later; some may fail."""
    for job in ProcrastinateJob.objects.all():
        try:
            purge_location(**job.args)
        except Exception:  # noqa: BLE001, S112 what is left is looked at
            continue


def by_move(mallory: Lake, place: str) -> Answer:
    mallory.create_table("own", within="outside")
    return mallory.commit("own", move(place), within="outside")


def by_creation(mallory: Lake, place: str) -> Answer:
    return mallory.create_table("own", within="outside", location=place)


def by_view(mallory: Lake, place: str) -> Answer:
    return mallory.create_view("own", within="outside", location=place)


def by_staging(mallory: Lake, place: str) -> Answer:
    return mallory.create_table("own", within="outside", location=place, stage_create=True)


def by_assert_create(mallory: Lake, place: str) -> Answer:
    staged = mallory.create_table("own", within="outside", stage_create=True).json()
    staged["metadata"]["location"] = place
    return commit_staged(mallory, "own", staged, within="outside")


def by_transaction(mallory: Lake, place: str) -> Answer:
    staged = mallory.create_table("own", within="outside", stage_create=True).json()["metadata"]
    change = {
        "identifier": {"namespace": ["outside"], "name": "own"},
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": staged["table-uuid"]},
            {"action": "add-schema", "schema": staged["schemas"][0]},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": staged["partition-specs"][0]},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": staged["sort-orders"][0]},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            move(place),
        ],
    }
    return mallory.client.post(mallory.path("transactions", "commit"), {"table-changes": [change]})


def by_view_move(mallory: Lake, place: str) -> Answer:
    mallory.create_view("own", within="outside")
    return mallory.client.post(mallory.view("own", within="outside"), {"updates": [move(place)]})


def by_namespace(mallory: Lake, place: str) -> Answer:
    mallory.create_namespace("outside", "inner", properties={"location": place})
    return mallory.create_table("own", within=("outside", "inner"), location=f"{place}/data")


ROUTES: list[Route] = [
    by_move, by_creation, by_view, by_staging, by_assert_create, by_transaction, by_view_move, by_namespace,
]  # fmt: skip


def unregistered(lake: Lake) -> str:
    place: str = lake.create_table("orders").json()["metadata"]["location"]
    write_data(place)
    assert lake.client.post(lake.table("orders", "unregister")).status == 200
    return place


def kept_by_its_drop(lake: Lake) -> str:
    place: str = lake.create_table("orders").json()["metadata"]["location"]
    write_data(place)
    assert lake.client.delete(lake.table("orders", purgeRequested="false")).status == 204
    return place


def left_by_a_move(lake: Lake) -> str:
    place: str = lake.create_table("orders").json()["metadata"]["location"]
    write_data(place)
    assert lake.commit("orders", move(f"{place}-new")).status == 200
    return place


def staged(lake: Lake) -> str:
    place: str = lake.create_table("orders", stage_create=True).json()["metadata"]["location"]
    write_data(place)
    return place


def live(lake: Lake) -> str:
    place: str = lake.create_table("orders").json()["metadata"]["location"]
    write_data(place)
    return place


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("victim", [unregistered, kept_by_its_drop, left_by_a_move, staged, live])
@pytest.mark.parametrize("part", ["", "/data"])
def test_a_place_with_files_of_others_cannot_be_taken_and_purged(
    lake: Lake, outsider: Lake, victim: Callable[[Lake], str], route: Route, part: str
) -> None:
    """Rights: create on `outside`, where the attacker owns what they create."""
    place = victim(lake)
    file = folder(place) / "data" / "part-0.parquet"

    assert route(outsider, place + part).status in {400, 404, 409}

    for path in (outsider.table("own", within="outside"), outsider.table("own", within=("outside", "inner"))):
        outsider.client.delete(path + "?purgeRequested=true")
    outsider.client.delete(outsider.view("own", within="outside"))
    run_purges()
    assert file.read_bytes() == b"rows"


def register(mallory: Lake, file: Path) -> Answer:
    body = {"name": "own", "metadata-location": f"file://{file}"}
    return mallory.client.post(mallory.namespace("outside", "register"), body)


@pytest.mark.parametrize("victim", [unregistered, kept_by_its_drop, staged, live])
def test_files_of_another_namespace_cannot_be_registered(
    lake: Lake, outsider: Lake, base: Path, victim: Callable[[Lake], str]
) -> None:
    """Rights: create on `outside`; the attacker knows the locations of other tables' metadata files."""
    place = victim(lake)
    (folder(place) / "metadata").mkdir(exist_ok=True)
    template = lake.create_table("template").json()
    forged = json.dumps(template["metadata"] | {"location": place})
    (folder(place) / "metadata" / "v9.metadata.json").write_text(forged)

    for file in sorted((folder(place) / "metadata").glob("*.json")):
        assert register(outsider, file).status in {400, 409}


def test_a_table_dropped_a_moment_ago_cannot_be_registered_elsewhere(lake: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`; the files of `sales.orders` wait for their removal."""
    told = lake.create_table("orders").json()
    assert lake.client.delete(lake.table("orders")).status == 204

    assert register(outsider, folder(told["metadata-location"])).error() == (409, "AlreadyExistsException")

    back = {"name": "orders", "metadata-location": told["metadata-location"]}
    assert lake.client.post(lake.namespace("sales", "register"), back).status == 200


def test_the_folder_that_a_namespace_will_use_cannot_be_blocked(lake: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`, and to read the property `location` of `sales`."""
    theirs = lake.client.get(lake.namespace("sales")).json()["properties"]["location"]
    for route in ROUTES:
        for place in (theirs, f"{theirs}/anything", f"{theirs}/01a20000-0000-7000-8000-000000000000/data"):
            assert route(outsider, place).status in {400, 404, 409}, (route, place)
            outsider.client.delete(outsider.table("own", within="outside"))
            outsider.client.delete(outsider.view("own", within="outside"))
    assert lake.create_table("orders").status == 200
    nested = outsider.create_namespace("outside", "deep", properties={"location": f"{theirs}/deep"})
    assert nested.error() == (409, "AlreadyExistsException")


def test_a_staged_table_is_the_stagers(lake: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`; the attacker knows the uuid and the location of a creation staged in `sales`."""
    staged_by_lake = lake.create_table("orders", stage_create=True).json()
    file = write_data(staged_by_lake["metadata"]["location"])

    stolen = commit_staged(outsider, "own", staged_by_lake, within="outside")

    assert stolen.status in {400, 409}
    assert commit_staged(lake, "orders", staged_by_lake).status == 200
    assert file.exists()


def test_a_staged_table_is_the_stagers_also_in_one_namespace(lake: Lake, grant: Grant) -> None:
    """Rights: create on the whole warehouse."""
    grant("maker", "create")
    staged_by_lake = lake.create_table("orders", stage_create=True).json()
    write_data(staged_by_lake["metadata"]["location"])
    assert commit_staged(lake.as_user("maker"), "mine", staged_by_lake).status in {400, 409}
    assert commit_staged(lake, "orders", staged_by_lake).status == 200


def test_a_writer_cannot_move_a_table(lake: Lake, grant: Grant, base: Path) -> None:
    """Rights: write on the whole warehouse, neither create nor modify."""
    lake.create_table("orders")
    grant("writer", "write")
    writer = lake.as_user("writer")
    assert writer.commit("orders", set_properties(a="b")).status == 200
    assert writer.commit("orders", move(f"file://{base}/elsewhere")).error() == (403, "ForbiddenException")
    assert not (base / "elsewhere").exists()


def test_a_moved_table_is_purged_in_all_its_places(lake: Lake, base: Path) -> None:
    """Rights: modify; no attack, but a purge that reports SUCCESS must not leave files."""
    files = [write_data(live(lake))]
    for number in range(3):
        place = f"file://{base}/place-{number}"
        assert lake.commit("orders", move(place)).status == 200
        files.append(write_data(place))
    deeper = f"file://{base}/place-2/deeper"
    assert lake.commit("orders", move(deeper)).status == 200
    files.append(write_data(deeper))
    assert lake.create_table("other", location=f"file://{base}/place-1").status in {400, 409}

    assert lake.client.delete(lake.table("orders", purgeRequested="true")).status == 204
    for job in ProcrastinateJob.objects.all():
        purge_location(**job.args)

    assert [file for file in files if file.exists()] == []
    ProcrastinateJob.objects.all()._raw_delete("default")
    assert lake.create_table("other", location=f"file://{base}/place-1").status == 200


def test_a_purge_stops_before_what_is_not_its_own(lake: Lake, base: Path) -> None:
    """Rights: none; because of some mistake another table is in the location that is to be purged."""
    place = live(lake)
    other: dict[str, Any] = lake.create_table("other", location=f"file://{base}/other").json()
    lake.client.delete(lake.table("orders", purgeRequested="true"))
    from catalog.models import Tabular  # noqa: PLC0415

    Tabular.objects.filter(name="other").update(location=f"{place}/data")
    with pytest.raises(Exception, match="nothing in it is removed"):
        purge_location(**ProcrastinateJob.objects.get().args)
    assert (folder(place) / "data" / "part-0.parquet").exists()
    assert folder(other["metadata-location"]).exists()


def test_the_log_of_a_table_leads_to_no_file_of_others(lake: Lake, base: Path) -> None:
    """Rights: create and write; the attacker's location holds a link into the folder of `orders`."""
    victim = folder(lake.create_table("orders").json()["metadata-location"])
    told = lake.create_table("own").json()
    mine = folder(told["metadata"]["location"])
    (mine / "link").symlink_to(victim.parent)
    log = [{"timestamp-ms": 1, "metadata-file": f"file://{mine}/link/{victim.name}"}]
    asked = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    forged = told["metadata"] | {"metadata-log": log, "properties": asked}
    file = mine / "metadata" / "v9.metadata.json"
    file.write_text(json.dumps(forged))
    assert lake.client.post(lake.table("own", "unregister")).status == 200
    body = {"name": "own", "metadata-location": f"file://{file}"}
    assert lake.client.post(lake.namespace("sales", "register"), body).status == 200
    for value in "ab":
        assert lake.commit("own", set_properties(a=value)).status == 200
    assert victim.exists()


def test_metadata_is_not_written_through_a_link(lake: Lake) -> None:
    """Rights: create and write; the attacker's location holds a link into the folder of `orders`."""
    victim = folder(lake.create_table("orders").json()["metadata-location"]).parent
    mine = folder(lake.create_table("own").json()["metadata"]["location"])
    (mine / "link").symlink_to(victim)
    before = sorted(victim.iterdir())
    asked = set_properties(**{"write.metadata.path": f"file://{mine}/link"})
    assert lake.commit("own", asked).error() == (400, "IllegalArgumentException")
    assert sorted(victim.iterdir()) == before


@pytest.mark.parametrize("name", ["write.data.path", "write.object-storage.path", "write.folder-storage.path"])
def test_files_are_not_written_outside_the_own_location(lake: Lake, name: str) -> None:
    """Rights: create and write; engines would write where the property says."""
    victim = lake.create_table("orders").json()["metadata"]["location"]
    own = lake.create_table("own").json()["metadata"]["location"]
    for path in (victim, f"{victim}/data", f"{own}/../x", own.rpartition("/")[0], "s3://elsewhere"):
        assert lake.commit("own", set_properties(**{name: path})).error() == (400, "IllegalArgumentException")
        assert lake.create_table("new", properties={name: path}).error() == (400, "IllegalArgumentException")
    assert lake.commit("own", set_properties(**{name: f"{own}/files/"})).status == 200


def test_a_failed_transaction_leaves_no_file(lake: Lake, base: Path) -> None:
    """Rights: create; each failed transaction could leave a file."""
    first = lake.create_table("first", stage_create=True).json()["metadata"]
    second = lake.create_table("second", stage_create=True).json()["metadata"]
    lake.create_table("taken")
    before = sorted(base.rglob("*.json"))

    def creation(name: str, metadata: Any) -> dict[str, Any]:
        updates = [
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "add-schema", "schema": metadata["schemas"][0]},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": metadata["partition-specs"][0]},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            move(metadata["location"]),
        ]
        where = {"namespace": ["sales"], "name": name}
        return {"identifier": where, "requirements": [{"type": "assert-create"}], "updates": updates}

    body = {"table-changes": [creation("first", first), creation("taken", second)]}
    assert lake.client.post(lake.path("transactions", "commit"), body).status == 409
    assert sorted(base.rglob("*.json")) == before
    body = {"table-changes": [creation("first", first), creation("second", second)]}
    assert lake.client.post(lake.path("transactions", "commit"), body).status == 204


def test_places_that_are_empty_by_now_are_free(lake: Lake, base: Path) -> None:
    """Rights: create; a released location whose files were removed by hand can be used again."""
    place = unregistered(lake)
    lake.create_namespace("other")
    shutil.rmtree(folder(place))
    assert lake.create_table("again", location=place).status == 200


def test_a_namespace_in_the_location_of_a_table_of_an_older_release_takes_no_new_one(lake: Lake, base: Path) -> None:
    """Rights: create.

    Older releases allowed overlaps; a table that is created there would be purged with the older one.
    """
    assert lake.create_namespace("inner", properties={"location": f"file://{base}/old/inner"}).status == 200
    assert lake.create_table("outer").status == 200
    Tabular.objects.filter(name="outer").update(location=f"file://{base}/old")

    assert lake.create_table("new", within="inner").status == 409

    Tabular.objects.filter(name="outer").update(location=f"file://{base}/apart")
    assert lake.create_table("new", within="inner").status == 200
