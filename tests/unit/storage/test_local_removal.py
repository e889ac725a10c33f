"""What `LocalStorage` finds and removes below a location: all of it, nothing else, through no link."""

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lakewarden.storage import local_removal
from lakewarden.storage.interface import OutOfReach, StorageError
from lakewarden.storage.local import LocalStorage
from lakewarden.storage.removal import Found, Tally


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "lake"
    path.mkdir()
    return path


@pytest.fixture
def storage(base: Path) -> LocalStorage:
    return LocalStorage(str(base))


def uri(path: Path) -> str:
    return f"file://{path}"


def fill(folder: Path, *names: str, content: bytes = b"rows") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def clear(storage: LocalStorage, place: Path, within: Path, *, at_once: int = 1) -> list[Found]:
    """As a purge does it: until nothing more can be removed, twice in a row."""
    gone: list[Found] = []
    idle = 0
    while idle < 2:
        found = list(storage.survey(uri(place), within=uri(within)))
        removed = storage.remove(found, within=uri(within), at_once=at_once)
        assert removed.error is None
        gone += removed.gone
        idle = 0 if removed.gone else idle + 1
    return gone


@pytest.mark.parametrize("at_once", [1, 4])
def test_all_below_is_found_once_and_removed_links_as_links(storage: LocalStorage, base: Path, at_once: int) -> None:
    fill(base, "ns/t/a/1", "ns/t/a/b/2", "ns/t/3", "ns/neighbour/4", "ns/t2/5", "ns/t.x/6")
    (base / "ns/t/empty/deep").mkdir(parents=True)
    (base / "ns/t/link").symlink_to(base / "ns/neighbour")
    (base / "ns/t/file link").symlink_to(base / "ns/neighbour/4")
    (base / "ns/t/broken").symlink_to("nowhere")
    gone = clear(storage, base / "ns/t", base / "ns", at_once=at_once)
    assert sorted(each.path for each in gone if not each.is_folder) == sorted(
        f"t/{name}" for name in ("a/1", "a/b/2", "3", "link", "file link", "broken")
    )
    assert sorted(each.path for each in gone if each.is_folder) == ["t", "t/a", "t/a/b", "t/empty", "t/empty/deep"]
    assert sorted(str(path.relative_to(base)) for path in base.rglob("*") if path.is_file()) == [
        "ns/neighbour/4",
        "ns/t.x/6",
        "ns/t2/5",
    ]


def test_sizes_are_those_of_the_files(storage: LocalStorage, base: Path) -> None:
    fill(base / "ns/t", "a", "b", content=b"12345")
    assert Tally.of(list(storage.survey(uri(base / "ns/t"), within=uri(base / "ns")))) == Tally(2, 10, 1)


def test_a_name_that_is_no_unicode_is_removed_too(storage: LocalStorage, base: Path) -> None:
    fill(base, "ns/t/a")
    (base / "ns/t" / os.fsdecode(b"\xff\n\x01")).write_bytes(b"")
    clear(storage, base / "ns/t", base / "ns")
    assert list((base / "ns").iterdir()) == []


def test_empty_folders_around_go_up_to_the_one_that_stays(storage: LocalStorage, base: Path) -> None:
    fill(base, "ns/x/y/t/data/1")
    clear(storage, base / "ns/x/y/t", base / "ns")
    assert list(base.rglob("*")) == [base / "ns"]


def test_a_folder_around_that_holds_something_stays(storage: LocalStorage, base: Path) -> None:
    fill(base, "ns/x/y/t/1", "ns/x/other/2")
    clear(storage, base / "ns/x/y/t", base / "ns")
    assert sorted(base.rglob("*")) == [base / each for each in ("ns", "ns/x", "ns/x/other", "ns/x/other/2")]


def test_a_place_where_nothing_is_has_nothing_to_remove(storage: LocalStorage, base: Path) -> None:
    assert list(storage.survey(uri(base / "ns/t"), within=uri(base / "ns"))) == []


