"""What a worker finds when pyspark tells it, before each task, to look again."""

import importlib
import sys
import zipfile
from pathlib import Path
from zipimport import zipimporter

import pytest

from pipeline.jobs.worker_daemon import keep_directories


@pytest.fixture
def finder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> zipimporter:
    """Of an archive with the module `first`, as it is after an import."""
    path = str(tmp_path / "modules.zip")
    write(path, "first")
    made = zipimporter(path)
    monkeypatch.setitem(sys.path_importer_cache, path, made)
    return made


def write(archive: str, module: str) -> None:
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr(f"{module}.py", "VALUE = 1")


def test_the_directory_of_an_archive_is_kept(finder: zipimporter, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(finder, "invalidate_caches", lambda: read.append(finder.archive))
    importlib.invalidate_caches()
    assert read == [finder.archive]
    keep_directories()
    importlib.invalidate_caches()
    assert read == [finder.archive]
    assert finder.find_spec("first") is not None


def test_an_archive_that_was_replaced_is_read_again(finder: zipimporter) -> None:
    keep_directories()
    write(finder.archive, "another_one")
    importlib.invalidate_caches()
    assert finder.find_spec("first") is None
    assert finder.find_spec("another_one") is not None


def test_the_modules_of_an_archive_that_is_gone_are_not_found(finder: zipimporter) -> None:
    keep_directories()
    Path(finder.archive).unlink()
    importlib.invalidate_caches()
    assert finder.find_spec("first") is None
