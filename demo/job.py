"""The job's steps on a Spark session: load, append, tag, evolve, merge, view, read back in time.

Every step is ordinary Spark; only names of the namespace and its tables are known here. A second run replaces what
the first one made: `CREATE OR REPLACE` keeps the earlier snapshots readable.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.functions.partitioning import months

from demo import source
from demo.result import Totals

NAMESPACE = "nyc"
TAG = "as-loaded"
LAST_MONTH = 12
SUMS: Mapping[str, tuple[str, ...]] = {
    "airlines": (),
    "airports": ("alt",),
    "planes": ("seats", "flights_2013"),
    "weather": ("temp", "precip"),
    "flights": ("dep_delay", "arr_delay", "air_time", "distance"),
}

# Arrived elsewhere first: the flight has an arrival time, but the source gives no delay. Times are read as hhmm.
_MERGE_DIVERTED = """
MERGE INTO {flights} AS known
USING (
  SELECT time_hour, carrier, flight,
         pmod(to_minutes - sched_minutes + 360, 1440) - 360 AS arr_delay
  FROM (
    SELECT *, arr_time div 100 * 60 + arr_time % 100 AS to_minutes,
           sched_arr_time div 100 * 60 + sched_arr_time % 100 AS sched_minutes
    FROM {flights} WHERE arr_time IS NOT NULL AND arr_delay IS NULL
  )
) AS diverted
ON known.time_hour = diverted.time_hour AND known.carrier = diverted.carrier AND known.flight = diverted.flight
WHEN MATCHED THEN UPDATE SET arr_delay = diverted.arr_delay, diverted = true
"""

_MERGE_PLANES = """
MERGE INTO {planes} AS known
USING (SELECT tailnum, count(*) AS flown FROM {flights} WHERE tailnum IS NOT NULL GROUP BY tailnum) AS seen
ON known.tailnum = seen.tailnum
WHEN MATCHED THEN UPDATE SET flights_2013 = seen.flown
WHEN NOT MATCHED THEN INSERT (tailnum, flights_2013) VALUES (seen.tailnum, seen.flown)
"""

_VIEW = """
CREATE OR REPLACE VIEW {view} AS
SELECT airlines.name AS airline,
       count(*) AS flights,
       avg(flights.arr_delay) AS mean_arrival_delay,
       100 * avg(CASE WHEN flights.arr_delay > 15 THEN 1 ELSE 0 END) AS late_percent,
       100 * avg(CASE WHEN flights.dep_time IS NULL THEN 1 ELSE 0 END) AS cancelled_percent
FROM {flights} AS flights JOIN {airlines} AS airlines ON flights.carrier = airlines.carrier
GROUP BY airlines.name
"""

_HISTORY = """
SELECT made.snapshot_id, date_format(made.committed_at, 'yyyy-MM-dd HH:mm:ss') AS committed, made.operation,
       CAST(made.summary['added-records'] AS BIGINT) AS added,
       CAST(made.summary['added-position-deletes'] AS BIGINT) AS deleted,
       CAST(made.summary['added-data-files'] AS BIGINT) AS files,
       named.names
FROM {flights}.snapshots AS made
JOIN (SELECT DISTINCT snapshot_id FROM {flights}.history WHERE is_current_ancestor) AS kept
  ON made.snapshot_id = kept.snapshot_id
