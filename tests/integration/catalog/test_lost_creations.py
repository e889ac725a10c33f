"""`lakewarden orphan-files` finds what is left of tables that were never created, and takes nothing else for that."""

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from catalog.models import Namespace
from catalog.services import lost_creations, orphan_files
from catalog.services.lost_creations import LostCreation
from lakewarden.ids import new_id
from lakewarden.storage.local import LocalStorage
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake

TWO_DAYS = timedelta(days=2)
Lose = Callable[..., Path]


def named(ago: timedelta) -> UUID:
    """A UUIDv7 of that time."""
    at = int((datetime.now(UTC) - ago).timestamp() * 1000)
    return UUID(int=at << 80 | new_id().int & (1 << 80) - 1)


def found(*, remove: bool = False, older_than: timedelta = timedelta(0)) -> list[str]:
    each = list(orphan_files.find(older_than=older_than, remove=remove))
    assert all(isinstance(one, LostCreation) for one in each), each
    assert all(one.is_removed == remove for one in each if isinstance(one, LostCreation))
    return [one.location.removeprefix("file://") for one in each if isinstance(one, LostCreation)]


@pytest.fixture
def place(lake: Lake) -> Path:
    """The folder of `sales`."""
    return Path(lake.client.get(lake.namespace("sales")).json()["properties"]["location"].removeprefix("file://"))


@pytest.fixture
def lose(lake: Lake, place: Path) -> Lose:
    """Makes the file of a table that was never created; what is given differs from what a killed server leaves."""
    assert lake.create_table("pattern").status == 200
    metadata = lake.load("pattern")["metadata"]

    def write(
        *,
        ago: timedelta = TWO_DAYS,
        within: Path = place,
        folder: str = "{uuid}",
        file_ago: timedelta | None = None,
        version: int = 0,
        cut: int | None = None,
        **told: object,
    ) -> Path:
        uuid = named(ago)
        top = within / folder.format(uuid=uuid)
        file = top / "metadata" / f"{version:05d}-{named(ago if file_ago is None else file_ago)}.metadata.json"
        file.parent.mkdir(parents=True)
        content = {**metadata, "location": f"file://{top}", "table-uuid": str(uuid), **told}
        file.write_text(json.dumps(content)[:cut])
        return file

    return write


def test_it_is_listed_and_removed_with_its_folders_only_when_asked(lake: Lake, place: Path, lose: Lose) -> None:
    whole, part, view = lose(), lose(cut=200), lose(**{"view-uuid": None})
    (whole.parent.parent / "data").mkdir()
    before = set(place.rglob("*"))
    expected = sorted(map(str, (whole, part, view)))
    assert sorted(found()) == expected
    assert set(place.rglob("*")) == before
    assert sorted(found(remove=True)) == expected
    assert before - set(place.rglob("*")) >= {whole, part, whole.parent, whole.parent.parent}
    assert place.is_dir()
    assert found() == []
    assert lake.load("pattern")


def test_what_is_young_is_left_alone_whatever_age_is_asked_for(lose: Lose) -> None:
    lose(ago=timedelta(minutes=50))
    old = lose(ago=timedelta(hours=2))
    assert found(remove=True) == [str(old)]
    lose(ago=timedelta(hours=20))
    assert found(older_than=timedelta(hours=24)) == []


@pytest.mark.parametrize(
    "different",
    [
        {"folder": "orders"},
        {"folder": "{uuid}-{uuid}"},
        {"folder": "5d9b1c1e-0000-4000-8000-000000000000"},
        {"file_ago": timedelta(days=1)},
        {"version": 1},
        {"location": "file:///elsewhere"},
        {"location": "s3://bucket/x"},
        {"table-uuid": "01890000-0000-7000-8000-000000000000"},
        {"metadata-log": [{"timestamp-ms": 1, "metadata-file": "x"}]},
    ],
    ids=str,
)
def test_what_differs_in_anything_is_somebody_elses(lose: Lose, different: dict[str, object]) -> None:
    file = lose(**different)
    assert found(remove=True) == []
    assert file.exists()


