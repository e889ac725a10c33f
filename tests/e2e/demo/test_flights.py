"""The demo's job through a running server: every table must add up to the CSV files, in Spark and in PyIceberg."""

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.types import LongType

from demo.connection import Connection
from tests.e2e.demo import flights_source
from tests.e2e.demo.flights_source import estimated_delay, is_diverted, total
from tests.e2e.demo.runs import DemoRun, Ready, run_demo

TABLES = ("airlines", "airports", "planes", "weather", "flights")
Totals = dict[str, float]


@pytest.fixture(scope="module")
def source() -> dict[str, list[flights_source.Row]]:
    return {name: list(flights_source.rows(name)) for name in TABLES}


@pytest.fixture(scope="module")
def expected(source: dict[str, list[flights_source.Row]]) -> dict[str, Totals]:
    """Rows and sums of each table as the job must leave it, by the source files alone."""
    flights, planes = source["flights"], source["planes"]
    flown = [row["tailnum"] for row in flights if row["tailnum"] != "NA"]
    unknown = set(flown) - {row["tailnum"] for row in planes}
    totals: dict[str, Totals] = {name: {"rows": len(source[name])} for name in TABLES}
    totals["airports"] |= {"alt": total(source["airports"], "alt")}
    totals["weather"] |= {column: total(source["weather"], column) for column in ("temp", "precip")}
    totals["planes"] = {
        "rows": len(planes) + len(unknown),
        "seats": total(planes, "seats"),
        "flights_2013": len(flown),
    }
    totals["flights"] |= {column: total(flights, column) for column in ("dep_delay", "air_time", "distance")}
    late = sum(estimated_delay(row) for row in flights if is_diverted(row))
    totals["flights"] |= {"arr_delay": total(flights, "arr_delay") + late}
    return totals


@pytest.fixture(scope="module")
def catalog(dev_server: Ready) -> Catalog:
    return load_catalog("lake", **Connection.parse(dev_server).catalog.properties())


def flat(totals: dict[str, Any]) -> Totals:
    return {"rows": totals["rows"], **totals["sums"]}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_adds_up_to_its_source_in_spark(table: str, first_run: DemoRun, expected: dict[str, Totals]) -> None:
    assert flat(first_run.result["tables"][table]) == pytest.approx(expected[table])


@pytest.mark.parametrize("table", TABLES)
def test_a_table_adds_up_to_its_source_in_pyiceberg(
    table: str, first_run: DemoRun, expected: dict[str, Totals], catalog: Catalog
) -> None:
    data = catalog.load_table(f"{first_run.result['namespace']}.{table}").scan().to_arrow()
    sums = {column: pc.sum(data[column]).as_py() for column in expected[table] if column != "rows"}
    assert {"rows": data.num_rows, **sums} == pytest.approx(expected[table])


def test_the_flights_of_a_tag_are_those_before_the_merge(
    first_run: DemoRun, source: dict[str, list[flights_source.Row]]
) -> None:
    flights = source["flights"]
    as_loaded = first_run.result["versions"]["as-loaded"]
    assert as_loaded["rows"] == len(flights)
    assert as_loaded["sums"]["arr_delay"] == total(flights, "arr_delay")


def test_the_flights_of_the_first_snapshot_end_in_november(
    first_run: DemoRun, source: dict[str, list[flights_source.Row]]
) -> None:
    until_november = [row for row in source["flights"] if row["month"] != "12"]
    first = first_run.result["versions"]["first"]
    assert (first["rows"], first["sums"]["distance"]) == (
        len(until_november),
        total(until_november, "distance"),
    )


def test_history_and_tag_are_what_the_job_says(first_run: DemoRun, catalog: Catalog) -> None:
    table = catalog.load_table("nyc.flights")
    loaded, appended, merged = first_run.result["snapshots"]
    assert [entry.snapshot_id for entry in table.history()] == [loaded, appended, merged]
    assert table.metadata.refs["as-loaded"].snapshot_id == appended


def test_schemas_have_evolved(first_run: DemoRun, catalog: Catalog) -> None:
    assert first_run.code == 0
    flights, airports = (catalog.load_table(f"nyc.{name}").schema() for name in ("flights", "airports"))
    assert isinstance(flights.find_type("distance"), LongType)
    assert "diverted" in flights.column_names
    assert "time_zone" in airports.column_names
    assert "tzone" not in airports.column_names


def test_the_view_has_a_row_for_each_airline(first_run: DemoRun, expected: dict[str, Totals]) -> None:
    assert first_run.result["view_rows"] == expected["airlines"]["rows"]
    assert "ExpressJet Airlines Inc." in first_run.said


def test_only_the_story_is_told(first_run: DemoRun) -> None:
    assert first_run.errors == ""
    assert "WARN" not in first_run.said
    assert "The history of flights" in first_run.said


def test_the_table_that_was_dropped_is_restored(first_run: DemoRun, expected: dict[str, Totals]) -> None:
    assert "DROP TABLE weather" in first_run.said
    assert f"{expected['weather']['rows']:,} rows, as before" in first_run.said


def test_a_second_run_replaces_the_tables(first_run: DemoRun, dev_server: Ready, tmp_path: Path) -> None:
    second = run_demo(dev_server, tmp_path)
    assert second.code == 0, second.said + second.errors
    assert second.result["tables"] == first_run.result["tables"]
    assert set(second.result["snapshots"]).isdisjoint(first_run.result["snapshots"])
    assert "there from an earlier run" in second.said