LEFT JOIN (
  SELECT snapshot_id, concat_ws(', ', collect_list(name)) AS names FROM {flights}.refs GROUP BY snapshot_id
) AS named ON made.snapshot_id = named.snapshot_id
ORDER BY made.committed_at
"""


@dataclass(frozen=True, slots=True)
class Job:
    """The steps, on tables of `catalog`'s namespace."""

    spark: SparkSession
    catalog: str
    namespace: str = NAMESPACE

    def name(self, table: str) -> str:
        return f"{self.catalog}.{self.namespace}.{table}"

    def create_namespace(self) -> bool:
        """Returns whether it was there already."""
        known = {row.namespace for row in self.spark.sql(f"SHOW NAMESPACES IN {self.catalog}").collect()}
        self._sql(
            f"CREATE NAMESPACE IF NOT EXISTS {self.catalog}.{self.namespace} "
            "COMMENT 'Flights that departed New York City in 2013'"
        )
        return self.namespace in known

    def load(self, table: str) -> None:
        """The whole data set as a table (create or replace, as select)."""
        source.read(self.spark, table).writeTo(self.name(table)).using("iceberg").createOrReplace()

    def load_flights(self) -> None:
        """January to November, in one file group a month; later changes are written as delete files."""
        flights = source.read(self.spark, "flights").where(col("month") < LAST_MONTH)
        (
            flights.writeTo(self.name("flights"))
            .using("iceberg")
            .partitionedBy(months("time_hour"))
            .tableProperty("write.merge.mode", "merge-on-read")
            .createOrReplace()
        )

    def append_december(self) -> None:
        source.read(self.spark, "flights").where(col("month") == LAST_MONTH).writeTo(self.name("flights")).append()

    def tag(self) -> None:
        self._sql("ALTER TABLE {flights} CREATE OR REPLACE TAG `" + TAG + "`")

    def evolve(self) -> None:
        """Adds, renames and widens columns: metadata only, no file is written again."""
        self._sql("ALTER TABLE {flights} ADD COLUMN diverted boolean COMMENT 'landed elsewhere first'")
        self._sql("ALTER TABLE {flights} ALTER COLUMN distance TYPE bigint")
        self._sql("ALTER TABLE {airports} RENAME COLUMN tzone TO time_zone")
        self._sql("ALTER TABLE {planes} ADD COLUMN flights_2013 bigint")

    def merge_diverted(self) -> int:
        """Fills in the arrival delay of diverted flights; returns how many."""
        self._sql(_MERGE_DIVERTED)
        return int(self._one("SELECT count(*) AS n FROM {flights} WHERE diverted").n)

    def merge_planes(self) -> int:
        """Counts each plane's flights, and adds the planes that flew without being known; returns how many."""
        before = self.totals("planes").rows
        self._sql(_MERGE_PLANES)
        return self.totals("planes").rows - before

    def drop(self, table: str) -> None:
        self.spark.sql(f"DROP TABLE {self.name(table)}")

    def has(self, table: str) -> bool:
        return bool(self.spark.catalog.tableExists(self.name(table)))

    def create_view(self) -> None:
        self._sql(_VIEW)

    def delays(self) -> list[Row]:
        return self._sql("SELECT * FROM {view} ORDER BY mean_arrival_delay DESC").collect()

    def history(self) -> list[Row]:
        """The flights' snapshots that lead to the current one, oldest first."""
        return self._sql(_HISTORY).collect()

    def current_snapshot(self) -> int:
        return int(self._one("SELECT snapshot_id FROM {flights}.refs WHERE name = 'main'").snapshot_id)

    def totals(self, table: str, *, version: str | int | None = None) -> Totals:
        """Rows and sums, now or at a snapshot's id or tag. Columns that the table does not have yet are left out."""
        quoted = f"'{version}'" if isinstance(version, str) else version
        data = self.spark.sql(
            f"SELECT * FROM {self.name(table)}" + ("" if version is None else f" VERSION AS OF {quoted}")  # noqa: S608  our own names
        )
        summed = [column for column in SUMS[table] if column in data.columns]
        row = data.selectExpr("count(*)", *(f"coalesce(sum({column}), 0)" for column in summed)).collect()[0]
        return Totals(row[0], dict(zip(summed, row[1:], strict=True)))

    def _sql(self, statement: str) -> DataFrame:
        names: dict[str, Any] = {table: self.name(table) for table in source.SCHEMAS}
        return self.spark.sql(statement.format(**names, view=self.name("delays_by_airline")))

    def _one(self, statement: str) -> Row:
        return self._sql(statement).collect()[0]
