import errno
import json
import os
import stat
from pathlib import Path

import pytest

from standalone.issuer.refusal import StartRefused
from standalone.issuer.state import StateDir


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_state_is_private_even_where_the_directory_was_not(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "issuer"
    directory.mkdir(parents=True, mode=0o755)
    StateDir(directory).write("x.json", {"a": 1})

    assert (mode_of(directory), mode_of(directory / "x.json")) == (0o700, 0o600)
    assert StateDir(directory).read("x.json") == {"a": 1}
    assert StateDir(directory).read("y.json") is None


def test_write_on_a_full_disk_keeps_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = StateDir(tmp_path)
    state.write("x.json", {"a": 1})

    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(StartRefused, match=r"cannot be used \(No space left on device\)"):
        state.write("x.json", {"a": 2})

    assert state.read("x.json") == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_unreadable_file_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "x.json").mkdir()

    with pytest.raises(StartRefused, match=r"cannot be used \(Is a directory\)"):
        StateDir(tmp_path).read("x.json")


@pytest.mark.parametrize("content", ["{", "[]", json.dumps("x"), ""])
def test_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.json").write_text(content)

    with pytest.raises(StartRefused, match=r"x\.json is damaged\. Delete it"):
        StateDir(tmp_path).read("x.json")


def test_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StartRefused, match=r"state directory .*file/issuer cannot be used \(Not a directory\)"):
        StateDir(tmp_path / "file" / "issuer")