@pytest.mark.parametrize("beside", ["data/00000.parquet", "metadata/snap-1.avro", "metadata/version-hint.text", "x"])
def test_a_folder_in_which_something_else_lies_is_left_alone(lose: Lose, beside: str) -> None:
    file = lose()
    other = file.parent.parent / beside
    other.parent.mkdir(exist_ok=True)
    other.write_bytes(b"")
    assert found(remove=True) == []
    assert file.exists()
    assert other.exists()


def test_a_folder_that_is_a_link_is_not_followed(place: Path, lose: Lose, tmp_path: Path) -> None:
    file = lose(within=tmp_path)
    (place / file.parent.parent.name).symlink_to(file.parent.parent)
    assert found(remove=True) == []
    assert file.exists()


def test_places_of_objects_are_left_alone_whatever_became_of_them(
    lake: Lake, place: Path, lose: Lose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table, one that is dropped but kept, a dropped one that can be restored, a staged one, a former location."""
    assert lake.create_table("live").status == 200
    for name in ("kept", "restorable"):
        assert lake.create_table(name).status == 200
    assert lake.client.delete(lake.table("kept", purgeRequested="false")).status == 204
    Warehouse.objects.update(delete_profile={"type": "soft", "expiration-seconds": 3600})
    assert lake.client.delete(lake.table("restorable")).status == 204
    staged = lake.create_table("staged", stage_create=True).json()["metadata"]["location"]
    (Path(staged.removeprefix("file://")) / "metadata").mkdir(parents=True, exist_ok=True)
    lost = json.loads(lose().read_text()) | {"table-uuid": staged.rpartition("/")[2], "location": staged}
    file = Path(staged.removeprefix("file://")) / "metadata" / f"00000-{new_id()}.metadata.json"
    file.write_text(json.dumps(lost))
    files = set(place.glob("*/metadata/*.json"))
    monkeypatch.setattr(lost_creations, "_UNDER_WAY", timedelta(days=-1))
    assert len(found(remove=True, older_than=timedelta(days=-1))) == 1
    assert len(files) == 6
    assert len(files - set(place.glob("*/metadata/*.json"))) == 1
    assert file.exists()


def test_neither_another_warehouse_nor_what_lies_in_no_namespace_is_looked_into(
    lake: Lake, place: Path, lose: Lose, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, beside = lose(within=place.parent), lose(within=place.parent / str(new_id()))
    asked: list[str] = []
    folders = LocalStorage.folders

    def noting(self: LocalStorage, location: str) -> object:
        asked.append(location)
        return folders(self, location)

    monkeypatch.setattr(LocalStorage, "folders", noting)
    assert found(remove=True) == []
    assert outside.exists()
    assert beside.exists()
    assert asked == [f"file://{place}"]
    Namespace.objects.update(properties={"location": Warehouse.objects.get().location})
    assert found(remove=True) == []
    assert len(asked) == 1


def test_what_is_registered_while_it_is_looked_at_is_kept(
    lake: Lake, lose: Lose, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lose()
    lost = lost_creations._lost

    def registering(*arguments: object, **named: object) -> LostCreation | None:
        answer = lost(*arguments, **named)  # type: ignore[arg-type]
        body = {"name": "rescued", "metadata-location": f"file://{file}"}
        assert lake.client.post(lake.namespace("sales", "register"), body).status == 200
        return answer

    monkeypatch.setattr(lost_creations, "_lost", registering)
    monkeypatch.setattr(lost_creations, "_is_occupied", _no_on_first_call(lost_creations._is_occupied))
    (only,) = orphan_files.find(older_than=timedelta(0), remove=True)
    assert isinstance(only, LostCreation)
    assert not only.is_removed
    assert file.exists()
    assert lake.load("rescued")


def _no_on_first_call(ask: Callable[..., bool]) -> Callable[..., bool]:
    answers = [False]
    return lambda *about: answers.pop() if answers else ask(*about)


def test_a_namespace_whose_folder_is_missing_is_no_error(lake: Lake, place: Path) -> None:
    if place.exists():
        shutil.rmtree(place)
    assert not os.path.lexists(place)
    assert found() == []
