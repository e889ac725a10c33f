import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakewarden.storage import local
from lakewarden.storage.interface import FileMissing, FileTaken, OutOfReach, StorageError, StorageFull
from lakewarden.storage.local import LocalStorage


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


@pytest.fixture
def storage(base: Path) -> LocalStorage:
    return LocalStorage(str(base))


def at(base: Path, name: str) -> str:
    return f"file://{base}/{name}"


def test_a_file_is_written_read_and_deleted(storage: LocalStorage, base: Path) -> None:
    storage.write_new(at(base, "a/b/c d%41"), b"content")
    assert (base / "a/b/c d%41").read_bytes() == b"content"
    assert storage.read(at(base, "a/b/c d%41"), limit=7) == b"content"
    storage.delete(at(base, "a/b/c d%41"))
    storage.delete(at(base, "a/b/c d%41"))
    with pytest.raises(FileMissing):
        storage.read(at(base, "a/b/c d%41"), limit=7)
    assert list((base / "a/b").iterdir()) == []


def test_a_file_that_is_there_is_never_written_over(storage: LocalStorage, base: Path) -> None:
    storage.write_new(at(base, "f"), b"first")
    with pytest.raises(FileTaken):
        storage.write_new(at(base, "f"), b"second")
    assert [path.read_bytes() for path in base.iterdir()] == [b"first"]


def test_a_file_larger_than_the_limit_is_refused(storage: LocalStorage, base: Path) -> None:
    storage.write_new(at(base, "f"), b"12345678")
    with pytest.raises(StorageError, match="larger than 7 bytes"):
        storage.read(at(base, "f"), limit=7)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_write_that_fails_leaves_nothing(
    storage: LocalStorage, base: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError) as caught:
        storage.write_new(at(base, "f"), b"content")
    assert isinstance(caught.value, StorageFull) is (number != errno.EIO)
    assert list(base.iterdir()) == []


def test_every_new_folder_is_made_durable(storage: LocalStorage, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.add(os.fstat(descriptor).st_ino))
    storage.write_new(at(base, "a/b/f"), b"")
    assert synced == {each.stat().st_ino for each in (base, base / "a", base / "a/b", base / "a/b/f")}


@pytest.mark.parametrize("times", [1, local.TRIES])
def test_a_folder_that_a_purge_takes_away_is_made_again(
    storage: LocalStorage, base: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    real, left = local._Making.step, iter(range(times))

    def make(making: local._Making, folder: int, name: str) -> int:
        made = real(making, folder, name)
        if next(left, None) is not None:
            (base / name).rmdir()
        return made

    monkeypatch.setattr(local._Making, "step", make)
    if times == local.TRIES:
        with pytest.raises(FileMissing):
            storage.write_new(at(base, "a/f"), b"content")
    else:
        storage.write_new(at(base, "a/f"), b"content")
        assert storage.read(at(base, "a/f"), limit=7) == b"content"


USES: list[Callable[[LocalStorage, str], Any]] = [
    lambda storage, location: storage.write_new(location, b""),
    lambda storage, location: storage.read(location, limit=9),
    lambda storage, location: storage.delete(location),
    lambda storage, location: storage.is_empty(location),
    lambda storage, location: list(storage.survey(location, within=location.rpartition("/")[0])),
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("place", ["{base}/../outside", "{base}2/f", "/etc/passwd", "{base}/link/f", "{base}/link"])
def test_nothing_outside_the_base_is_reached(
    storage: LocalStorage, base: Path, tmp_path: Path, place: str, use: Callable[[LocalStorage, str], Any]
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_bytes(b"precious")
    (base / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(StorageError):
        use(storage, "file://" + place.replace("{base}", str(base)))
    assert (tmp_path / "outside" / "f").read_bytes() == b"precious"


def test_a_link_out_of_the_base_is_out_of_reach(storage: LocalStorage, base: Path) -> None:
    (base / "link").symlink_to("/")
    with pytest.raises(OutOfReach):
        storage.read(at(base, "link/etc/passwd"), limit=9)


@pytest.mark.parametrize("kind", ["nothing", "folder", "folders"])
def test_a_place_without_files_is_empty(storage: LocalStorage, base: Path, kind: str) -> None:
    if kind != "nothing":
        (base / "t" / ("a/b" if kind == "folders" else "")).mkdir(parents=True)
    assert storage.is_empty(at(base, "t"))


@pytest.mark.parametrize("kind", ["file", "file below", "link", "link below", "broken link"])
def test_whatever_lies_there_makes_it_not_empty(storage: LocalStorage, base: Path, kind: str) -> None:
    (base / "other").mkdir()
    if "below" in kind:
        (base / "t" / "a").mkdir(parents=True)
    target = base / "t" / "a" / "f" if "below" in kind else base / "t"
    if "link" in kind:
        target.symlink_to(base / ("gone" if "broken" in kind else "other"))
    else:
        target.write_bytes(b"")
    assert not storage.is_empty(at(base, "t"))


def test_what_cannot_be_looked_into_is_not_called_empty(
    storage: LocalStorage, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    (base / "t").mkdir()
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(StorageError, match="Permission denied"):
        storage.is_empty(at(base, "t"))
    with pytest.raises(StorageError, match="Permission denied"):
        list(storage.survey(at(base, "t"), within=at(base, "")))


def test_a_missing_file_is_known_without_opening_it(storage: LocalStorage, base: Path) -> None:
    storage.write_new(at(base, "f"), b"")
    assert not storage.is_known_missing(at(base, "f"))
    assert storage.is_known_missing(at(base, "g"))
    assert storage.is_known_missing(at(base, "no/folder"))
    assert not storage.is_known_missing(at(base, "f/g"))
