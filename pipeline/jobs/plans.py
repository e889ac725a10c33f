"""How Spark plans the statements of a flush: most flushes are small, and then planning is what takes time."""

from typing import Final

from pyspark.sql import SparkSession

SMALL_EVENTS: Final = 100_000
SMALL_TABLE_ROWS: Final = 1_000_000
_SMALL: Final = {
    # Generated code must be compiled, by Janino and then by the JVM: for few rows that takes longer than interpreting.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Each stage is a job of its own, after which the rest of the plan is made again.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


class Plans:
    """Of one session, whose own settings are for large flushes."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._large = {name: spark.conf.get(name) for name in _SMALL}

    def choose(self, *, events: int, table_rows: int) -> None:
        """For a flush of so many events; `table_rows`: of the largest table that they are merged into."""
        is_small = events <= SMALL_EVENTS and table_rows <= SMALL_TABLE_ROWS
        for name, value in (_SMALL if is_small else self._large).items():
            if value is not None:
                self._spark.conf.set(name, value)
