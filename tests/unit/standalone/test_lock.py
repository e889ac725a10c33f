import errno
import os
from pathlib import Path

import pytest

from standalone.errors import EmbeddedError
from standalone.lock import DirectoryLock


def test_second_holder_is_refused_with_pid_directory_and_remedy(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path), pytest.raises(EmbeddedError) as refusal:
        DirectoryLock(tmp_path).acquire()
    assert refusal.value.message == (
        f"Another Lakewarden (pid {os.getpid()}) is using {tmp_path}: stop it with `kill {os.getpid()}`, "
        "or give this one its own directory with --data-dir."
    )


def test_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    for _ in range(2):
        with DirectoryLock(tmp_path):
            pass


def test_lock_file_is_not_inherited(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path) as lock:
        assert lock._descriptor is not None
        assert not os.get_inheritable(lock._descriptor)


def test_missing_directory_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match="none cannot be used: No such file or directory"):
        DirectoryLock(tmp_path / "none").acquire()


def test_file_system_without_locks_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(EmbeddedError, match=r"cannot be locked: No locks available\. Give one on a local disk"):
        DirectoryLock(tmp_path).acquire()
