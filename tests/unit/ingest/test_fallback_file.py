"""The fallback file: what `append` returned for is read again, in order, whatever the end of the process was like."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from ingest.services.fallback.file import FallbackFailed, FallbackFile, framed

ALL = 1 << 30


@pytest.fixture
def file(tmp_path: Path) -> Iterator[FallbackFile]:
    made = FallbackFile.create(tmp_path / "folder")
    yield made
    made.close()


def reopened(file: FallbackFile) -> FallbackFile:
    """As the next process finds it after a kill: the lock is gone with its holder."""
    copied = file.path.with_name(f"{uuid4()}.fallback")
    copied.write_bytes(file.path.read_bytes())
    found = FallbackFile.adopt(copied)
    assert found is not None
    return found


def test_records_are_read_in_order_after_a_kill(file: FallbackFile) -> None:
    file.append([framed(b"one"), framed(b"")])
    file.append([framed(b"three\n\0")])
    assert list(reopened(file).all()) == [b"one", b"", b"three\n\0"]


def test_files_are_replayed_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    made = [FallbackFile.create(tmp_path) for _ in range(20)]
    assert sorted(each.path for each in made) == [each.path for each in made]
    for each in made:
        each.close()


def test_a_file_in_use_is_left_alone(file: FallbackFile) -> None:
    assert FallbackFile.adopt(file.path) is None
    file.path.unlink()
    assert FallbackFile.adopt(file.path) is None


@pytest.mark.parametrize("kept", range(1, 11))
def test_a_record_that_was_cut_off_was_never_acknowledged(file: FallbackFile, kept: int) -> None:
    file.append([framed(b"first")])
    end = file.end
    file.append([framed(b"se")])
    os.truncate(file.path, end + kept if kept < 10 else end)
    found = reopened(file)
    assert list(found.all()) == [b"first"]
    found.append([framed(b"next")])
    assert list(reopened(found).all()) == [b"first", b"next"]


def test_a_record_that_is_damaged_is_not_read(file: FallbackFile) -> None:
    file.append([framed(b"first"), framed(b"second")])
    content = bytearray(file.path.read_bytes())
    content[-1] ^= 1
    file.path.write_bytes(content)
    assert list(reopened(file).all()) == [b"first"]


@pytest.mark.parametrize("left", [0, 5, 16])
def test_a_file_that_was_being_made_or_emptied_is_empty(file: FallbackFile, left: int) -> None:
    file.append([framed(b"first")])
    file.mark_replayed(file.read(most=ALL)[1])
    file.append([framed(b"second")])
    os.truncate(file.path, left)
    assert list(reopened(file).all()) == []


def test_what_was_replayed_is_not_read_again(file: FallbackFile) -> None:
    file.append([framed(b"x" * 100) for _ in range(3)])
    records, offset = file.read(most=150)
    assert len(records) == 2
    file.mark_replayed(offset)
    assert list(reopened(file).all()) == [b"x" * 100]
    rest, end = file.read(most=150)
    file.append([framed(b"later")])
    file.mark_replayed(end)
    assert (len(rest), list(file.all()), file.waiting) == (1, [b"later"], len(framed(b"later")))
    file.mark_replayed(file.end)
    assert file.path.stat().st_size < 20


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_disk_that_fails_keeps_what_was_acknowledged_and_works_again_later(
    file: FallbackFile, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite

    def half(descriptor: int, content: bytes, offset: int) -> int:
        if len(content) < 10:
            raise OSError(number, os.strerror(number))
        return write(descriptor, content[:10], offset)

    file.append([framed(b"first")])
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", half)
        with pytest.raises(FallbackFailed, match=os.strerror(number)):
            file.append([framed(b"second, which does not fit")])
    file.append([framed(b"third")])
    assert list(reopened(file).all()) == [b"first", b"third"]


def test_after_a_write_that_cannot_be_undone_nothing_is_kept_until_all_is_replayed(
    file: FallbackFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    file.append([framed(b"first")])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(FallbackFailed):
            file.append([framed(b"second")])
    with pytest.raises(FallbackFailed, match="an earlier write has failed"):
        file.append([framed(b"third")])
    assert list(file.all()) == [b"first"]
    file.mark_replayed(file.end)
    file.append([framed(b"fourth")])
    assert list(reopened(file).all()) == [b"fourth"]


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FallbackFailed, match="Not a directory"):
        FallbackFile.create(tmp_path / "file" / "folder")
