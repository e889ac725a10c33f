"""The pipeline of one warehouse: a streaming query over its log, restarted after each failure."""

import json
import logging
import random
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from lakewarden.errors import LakewardenError
from pipeline.jobs.flush import SCHEDULER_POOL, flush
from pipeline.jobs.lake import MAX_PATHS, Lake
from pipeline.jobs.lease import Lease
from pipeline.jobs.options import Options
from pipeline.jobs.plans import Plans
from pipeline.jobs.status import Status, answer, sentence
from pipeline.jobs.table_locks import TableLocks
from pipeline.jobs.write import TableWriter
from pipeline.sources.ledger import IngestWarehouse, Ledger
from pipeline.sources.postgres_log import DSN_OPTION, FORMAT, KAFKA_OPTION, kafka_option
from pipeline.spark.errors import GatewayFailed
from pipeline.spark.failures import explained
from pipeline.spark.session import add_catalog

log = logging.getLogger("lakewarden.pipeline")
TICK_S = 0.25


class WarehouseStream:
    """Runs in a thread of its own until `stopping` is set, or, `once`, until all that is there now is in snapshots."""

    def __init__(
        self,
        warehouse: IngestWarehouse,
        spark: SparkSession,
        ledger: Ledger,
        *,
        options: Options,
        stopping: threading.Event,
    ) -> None:
        self.warehouse = warehouse
        self.status = Status()
        self.lease = Lease(warehouse.id, self.status, lease_s=options.config.lease_s)
        self.failure: LakewardenError | None = None
        self._spark = spark
        self._ledger = ledger
        self._options = options
        self._stopping = stopping
        self.catalog = f"w{warehouse.id.hex}"
        self._writer: TableWriter | None = None
        self._plans: Plans | None = None
        self._batch_failure: Exception | None = None
        self._has_waited = False

    def run(self, *, alive: Callable[[], bool]) -> None:
        """Returns when it is done, or when Spark's JVM is not `alive` any more."""
        failures = 0
        # a warehouse with much to write does not keep the cores from the others
        self._spark.sparkContext.setLocalProperty(SCHEDULER_POOL, self.catalog)
        while alive():
            began = time.monotonic()
            try:
                if self._wait_for_lease() and self._stream():
                    break
            except Exception as error:  # noqa: BLE001  a failure of one warehouse is logged, and tried again
                long_ago = time.monotonic() - began > self._options.config.retry_max_s
                failures = 1 if long_ago else failures + 1
                if not self._failed(error, failures):
                    break
            if self._stopping.is_set():
                break
        self._release()

    def _wait_for_lease(self) -> bool:
        holder = self.lease.take(self._ledger)
        if holder is None:
            self._has_waited = False
            return True
        if not self._has_waited:
            log.info("%s: waiting, because another pipeline has it (%s)", self.warehouse.name, holder)
            self._has_waited = True
        self._stopping.wait(1.0)
        return False

    def _failed(self, error: Exception, failures: int) -> bool:
        """Say it, pause, and return whether to try again."""
        shown = explained(error)
        if isinstance(shown, GatewayFailed):
            self.failure = shown
            return False
        pause = min(self._options.config.retry_max_s, 2.0**failures) * random.uniform(0.5, 1.0)  # noqa: S311  no secret
        self.status.become("error", shown.message)
        log.warning("%s: %s. Next attempt in %.0f s.", self.warehouse.name, shown.message.rstrip("."), pause)
        log.debug("The whole error:", exc_info=error)
        if self._options.once and failures >= 3:  # noqa: PLR2004  whoever waits for the end wants to know
            self.failure = shown
            return False
        self._refuse_requests(shown.message)
        self._stopping.wait(pause)
        return True

    def _refuse_requests(self, message: str) -> None:
        try:
            for request in self._ledger.requests(self.warehouse.id):
                self._ledger.answer(request.id, done=False, result={"error": message})
        except LakewardenError as error:
            log.debug("Nobody was told: %s", error)

    def _stream(self) -> bool:
        """Flush until told to stop, or done. Raises what ends the query, or LeaseLost."""
        if self._writer is not None:
            self._writer.forget()
        upto = self._ledger.head(self.warehouse.id).last_position
        add_catalog(self._spark, self._options.catalog(self.catalog, warehouse=self.warehouse.name))
        with tempfile.TemporaryDirectory(prefix="lakewarden-checkpoint-") as temporary:
            folder = self._options.config.checkpoint
            query = self._start(f"{folder}/{self.warehouse.log_id}" if folder else Path(temporary).as_uri())
            try:
                self._watch(query, upto=upto)
            finally:
                query.stop()
        return True

    def _start(self, checkpoint: str) -> StreamingQuery:
        self._batch_failure = None
        self._writer = None
        options = {
            DSN_OPTION: self._options.dsn,
            KAFKA_OPTION: kafka_option(self._options.kafka),
            "warehouse": str(self.warehouse.id),
            "triggers": json.dumps(
                {name: getattr(self._options.triggers, name) for name in self._options.triggers.__slots__}
            ),
            "partitions": str(self._spark.sparkContext.defaultParallelism),
        }
        stream = self._spark.readStream.format(FORMAT).options(**options).load().writeStream
        interval = f"{self._options.config.poll_interval_s * 1000:.0f} milliseconds"
        return (
            stream.foreachBatch(self._flush)
            .trigger(processingTime=interval)
            .option("checkpointLocation", checkpoint)
            .queryName(f"log of {self.warehouse.name}")
            .start()
        )

    def _watch(self, query: StreamingQuery, *, upto: int) -> None:
        self.status.become("idle")
        log.info("%s: following its log from position %s", self.warehouse.name, f"{self._flushed():,}")
        while not self._stopping.is_set() and not (self._options.once and self._flushed() >= upto):
            self._tick(query)
        if self._stopping.is_set() and not self._options.once:
            self._drain(query)

    def _tick(self, query: StreamingQuery) -> None:
        try:
            ended = query.awaitTermination(TICK_S)  # type: ignore[arg-type]  # fractions are allowed
        except PySparkException as error:
            raise self._batch_failure or error from None
        self.lease.ensure()
        if ended:
            raise self._batch_failure or GatewayFailed("Spark ended the query.")
        self.answer_requests()

    def _drain(self, query: StreamingQuery) -> None:
        """Flush what is waiting, in the time that the settings give."""
        head = self._ledger.head(self.warehouse.id)
        if head.flushed_position >= head.last_position or not self._options.config.drain_s:
            return
        log.info("%s: flushing what is waiting before the end", self.warehouse.name)
        request = self._ledger.request_flush(self.warehouse.id)
        deadline = time.monotonic() + self._options.config.drain_s
        try:
            while self._flushed() < head.last_position and time.monotonic() < deadline:
                self._tick(query)
        finally:
            self._ledger.remove_request(request)

    def _flushed(self) -> int:
        return self._ledger.head(self.warehouse.id).flushed_position

    def _flush(self, batch: DataFrame, _number: int) -> None:
        """One micro-batch, called by Spark. What it raises ends the query."""
        try:
            self.lease.ensure()
            self.status.become("flushing")
            if self._writer is None or self._plans is None:
                self._plans = Plans(batch.sparkSession)
                self._writer = TableWriter(
                    Lake(batch.sparkSession, self.catalog, self.warehouse.log_id),
                    log_id=self.warehouse.log_id,
                    default=self._options.mode,
                    rows_per_task=self._options.config.rows_per_task,
                    locks=TableLocks(
                        self._ledger, self.warehouse.id, self._options.config.maintenance_wait_s, self.lease.ensure
                    ),
                )
            flushed = flush(
                batch,
                after=self._flushed(),
                log_id=self.warehouse.log_id,
                writer=self._writer,
                plans=self._plans,
                at_once=self._options.config.tables_at_once,
            )
            if flushed is not None:
                self.lease.ensure()
                self._ledger.mark_flushed(self.warehouse.id, flushed.upto)
                self.status.add(flushed)
                log.info("%s: %s", self.warehouse.name, sentence(flushed))
            self.status.become("idle")
        except Exception as error:
            self._batch_failure = error
            raise

    def answer_requests(self) -> None:
        """Those whose position is in snapshots get the figures of the flushes since they asked."""
        requests = self._ledger.requests(self.warehouse.id)
        flushed = self._flushed() if requests else 0
        for request in requests:
            if request.upto_position <= flushed:
                flushes = self.status.flushes(since=time.time() - request.age_s)
                result = answer(flushes, self._paths(request.age_s))
                self._ledger.answer(request.id, done=True, result=result)

    def _paths(self, age_s: float) -> list[str]:
        if self._writer is None:
            return []
        snapshots = [each for made in self.status.flushes(since=time.time() - age_s) for each in made.snapshots]
        paths = (path for each in snapshots for path in self._writer.added_files(each))
        return list(islice(paths, MAX_PATHS))

    def _release(self) -> None:
        try:
            if self.lease.is_held:
                self._ledger.release(self.warehouse.id)
        except LakewardenError as error:
            log.debug("The lease was not given back: %s", error)
