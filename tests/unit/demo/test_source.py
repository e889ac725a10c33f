import csv
import zipfile
from pathlib import Path

import pytest

from demo import source


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKEWARDEN_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", sorted({*source.SCHEMAS} - {"flights"}))
def test_a_schema_names_the_columns_of_the_file(name: str) -> None:
    with source.csv_file(name).open(newline="", encoding="utf-8") as content:
        header = next(csv.reader(content))
    assert [column.split()[0] for column in source.SCHEMAS[name].split(", ")] == header


def packed(folder: Path, content: str) -> Path:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", content)
    return folder


def test_zipped_flights_are_unpacked_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = packed(cache / "package", "year,month\n2013,1\n")
    monkeypatch.setattr(source, "data_folder", lambda: folder)
    unpacked = source.csv_file("flights")
    made = unpacked.stat().st_mtime_ns
    assert unpacked.read_text() == "year,month\n2013,1\n"
    assert source.csv_file("flights").stat().st_mtime_ns == made
    assert [path.name for path in unpacked.parent.iterdir()] == ["flights.csv"]


def test_another_version_of_the_package_is_unpacked_apart(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older, newer = packed(cache / "older", "year\n2012\n"), packed(cache / "newer", "year\n2013\n")
    monkeypatch.setattr(source, "data_folder", lambda: older)
    first = source.csv_file("flights")
    monkeypatch.setattr(source, "data_folder", lambda: newer)
    assert (first.read_text(), source.csv_file("flights").read_text()) == ("year\n2012\n", "year\n2013\n")


def test_a_half_unpacked_file_is_unpacked_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = packed(cache / "package", "year\n2013\n")
    monkeypatch.setattr(source, "data_folder", lambda: folder)
    source.csv_file("flights").write_text("year\n")
    assert source.csv_file("flights").read_text() == "year\n2013\n"
