import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from lakewarden.doctor import local_storage
from lakewarden.doctor.findings import State


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_a_writable_directory_is_ok_and_stays_empty(tmp_path: Path) -> None:
    assert local_storage.examine_root(tmp_path).state is not State.FAIL
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("free", "state"), [(10 * 1024**3, State.OK), (512 * 1024**2, State.WARN), (1024**2, State.FAIL)]
)
def test_little_room_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: State) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(free, 0, free))
    assert local_storage.examine_root(tmp_path).state is state


def test_a_missing_directory_says_how_to_make_it(tmp_path: Path) -> None:
    finding = local_storage.examine_root(tmp_path / "gone")
    assert finding.state is State.FAIL
    assert f"mkdir -p {tmp_path}/gone" in (finding.fix or "")


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_options: object) -> object:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    finding = local_storage.examine_root(tmp_path)
    assert (finding.state, finding.sentence) == (State.FAIL, "cannot be written: Permission denied")
