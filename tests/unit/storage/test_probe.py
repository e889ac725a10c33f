from collections.abc import Iterator
from pathlib import Path

import pytest

from lakewarden.storage.interface import StorageError
from lakewarden.storage.probe import EngineProbe, Probe
from lakewarden.storage.profiles import parse_profile
from tests.contracts.storage.bucket import LEAKS, OBJECTS, BucketProfile, BucketStorage, forget


def probe(directory: Path) -> Probe:
    profile = parse_profile({"type": "local", "base-path": str(directory)})
    return Probe(profile.open(None), profile.location)


def test_a_probe_leaves_no_file_and_on_demand_no_folder(tmp_path: Path) -> None:
    for folders, left in ((False, ["a"]), (True, [])):
        (tmp_path / str(folders)).mkdir()
        tried = probe(tmp_path / str(folders) / "a" / "b")
        tried.write_and_read()
        tried.clean_up(folders=folders)
        assert [path.name for path in (tmp_path / str(folders)).iterdir()] == left
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_folders_that_were_there_or_hold_something_stay(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    first = probe(tmp_path / "there")
    first.write_and_read()
    first.clean_up(folders=True)
    assert (tmp_path / "there").is_dir()
    second = probe(tmp_path / "new" / "inner")
    second.write_and_read()
    (tmp_path / "new" / "somebody's").write_text("x")
    second.clean_up(folders=True)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["somebody's"]


def test_where_nothing_could_be_written_there_is_nothing_to_clean_up(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    tried = probe(tmp_path / "file")
    with pytest.raises(StorageError):
        tried.write_and_read()
    tried.clean_up(folders=True)
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.fixture
def engine() -> Iterator[EngineProbe]:
    profile = BucketProfile.model_validate({"type": "bucket", "bucket": "one", "issues-keys": True})
    store = profile.open(None)
    first = Probe(store, profile.location)
    first.write_and_read()
    yield EngineProbe(profile, store, first.file)
    forget()


def test_what_is_issued_for_one_table_reaches_no_other_place(engine: EngineProbe) -> None:
    before = set(OBJECTS)
    assert engine.issue()
    engine.write_and_read()
    engine.try_to_leave()
    engine.clean_up()
    assert set(OBJECTS) == before


@pytest.mark.parametrize(
    ("leak", "words"),
    [
        ("write", "can also write a file beside their table, write a file although they are for reading: it does not"),
        ("read", "can also read a file beside their table: it does not enforce"),
        ("list", "can also list the folder around their table: it does not enforce"),
        ("delete", "can also delete a file beside their table: it does not enforce"),
    ],
)
def test_a_store_that_enforces_nothing_is_found_out(engine: EngineProbe, leak: str, words: str) -> None:
    before = set(OBJECTS)
    LEAKS.add(leak)
    assert engine.issue()
    engine.write_and_read()
    with pytest.raises(StorageError, match=words):
        engine.try_to_leave()
    engine.clean_up()
    assert set(OBJECTS) <= before


def test_another_failure_is_not_taken_for_a_refusal(engine: EngineProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, location: str, *, since: object = None) -> bool:
        raise StorageError("The store answered 500")

    assert engine.issue()
    monkeypatch.setattr(BucketStorage, "is_empty", fails)
    with pytest.raises(StorageError, match=r"can list .* could not be tried: The store answered 500"):
        engine.try_to_leave()


def test_a_storage_that_issues_nothing_says_so() -> None:
    profile = BucketProfile.model_validate({"type": "bucket", "bucket": "one"})
    store = profile.open(None)
    assert not EngineProbe(profile, store, f"{profile.location}/file").issue()
