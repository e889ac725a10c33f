from pathlib import Path

import pytest

from standalone.private_files import write_private


def test_new_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    write_private(tmp_path / "secret", "x\n")
    assert (tmp_path / "secret").read_text() == "x\n"
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_open_file_is_replaced_by_a_private_one(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("old")
    (tmp_path / "secret").chmod(0o644)
    write_private(tmp_path / "secret", "new")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_private(tmp_path / "secret", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert (tmp_path / "secret").read_text() == "old"
