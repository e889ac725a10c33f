"""`lakewarden orphan-files` finds files that a killed server left behind, and does not touch any others."""

import json
import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from catalog.documents import metadata_of, pack
from catalog.models import Tabular
from catalog.services import orphan_files
from catalog.services.orphan_files import Orphan
from catalog.services.pointer import NewMetadata, moved
from lakewarden.cli.commands import main
from lakewarden.ids import new_id
from lakewarden.postgres import limits
from lakewarden.storage.interface import Storage
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import local
from tests.integration.catalog.registering import register

Plant = Callable[..., Path]
TWO_DAYS = timedelta(days=2)


def search(*options: str) -> Result:
    return CliRunner().invoke(main, ["orphan-files", *options])


def named(*, ago: timedelta) -> uuid.UUID:
    """A UUIDv7 of that time."""
    at = int((datetime.now(UTC) - ago).timestamp() * 1000)
    return uuid.UUID(int=at << 80 | new_id().int & (1 << 80) - 1)


@pytest.fixture(autouse=True)
def _own_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command chooses the time limits of its process."""
    monkeypatch.setattr(limits, "_chosen", [])


@pytest.fixture
def folder(lake: Lake) -> Path:
    """The metadata folder of a table that was created ten days ago and committed to five times; its log names two."""
    lake.create_table("orders", properties={"write.metadata.previous-versions-max": "2"})
    for number in range(5):
        assert lake.commit("orders", set_properties(number=str(number))).status == 200
    Tabular.objects.update(created_at=datetime.now(UTC) - timedelta(days=10))
    return local(lake.load("orders")["metadata-location"]).parent


@pytest.fixture
def plant(folder: Path) -> Plant:
    def write(version: int, *, ago: timedelta = TWO_DAYS, suffix: str = ".metadata.json", within: str = "") -> Path:
        file = folder / within / f"{version:05d}-{named(ago=ago)}{suffix}"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"{")
        return file

    return write


def test_orphans_are_listed_and_removed_only_when_asked(lake: Lake, folder: Path, plant: Plant) -> None:
    before = set(folder.iterdir())
    orphans = {plant(4), plant(5, suffix=".gz.metadata.json"), plant(6), plant(8)}
    listed = search()
    assert listed.exit_code == 0, listed.output
    assert all(f"file://{each}  table sales.orders  1 bytes  48 hours old\n" in listed.output for each in orphans)
    assert listed.output.endswith("\n4 orphan files found\n")
    assert set(folder.iterdir()) == before | orphans
    removed = search("--remove", "--json", "--warehouse", lake.warehouse_id)
    told = [json.loads(line) for line in removed.stdout.splitlines()]
    assert {each["location"] for each in told} == {f"file://{each}" for each in orphans}
    assert {each["removed"] for each in told} == {True}
    assert set(folder.iterdir()) == before
    assert search().output == "0 orphan files found\n"
    assert lake.commit("orders", set_properties(next="x")).status == 200


def test_what_may_be_of_use_is_left_alone(folder: Path, plant: Plant) -> None:
    plant(4, ago=timedelta(hours=23))
    plant(4, ago=-TWO_DAYS)
    plant(4, ago=timedelta(days=11))
    plant(2)
    plant(4, within="inner")
    plant(4, suffix=".json")
    (folder / f"00004-{uuid.uuid4()}.metadata.json").write_bytes(b"{")
    (folder / f"4-{named(ago=TWO_DAYS)}.metadata.json").write_bytes(b"{")
    (folder / f"00004-{named(ago=TWO_DAYS)}.metadata.json").symlink_to(next(folder.glob("00005-*")))
    there = set(folder.rglob("*"))
    done = search("--remove")
    assert (done.exit_code, done.output) == (0, "0 orphan files removed\n")
    assert set(folder.rglob("*")) == there


def test_states_are_left_alone_however_old(lake: Lake, folder: Path) -> None:
    """The current file and those in the log, and those that have left it."""
    there = set(folder.iterdir())
    assert len(there) == 6
    assert not list(orphan_files.find(older_than=-TWO_DAYS, remove=True))
    assert set(folder.iterdir()) == there
    assert lake.load("orders")


def test_states_of_an_earlier_life_are_left_alone(lake: Lake, folder: Path) -> None:
    """An older state is registered again: the files of the newer ones are how it could be taken back."""
    older = sorted(folder.iterdir())[2]
    there = set(folder.iterdir())
    assert register(lake, "orders", f"file://{older}", overwrite=True).status == 200
    assert not list(orphan_files.find(older_than=-TWO_DAYS, remove=True))
    for number in range(4):
        assert lake.commit("orders", set_properties(again=str(number))).status == 200
    assert not list(orphan_files.find(older_than=-TWO_DAYS, remove=True))
    assert there <= set(folder.iterdir())


def test_a_commit_between_search_and_removal_is_kept(lake: Lake, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, orphan, remove = plant(6), plant(6), orphan_files._removed

    def committed_first(store: Storage, table: Tabular, found: Sequence[Orphan]) -> list[Orphan]:
        assert len(found) == 2
        before, document = Tabular.objects.with_document(table.id, ask=lambda _: None) or pytest.fail("it is gone")
        metadata, file = metadata_of(document, before.metadata_location), f"file://{kept}"
        after = moved(before, NewMetadata(str(before.uuid), before.location, metadata, {}, file=file))
        assert Tabular.objects.move(before, after, pack(file, metadata))
        return remove(store, table, found)

    monkeypatch.setattr(orphan_files, "_removed", committed_first)
    assert search("--remove").output.endswith("\n1 orphan files removed\n")
    assert (kept.exists(), orphan.exists()) == (True, False)
    assert lake.load("orders")["metadata-location"] == f"file://{kept}"


def test_a_folder_behind_a_link_is_named_and_not_searched(folder: Path, plant: Plant) -> None:
    orphan = plant(6)
    elsewhere = folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(elsewhere)
    done = search("--remove")
    assert done.exit_code == 1
    assert "table sales.orders (" in done.output
    assert (elsewhere / orphan.name).exists()


def test_a_storage_that_is_not_there_is_named(lake: Lake, folder: Path, base: Path) -> None:
    shutil.rmtree(base)
    assert not os.path.lexists(folder)
    done = search()
    assert done.exit_code == 1
    assert f"warehouse 'lake' ({lake.warehouse_id}) could not be searched: " in done.output
    assert done.output.endswith("0 orphan files found\n")


def test_unknown_warehouse_and_short_times_are_refused() -> None:
    assert "Warehouse does not exist" in search("--warehouse", str(new_id())).output
    assert search("--older-than", "0").exit_code == 2
