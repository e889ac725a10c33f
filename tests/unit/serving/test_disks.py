"""How much room there is on the disks on which a server writes."""

import os
import threading
from pathlib import Path

import pytest

from lakewarden import config
from lakewarden.serving import disks
from lakewarden.serving.disks import DiskSpace


def measured(space: DiskSpace) -> dict[str, dict[str, float]]:
    """By metric and folder."""
    return {each.name: {one.labels["folder"]: one.value for one in each.samples} for each in space.collect()}


def test_both_figures_are_of_the_disk_as_users_have_it(tmp_path: Path) -> None:
    found = measured(DiskSpace([tmp_path]))
    told = os.statvfs(tmp_path)
    size = found["lakewarden_disk_size_bytes"][str(tmp_path)]
    free = found["lakewarden_disk_free_bytes"][str(tmp_path)]
    assert 0 <= free <= size <= told.f_blocks * told.f_frsize
    assert size > 0


def test_a_folder_that_is_not_there_has_no_figures(tmp_path: Path) -> None:
    found = measured(DiskSpace([tmp_path / "missing", tmp_path]))
    assert [list(each) for each in found.values()] == [[str(tmp_path)]] * 2


def test_a_volume_that_hangs_delays_the_others_only_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, real, asked = threading.Event(), os.statvfs, []

    def statvfs(folder: Path) -> os.statvfs_result:
        if folder.name == "hangs":
            asked.append(folder)
            release.wait(120)
        return real(tmp_path)

    monkeypatch.setattr(os, "statvfs", statvfs)
    monkeypatch.setattr(disks, "_PATIENCE_S", 0.2)
    space = DiskSpace([tmp_path / "hangs", tmp_path])
    try:
        measured(space)
        found = measured(space)
        assert str(tmp_path / "hangs") not in found["lakewarden_disk_free_bytes"]
        assert asked == [tmp_path / "hangs"]  # it is not asked by more and more threads
    finally:
        release.set()


def test_folders_are_those_that_a_server_writes_to(tmp_path: Path) -> None:
    settings = config.read(
        {
            "LAKEWARDEN__STORAGE__LOCAL_ROOTS": str(tmp_path / "warehouses"),
            "LAKEWARDEN__INGEST__FALLBACK_FOLDER": str(tmp_path / "fallback"),
        }
    )
    assert disks.folders(settings) == [tmp_path / "warehouses", tmp_path / "fallback"]
    assert disks.folders(config.read({})) == []
