from pathlib import Path

import pytest

from lakewarden.storage.interface import StorageError
from lakewarden.storage.probe import Probe
from lakewarden.storage.profiles import parse_profile


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
