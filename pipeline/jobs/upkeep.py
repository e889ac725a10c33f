"""Maintenance of the tables that a pipeline's streams write, on the same driver, one table at a time."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from uuid import UUID

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.errors import LakewardenError
from pipeline.jobs.flush import SCHEDULER_POOL
from pipeline.jobs.options import Options
from pipeline.jobs.warehouse import WarehouseStream
from pipeline.maintenance.command import done_line
from pipeline.maintenance.ledger import Ledger
from pipeline.maintenance.policy import of_warehouse
from pipeline.maintenance.run import Warehouse, explained

log = logging.getLogger("lakewarden.maintenance")
WAIT_S = 30.0
_STOP_S = 5.0


class Upkeep(threading.Thread):
    """Looks at the tables that were written since it looked last, and now and then at all tables of a warehouse.

    Only for warehouses whose lease this process holds. What was under way when the process ends is not done: an
    operation of Iceberg is one commit at its end.
    """

    def __init__(
        self, spark: SparkSession, streams: Callable[[], Iterable[WarehouseStream]], *, options: Options
    ) -> None:
        super().__init__(name="maintenance", daemon=True)
        self._spark = spark
        self._streams = streams
        self._options = options
        self._stopped = threading.Event()
        self._rests: dict[UUID, dict[tuple[str, ...], float]] = {}
        self._waiting: dict[UUID, set[tuple[str, ...]]] = {}
        self._searched: dict[UUID, float] = {}

    def run(self) -> None:
        # Spark shares its cores between pools, so a long rewrite does not stop flushes
        self._spark.sparkContext.setLocalProperty(SCHEDULER_POOL, "maintenance")
        while not self._stopped.wait(self._options.config.maintenance_interval_s):
            for stream in self._streams():
                if stream.lease.is_held and not self._stopped.is_set():
                    self._look(stream)

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=_STOP_S)

    def _look(self, stream: WarehouseStream) -> None:
        identifier, name = stream.warehouse.id, stream.warehouse.name
        waiting = self._waiting.setdefault(identifier, set())
        waiting |= stream.status.take_written()
        rests = self._rests.setdefault(identifier, {})
        try:
            policy = of_warehouse(self._options.maintenance, name)
            history_days = self._options.maintenance.history_days
            with closing(Ledger(self._options.dsn, history_days=history_days)) as ledger:
                warehouse = Warehouse(
                    self._spark, stream.catalog, identifier, ledger, policy, wait_s=WAIT_S, rests=rests
                )
                due = [table for table in sorted(waiting) if rests.get(table, 0.0) <= time.time()]
                waiting.difference_update(due)
                if due:
                    self._maintain(stream, warehouse, due)
                if self._is_search_due(identifier):
                    self._maintain(stream, warehouse, ())
        except (LakewardenError, PySparkException, Py4JError, ConnectionError) as error:
            if not self._stopped.is_set():
                log.warning("%s: maintenance: %s", name, explained(error).message)

    def _maintain(self, stream: WarehouseStream, warehouse: Warehouse, tables: Sequence[tuple[str, ...]]) -> None:
        for done in warehouse.run(tables, goes_on=lambda: stream.lease.is_held and not self._stopped.is_set()):
            say = log.warning if done.state == "failed" else log.info
            say("%s: %s", stream.warehouse.name, done_line(done))

    def _is_search_due(self, warehouse: UUID) -> bool:
        now = time.monotonic()
        if now - self._searched.get(warehouse, -1e9) < self._options.config.maintenance_search_hours * 3600:
            return False
        self._searched[warehouse] = now
        return True