@pytest.mark.parametrize(
    ("place", "within"), [("", ""), ("t", "t"), ("t", "t/inner"), ("t", "other"), ("t/../..", ""), ("../lake2/t", "")]
)
def test_the_whole_and_what_lies_elsewhere_is_never_removed(
    storage: LocalStorage, base: Path, place: str, within: str
) -> None:
    fill(base, "t/1", "other/2")
    with pytest.raises(StorageError):
        list(storage.survey(f"{uri(base)}/{place}".rstrip("/"), within=f"{uri(base)}/{within}".rstrip("/")))
    assert (base / "t/1").exists()


@pytest.mark.parametrize("where", ["ns", "ns/t"])
def test_a_link_on_the_way_is_not_followed(storage: LocalStorage, base: Path, where: str) -> None:
    fill(base, "real/t/1")
    (base / where).parent.mkdir(exist_ok=True)
    (base / where).symlink_to(base / ("real" if where == "ns" else "real/t"))
    with pytest.raises(OutOfReach, match="link"):
        list(storage.survey(uri(base / "ns/t"), within=uri(base / "ns")))
    found = [Found("t/1", 4, "x")]
    assert storage.remove(found, within=uri(base / "ns"), at_once=1).gone == []
    assert (base / "real/t/1").exists()


def test_a_file_at_the_place_itself_is_not_below_it(storage: LocalStorage, base: Path) -> None:
    fill(base, "ns/t")
    with pytest.raises(OutOfReach, match="not a folder"):
        list(storage.survey(uri(base / "ns/t"), within=uri(base / "ns")))


def test_what_lies_there_by_now_is_another_file_and_stays(storage: LocalStorage, base: Path) -> None:
    fill(base, "ns/t/kept", "ns/t/changed", "ns/t/gone", "ns/t/same")
    found = [each for each in storage.survey(uri(base / "ns/t"), within=uri(base / "ns")) if not each.is_folder]
    (base / "new").write_bytes(b"rows")
    (base / "new").rename(base / "ns/t/kept")
    fill(base, "ns/t/changed", content=b"more rows")
    (base / "ns/t/gone").unlink()
    removed = storage.remove(found, within=uri(base / "ns"), at_once=1)
    assert [each.path for each in removed.gone] == ["t/same"]
    assert [each.path for each in removed.missing] == ["t/gone"]
    assert sorted(path.name for path in (base / "ns/t").iterdir()) == ["changed", "kept"]


