"""`python -m benchmarks.pipeline.small_tables`: flushes of many small tables, one job each against shared jobs."""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

from pyspark.sql import SparkSession

from benchmarks.failures import BenchmarkError
from benchmarks.machine import processes
from benchmarks.pipeline.parts import database_url
from benchmarks.stack import DevelopmentServer
from pipeline.jobs import small_tables
from pipeline.jobs.flush import flush
from pipeline.jobs.lake import Lake
from pipeline.jobs.plans import Plans
from pipeline.jobs.policies import Mode
from pipeline.jobs.run import SETTINGS
from pipeline.jobs.table_locks import TableLocks
from pipeline.jobs.write import TableWriter
from pipeline.sources.ledger import Ledger
from pipeline.spark.catalogs import RestCatalog
from pipeline.spark.jvm import JvmOptions
from pipeline.spark.session import session
from pipeline.transforms.events import LOG_SCHEMA
from standalone.ready import ReadyInfo, read_ready_file
from standalone.signals import interrupting

ABOUT = """
Flushes a micro-batch with a few events for each of many tables: with a job of Spark for each table (alone) and with
shared jobs, in turns, in the same JVM, on tables of their own. The first flush of each makes the tables. At the end all
rows are counted. The time is that of `flush` alone, without the stream that calls it; processor time is that of all
processes: driver, workers, server and Postgres.
"""
WAYS = ("alone", "shared")


@dataclass(frozen=True, slots=True)
class Taken:
    seconds: float
    cpu_s: float
    jobs: int


class Flushes:
    """One way of writing, with a log and a namespace of its own."""

    def __init__(
        self, way: str, spark: SparkSession, ledger: Ledger, warehouse: UUID, options: argparse.Namespace
    ) -> None:
        self.way = way
        self.taken: list[Taken] = []
        self._spark = spark
        self._options = options
        self._log_id = uuid4()
        self._position = 0
        self._writer = TableWriter(
            Lake(spark, "lake", self._log_id),
            log_id=self._log_id,
            default=Mode.CHANGELOG,
            rows_per_task=100_000,
            locks=TableLocks(ledger, warehouse, 300.0, lambda: None),
        )
        self._plans = Plans(spark)

    def run(self) -> None:
        options = self._options
        row = (self._position + 1, 0, *self._batch())
        log = self._spark.createDataFrame([row], LOG_SCHEMA)
        limit = 0 if self.way == "alone" else small_tables.MOST_ROWS
        jobs, cpu, began = self._jobs(), _cpu_s(), time.monotonic()
        with patch.object(small_tables, "MOST_ROWS", limit):
            flushed = flush(
                log,
                after=self._position,
                log_id=self._log_id,
                writer=self._writer,
                plans=self._plans,
                at_once=options.at_once,
            )
        self.taken.append(Taken(time.monotonic() - began, _cpu_s() - cpu, self._jobs() - jobs))
        if flushed is None or len(flushed.snapshots) != options.tables:
            raise BenchmarkError(f"Not all tables have a snapshot: {flushed}")
        self._position += 1

    def check(self) -> None:
        """Some of the tables, which are all alike."""
        for number in range(0, self._options.tables, max(self._options.tables // 10, 1)):
            found = self._spark.table(f"lake.{self.way}.t{number}").count()
            if found != self._options.events * self._position:
                raise BenchmarkError(f"{self.way}.t{number} has {found} rows")

    def lines(self) -> Iterator[str]:
        first, later = self.taken[0], self.taken[1:]
        yield f"{self.way}, tables are made: {_line([first])}"
        if later:
            yield f"{self.way}, median of {len(later)} later flushes: {_line(later)}"

    def _batch(self) -> tuple[str, bytes]:
        options = self._options
        tables = [
            {"table": f"t{number}", "namespace": [self.way], "name": f"t{number}", "id": None}
            for number in range(options.tables)
        ]
        now = round(time.time() * 1000)
        events = [
            {
                "sequence": self._position * options.events + number,
                "timestamp": now,
                "operation": "INSERT",
                "table": each["table"],
                "rowId": f"r{number}",
                "after": {"n": number, "name": "John Doe", "city": "Utrecht", "amount": 1.25, "active": True},
            }
            for number in range(options.events)
            for each in tables
        ]
        return json.dumps(tables), json.dumps(events).encode()

    def _jobs(self) -> int:
        context: Any = self._spark.sparkContext._jsc  # noqa: SLF001  no public way
        return int(context.sc().dagScheduler().numTotalJobs())


def _line(taken: list[Taken]) -> str:
    seconds, cpu, jobs = (
        statistics.median(getattr(each, name) for each in taken) for name in ("seconds", "cpu_s", "jobs")
    )
    return f"{seconds:.1f} s, {cpu:.1f} s of processor time, {jobs:.0f} jobs"


def _cpu_s() -> float:
    return processes.cpu_ns(processes.tree(os.getpid())) / 1e9


def main() -> int:
    options = parsed()
    try:
        with interrupting(), ExitStack() as cleaning:
            server = cleaning.enter_context(DevelopmentServer(storage="file"))
            info = read_ready_file(server.ready)
            ledger = Ledger(database_url(server.ready), instance="benchmark")
            cleaning.callback(ledger.close)
            spark = cleaning.enter_context(
                session(
                    [_catalog(info)],
                    app_name="benchmark",
                    master=options.master,
                    settings=SETTINGS,
                    options=JvmOptions(heap="2g", short_lived=False),
                )
            )
            warehouse = UUID(info.warehouse.id)
            ways = [Flushes(way, spark, ledger, warehouse, options) for way in options.ways]
            for _ in range(options.rounds + 1):
                for each in ways:
                    each.run()
                    taken = each.taken[-1]
                    sys.stderr.write(f"  {each.way}: {taken.seconds:.1f} s, load {os.getloadavg()[0]:.1f}\n")
            for each in ways:
                each.check()
                print("\n".join(each.lines()))
            print(f"{options.tables} tables with {options.events} events each; load {os.getloadavg()[0]:.1f}")
    except BenchmarkError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _catalog(info: ReadyInfo) -> RestCatalog:
    return RestCatalog(
        name="lake",
        uri=info.catalog_uri,
        warehouse=info.warehouse.name,
        credential=f"{info.engine.client_id}:{info.engine.client_secret}",
        oauth2_server_uri=info.token_endpoint,
        scope=info.engine.scope,
        extra={
            "header.X-Iceberg-Access-Delegation": "vended-credentials",
            "cache-enabled": "false",
            "rest-metrics-reporting-enabled": "false",
        },
    )


def parsed() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.pipeline.small_tables", description=ABOUT)
    arguments.add_argument("--tables", type=int, default=300, help="of a flush [300]")
    arguments.add_argument("--events", type=int, default=3, help="of each table in a flush [3]")
    arguments.add_argument("--rounds", type=int, default=3, help="after the one that makes the tables [3]")
    arguments.add_argument("--at-once", type=int, default=8, help="PIPELINE__TABLES_AT_ONCE [8]")
    arguments.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="what is measured [alone shared]")
    arguments.add_argument("--master", default="local[*]", help="Spark's [local[*]]")
    return arguments.parse_args()


if __name__ == "__main__":
    sys.exit(main())
