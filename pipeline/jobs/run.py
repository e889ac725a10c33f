"""Runs the pipeline: one Spark session, a stream for each warehouse. `lakewarden pipeline` calls `run`."""

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from lakewarden.errors import LakewardenError, NotFound
from pipeline.jobs.lease import Heart
from pipeline.jobs.options import Options
from pipeline.jobs.upkeep import Upkeep
from pipeline.jobs.warehouse import WarehouseStream
from pipeline.sources.ledger import IngestWarehouse, Ledger
from pipeline.sources.postgres_log import LogSource
from pipeline.spark import preflight
from pipeline.spark.errors import GatewayFailed, SparkSetupFailed
from pipeline.spark.jars import CATALOG_JARS
from pipeline.spark.jvm import JvmOptions
from pipeline.spark.session import session

log = logging.getLogger("lakewarden.pipeline")
DISCOVERY_S = 5.0
S3_JAR = "iceberg-aws-bundle"


def run(options: Options) -> int:
    """Until TERM or Ctrl-C, or with `once` until everything is flushed. Returns the exit code."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    return Pipeline(options, stopping).run()


class Pipeline:
    """Starts Spark anew if its JVM has gone, or if a warehouse needs another jar."""

    def __init__(self, options: Options, stopping: threading.Event) -> None:
        self._options = options
        self._stopping = stopping
        instance = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        self._ledger = Ledger(options.dsn, instance=instance)
        self._heart = Heart(Ledger(options.dsn, instance=instance))
        self._failure: LakewardenError | None = None

    def run(self) -> int:
        self._heart.start()
        try:
            while not self._stopping.is_set():
                if self._attempt() and self._options.once:
                    break
        finally:
            self._heart.stop()
            self._ledger.close()
        if self._failure is not None:
            log.error("%s", self._failure)
        return 1 if self._failure else 0

    def _attempt(self) -> bool:
        """One life of Spark's JVM. Returns whether everything is done; pauses after a failure."""
        try:
            warehouses = self._find()
            if self._options.once and not warehouses:
                log.info("There is nothing to flush: no warehouse has received change data yet.")
                return True
            for each in warehouses[:1]:
                preflight.check(self._options.catalog("lake", warehouse=each.name))
            self._serve(warehouses)
        except (LakewardenError, Py4JError, ConnectionError) as error:
            if self._options.once or (isinstance(error, SparkSetupFailed) and not isinstance(error, GatewayFailed)):
                self._failure = error if isinstance(error, LakewardenError) else GatewayFailed(str(error))
                self._stopping.set()
                return True
            log.warning("%s Next attempt in %.0f s.", error, DISCOVERY_S)
            self._stopping.wait(DISCOVERY_S)
            return False
        return True

    def _find(self) -> list[IngestWarehouse]:
        """Raises NotFound for a warehouse that was named and has no log, with `once`."""
        known = self._ledger.warehouses()
        found = [each for each in known if self._options.wants(each.name)]
        names = {name for each in found for name in (each.name, each.name.partition("/")[2])}
        if missing := [name for name in self._options.warehouses if name not in names]:
            sentence = f"Warehouse {missing[0]!r} has received no change data yet, or does not exist."
            if self._options.once:
                raise NotFound(sentence)
            log.info("%s Waiting for it.", sentence)
        return found

    def _serve(self, warehouses: list[IngestWarehouse]) -> None:
        config = self._options.config
        has_s3 = "s3" in self._ledger.storages()
        jars = (*CATALOG_JARS, S3_JAR) if has_s3 else CATALOG_JARS
        log.info("Starting Spark (%s)", self._options.master)
        with session(
            [],
            app_name="lakewarden-pipeline",
            master=self._options.master,
            jar_names=jars,
            more_jars=config.jars,
            settings=SETTINGS | config.spark,
            options=JvmOptions(heap=config.heap, short_lived=False),
            log=config.log_file,
            progress=lambda line: log.info("%s", line),
        ) as spark:
            spark.dataSource.register(LogSource)
            _Streams(spark, self._ledger, self._heart, self._options, self._stopping).run(
                warehouses, self._find, fits=lambda found: has_s3 or all(each.storage != "s3" for each in found)
            )


SETTINGS = {
    "spark.python.daemon.module": "pipeline.jobs.worker_daemon",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.caseSensitive": "true",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "1",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.stopTimeout": "30s",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
}


class _Streams:
    """The streams of one session, each in a thread; new warehouses get theirs as they come."""

    def __init__(
        self, spark: SparkSession, ledger: Ledger, heart: Heart, options: Options, stopping: threading.Event
    ) -> None:
        self._spark = spark
        self._ledger = ledger
        self._heart = heart
        self._options = options
        self._stopping = stopping
        self._ending = threading.Event()
        self._threads: dict[IngestWarehouse, tuple[WarehouseStream, threading.Thread]] = {}
        self._upkeep = Upkeep(spark, lambda: [stream for stream, _ in list(self._threads.values())], options=options)

    def run(
        self,
        warehouses: list[IngestWarehouse],
        find: Callable[[], list[IngestWarehouse]],
        *,
        fits: Callable[[list[IngestWarehouse]], bool],
    ) -> None:
        """Returns when all is done or told to stop, or Spark must be started anew. Raises what ended a stream."""
        try:
            if self._options.config.maintenance and not self._options.once:
                self._upkeep.start()
            while fits(warehouses):
                for each in warehouses:
                    if each not in self._threads:
                        self._start(each)
                if not self._wait():
                    break
                if not self._options.once:
                    with suppress(LakewardenError):  # the streams say it, too
                        warehouses = find()
        finally:
            self._end()
        for stream, _ in self._threads.values():
            if stream.failure is not None:
                raise stream.failure

    def _start(self, warehouse: IngestWarehouse) -> None:
        stream = WarehouseStream(warehouse, self._spark, self._ledger, options=self._options, stopping=self._ending)
        thread = threading.Thread(target=stream.run, kwargs={"alive": self._is_alive}, name=warehouse.name, daemon=True)
        self._threads[warehouse] = (stream, thread)
        self._heart.add(stream.lease)
        thread.start()

    def _wait(self) -> bool:
        """False when it is time to end."""
        deadline = time.monotonic() + DISCOVERY_S
        while time.monotonic() < deadline:
            running = [thread for _, thread in self._threads.values() if thread.is_alive()]
            failed = any(stream.failure for stream, _ in self._threads.values())
            if self._stopping.wait(0.1) or failed or not self._is_alive() or (self._options.once and not running):
                return False
        return True

    def _end(self) -> None:
        self._ending.set()
        if self._upkeep.is_alive():
            self._upkeep.stop()
        for stream, thread in self._threads.values():
            thread.join(timeout=self._options.config.drain_s + 60)
            self._heart.remove(stream.lease)

    def _is_alive(self) -> bool:
        try:
            return not self._spark.sparkContext._jsc.sc().isStopped()  # noqa: SLF001  no public way
        except (Py4JError, ConnectionError):
            return False