def test_a_folder_that_was_filled_again_stays(storage: LocalStorage, base: Path) -> None:
    fill(base, "ns/t/a/1")
    found = list(storage.survey(uri(base / "ns/t"), within=uri(base / "ns")))
    fill(base, "ns/t/a/late")
    removed = storage.remove(found, within=uri(base / "ns"), at_once=1)
    assert ([each.path for each in removed.gone], removed.missing, removed.error) == (["t/a/1"], [], None)


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_a_failure_tells_what_was_removed_before_it(
    storage: LocalStorage, base: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    fill(base, *(f"ns/t/{name}" for name in range(5)))
    found = list(storage.survey(uri(base / "ns/t"), within=uri(base / "ns")))
    real, calls = os.unlink, iter(range(100))

    def fail_at_third(name: str, *, dir_fd: int) -> None:
        if next(calls) == 2:
            raise OSError(number, os.strerror(number))
        real(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", fail_at_third)
    removed = storage.remove(found, within=uri(base / "ns"), at_once=1)
    assert (len(removed.gone), len(list((base / "ns/t").iterdir()))) == (2, 3)
    assert os.strerror(number) in str(removed.error)


def test_what_cannot_be_looked_into_is_an_error(
    storage: LocalStorage, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    fill(base, "ns/t/1")
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(StorageError, match="Permission denied"):
        list(storage.survey(uri(base / "ns/t"), within=uri(base / "ns")))


def test_a_store_that_is_not_there_is_an_error_and_not_empty(storage: LocalStorage, base: Path) -> None:
    with pytest.raises(StorageError, match="is empty: is it mounted"):
        storage.ensure_there()
    fill(base, "anything")
    storage.ensure_there()
    base.rename(base.with_name("unmounted"))
    with pytest.raises(StorageError, match="does not exist"):
        storage.ensure_there()
    with pytest.raises(StorageError, match="does not exist"):
        list(storage.survey(uri(base / "ns/t"), within=uri(base / "ns")))
    removed = storage.remove([Found("t/1", 1, "x")], within=uri(base / "ns"), at_once=1)
    assert (removed.missing, "does not exist" in str(removed.error)) == ([], True)


def test_a_tree_that_is_too_deep_is_refused(storage: LocalStorage, base: Path) -> None:
    (base / "ns/t" / "/".join("d" * (local_removal.MAX_DEPTH + 1))).mkdir(parents=True)
    with pytest.raises(StorageError, match="more than 100 folders deep"):
        list(storage.survey(uri(base / "ns/t"), within=uri(base / "ns")))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_as_many_files_are_open_as_the_tree_is_deep(storage: LocalStorage, base: Path) -> None:
    fill(base, *(f"ns/t/{folder}/{name}" for folder in range(50) for name in range(3)))
    before, most = open_files(), 0
    for _ in storage.survey(uri(base / "ns/t"), within=uri(base / "ns")):
        most = max(most, open_files())
    assert most - before <= 6
    assert open_files() == before


def test_a_folder_that_is_swapped_for_a_link_all_the_time_leads_nowhere(
    storage: LocalStorage, base: Path, tmp_path: Path
) -> None:
    fill(tmp_path, *(f"precious/{name}" for name in range(20)))
    fill(base, "ns/t/0")
    folder, aside, ended = base / "ns/t", base / "aside", threading.Event()
    handle, removed, links = os.open(folder, os.O_RDONLY), 0, 0

    def swap() -> None:
        while not ended.wait(0.0005):
            folder.rename(aside)
            folder.symlink_to(tmp_path / "precious")
            time.sleep(0.0005)
            folder.unlink()
            aside.rename(folder)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        deadline = time.monotonic() + 120
        while removed <= 20 or links <= 20:
            assert time.monotonic() < deadline, (removed, links)
            for name in range(20):
                os.close(os.open(f"{name}", os.O_CREAT, dir_fd=handle))
            try:
                found = list(storage.survey(uri(folder), within=uri(base / "ns")))
            except OutOfReach:
                links += 1
                continue
            files = [each for each in found if not each.is_folder]
            removed += len(storage.remove(files, within=uri(base / "ns"), at_once=2).gone)
    finally:
        ended.set()
        thread.join()
        os.close(handle)
    assert len(list((tmp_path / "precious").iterdir())) == 20


def swapping_at(monkeypatch: pytest.MonkeyPatch, moment: int, folder: Path, aside: Path, target: Path) -> None:
    """Replace `folder` by a link right before the `moment`-th call that opens, looks at or removes something."""
    calls = iter(range(1000))

    def at_moment(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **more: object) -> object:
            if next(calls) == moment and folder.is_dir() and not folder.is_symlink():
                folder.rename(aside)
                folder.symlink_to(target)
            return real(*arguments, **more)

        return call

    for name in ("open", "scandir", "stat", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, at_moment(getattr(os, name)))


@pytest.mark.parametrize("moment", range(40))
def test_a_folder_that_is_swapped_between_check_and_use_leads_nowhere(
    storage: LocalStorage, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    fill(tmp_path, "precious/1", "precious/2")
    fill(base, "ns/t/data/1", "ns/t/data/2")
    with monkeypatch.context() as patched:
        swapping_at(patched, moment, base / "ns/t/data", base / "aside", tmp_path / "precious")
        clear(storage, base / "ns/t", base / "ns")
    assert sorted(path.name for path in (tmp_path / "precious").iterdir()) == ["1", "2"]
    assert not (base / "ns/t").exists()
