"""Runs the whole job and explains its steps; `lakewarden demo` calls `run` in a child process."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pyspark.sql import Row

from demo import next_steps, second_engine
from demo.connection import CATALOG_NAME, Connection
from demo.job import NAMESPACE, SUMS, TAG, Job
from demo.report import Report
from demo.result import DemoResult, Totals
from demo.undrop import Management
from lakewarden.errors import InternalError
from pipeline.spark import preflight
from pipeline.spark.failures import in_one_sentence
from pipeline.spark.session import prepare, session

SMALL_TABLES = ("airlines", "airports", "planes", "weather")


def run(connection: Connection, report: Report) -> DemoResult:
    """Loads, changes and reads the tables; shows everything on `report`.

    Trouble that is to be expected comes as a `LakewardenError` whose message is for a person.
    """
    preflight.check(connection.catalog)
    report.heading("Real data through the catalog, by Spark")
    with _spark_job(connection, report) as job:
        first_query_s = _load(job, report)
        first = job.current_snapshot()
        _append(job, report)
        _change(job, report)
        view_rows = _show_delays(job, report)
        versions = _travel(job, report, first)
        history = _show_history(job, report)
        tables = {table: job.totals(table) for table in SUMS if table != "flights"}
        if connection.management_uri is not None:
            _drop_and_restore(connection, job, report, tables["weather"])
    tables["flights"] = versions["now"]
    second = _compare(connection, report, tables["flights"])
    next_steps.say(connection, report, table=f"{NAMESPACE}.flights")
    return DemoResult(
        namespace=NAMESPACE,
        tables=tables,
        versions=versions,
        snapshots=[row.snapshot_id for row in history],
        view_rows=view_rows,
        pyiceberg=second,
        first_query_s=first_query_s,
        total_s=_since(report),
    )


def _since(report: Report) -> float:
    return round(time.monotonic() - report.began, 1)


@contextmanager
def _spark_job(connection: Connection, report: Report) -> Iterator[Job]:
    with report.step("Java and Iceberg's jar for Spark"):
        java, _ = prepare(progress=report.say)
    with ExitStack() as stack:
        with report.step(f"Spark on Java {java.major} ({java.source})"):
            spark = stack.enter_context(session([connection.catalog], app_name="lakewarden-demo", java=java))
        with in_one_sentence():
            yield Job(spark, CATALOG_NAME)


def _load(job: Job, report: Report) -> float:
    """Returns the seconds from the start to the answer of the first query."""
    with report.step(f"Namespace {job.namespace}"):
        was_there = job.create_namespace()
    if was_there:
        report.say("    It is there from an earlier run: its tables are replaced, their old snapshots stay readable.")
    for table in SMALL_TABLES:
        with report.step(f"Table {table}"):
            job.load(table)
    with report.step("Table flights, January to November, one partition a month"):
        job.load_flights()
    with report.step("First query: count the flights"):
        loaded = job.totals("flights")
    report.say(f"    {loaded.rows:,} flights, {_since(report)} s after the start")
    return _since(report)


def _append(job: Job, report: Report) -> None:
    with report.step("Append December"):
        job.append_december()
    with report.step(f"Tag this snapshot {TAG}"):
        job.tag()


def _change(job: Job, report: Report) -> None:
    with report.step("Evolve schemas: add, widen and rename columns (no file is written)"):
        job.evolve()
    with report.step("MERGE the delays of diverted flights into flights"):
        diverted = job.merge_diverted()
    report.say(f"    {diverted:,} flights had arrived without a delay in the source")
    with report.step("MERGE flown flights into planes"):
        added = job.merge_planes()
    report.say(f"    {added:,} planes flew that the registry did not know: they are added")


def _show_delays(job: Job, report: Report) -> int:
    with report.step("View delays_by_airline, and read it"):
        job.create_view()
        rows = job.delays()
    report.heading("Which airline was late in 2013? (view delays_by_airline)")
    report.table(
        ("airline", "flights", "mean delay, min", "late > 15 min, %", "cancelled, %"),
        [tuple(row) for row in rows],
    )
    report.say()
    report.bars([(row.airline, row.mean_arrival_delay) for row in rows], unit="min")
    return len(rows)


def _travel(job: Job, report: Report, first: int) -> dict[str, Totals]:
    """The flights at three moments: by snapshot id, by tag, and now."""
    report.heading("The same table at three moments")
    with report.step("Read the flights by snapshot id, by tag, and now"):
        versions = {
            "first": job.totals("flights", version=first),
            TAG: job.totals("flights", version=TAG),
            "now": job.totals("flights"),
        }
    read_as = {"first": f"VERSION AS OF {first}", TAG: f"VERSION AS OF '{TAG}'", "now": "as it is now"}
    report.table(
        ("read", "flights", "sum of arrival delays, min"),
        [(read_as[name], totals.rows, int(totals.sums["arr_delay"])) for name, totals in versions.items()],
    )
    return versions


def _show_history(job: Job, report: Report) -> list[Row]:
    history = job.history()
    report.heading("The history of flights")
    report.table(
        ("snapshot", "committed (UTC)", "operation", "rows added", "rows deleted", "files", "names"),
        [(str(row.snapshot_id), *row[1:]) for row in history],
    )
    return history


def _drop_and_restore(connection: Connection, job: Job, report: Report, before: Totals) -> None:
    """Raises `InternalError` unless Spark reads the restored table as it was."""
    report.heading("A table that was dropped by mistake")
    management = Management(connection)
    with report.step("The warehouse keeps what is dropped for a day"):
        management.keep_what_is_dropped()
    with report.step("DROP TABLE weather"):
        job.drop("weather")
        is_there = job.has("weather")
    dropped = management.dropped(job.namespace, "weather")
    report.say(f"    Spark {'still finds it' if is_there else 'does not find it'}; it can be restored until")
    report.say(f"    {dropped['expiration-date']} (POST …/deleted-tabulars/undrop)")
    with report.step("Restore it, and read it again"):
        management.undrop(dropped)
        after = job.totals("weather")
    if is_there or after != before:
        raise InternalError(f"The restored table is another: {before} before, {after} after.")
    report.say(f"    {after.rows:,} rows, as before")


def _compare(connection: Connection, report: Report, spark: Totals) -> Totals:
    report.heading("A second engine reads the same table")
    with report.step("PyIceberg reads flights with the same settings"):
        second = second_engine.totals(connection.catalog, f"{NAMESPACE}.flights", list(spark.sums))
    columns = list(spark.sums)
    report.table(
        ("engine", "flights", *(f"sum of {column}" for column in columns)),
        [
            (name, totals.rows, *(int(totals.sums[column]) for column in columns))
            for name, totals in (("Spark", spark), ("PyIceberg", second))
        ],
    )
    second_engine.ensure_same(spark, second)
    return second
