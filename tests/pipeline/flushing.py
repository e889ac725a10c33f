"""A warehouse whose log is followed, and namespaces whose changes are appended, flushed and read back."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import uuid4

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from lakewarden.config.pipeline import PipelineConfig
from pipeline.jobs.lease import Heart
from pipeline.jobs.options import Options
from pipeline.jobs.status import Status
from pipeline.jobs.warehouse import WarehouseStream
from pipeline.sources.ledger import Ledger
from standalone.ready import ReadyWarehouse
from tests.pipeline.durable_log import DurableLog
from tests.servers.lakewarden_server import DevServer

DEADLINE_S = 240.0


def database_url(server: DevServer) -> str:
    """Of the server's embedded PostgreSQL."""
    port = (server.data_dir / "postgres/postmaster.pid").read_text().splitlines()[3]
    password = (server.data_dir / "postgres.password").read_text().strip()
    return f"postgresql://postgres:{password}@127.0.0.1:{port}/lakewarden"


def options_for(server: DevServer) -> Options:
    """What is appended is flushed at once, and what failed is tried again at once."""
    info = server.info
    config = PipelineConfig.model_validate(
        {
            "catalog_uri": info.catalog_uri,
            "oauth2_server_uri": info.token_endpoint,
            "client_id": info.engine.client_id,
            "client_secret": info.engine.client_secret,
            "scope": info.engine.scope,
            "poll_interval_s": 0.1,
            "flush_age_s": 0,
            "retry_max_s": 1,
            "drain_s": 0,
            "lease_s": 60,
        }
    )
    return Options(dsn=database_url(server), config=config, master="local[2]")


@contextmanager
def following(
    server: DevServer, spark: SparkSession, warehouse: ReadyWarehouse, *, options: Options | None = None
) -> Iterator["Follower"]:
    """A follower of the warehouse's log, which is made if need be."""
    DurableLog(database_url(server), warehouse.id, namespace=[]).close()
    running = Follower(server, spark, warehouse, options or options_for(server))
    running.start()
    try:
        yield running
    finally:
        running.close()


class Follower:
    """The pipeline of a warehouse, in a thread, as `lakewarden pipeline` runs it."""

    def __init__(self, server: DevServer, spark: SparkSession, warehouse: ReadyWarehouse, options: Options) -> None:
        self.options = options
        self.warehouse = warehouse
        self.database = database_url(server)
        self._spark = spark
        instance = uuid4().hex
        self._ledger = Ledger(self.options.dsn, instance=instance)
        self._heart = Heart(Ledger(self.options.dsn, instance=instance))
        self._heart.start()

    def start(self) -> None:
        warehouse = next(each for each in self._ledger.warehouses() if str(each.id) == self.warehouse.id)
        self._stopping = threading.Event()
        self.stream = WarehouseStream(
            warehouse, self._spark, self._ledger, options=self.options, stopping=self._stopping
        )
        self._heart.add(self.stream.lease)
        self._thread = threading.Thread(target=self.stream.run, kwargs={"alive": lambda: True}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()

    @contextmanager
    def started(self, **settings: object) -> Iterator[None]:
        """With other settings; afterwards it is started as before."""
        before = self.options
        self.options = replace(before, config=before.config.model_copy(update=settings))
        self.start()
        try:
            yield
        finally:
            self.stop()
            self.options = before
            self.start()

    def close(self) -> None:
        self.stop()
        self._heart.stop()
        self._ledger.close()

    @property
    def status(self) -> Status:
        return self.stream.status


@dataclass(frozen=True)
class Stage:
    """`log` names tables without a namespace in `namespace`, which PyIceberg's `catalog` knows by the same name."""

    follower: Follower
    namespace: str
    log: DurableLog
    catalog: RestCatalog

    @classmethod
    @contextmanager
    def open(cls, follower: Follower, *, namespace: str) -> Iterator[Self]:
        options = follower.options
        properties = options.catalog("lake", warehouse=follower.warehouse.name).properties()
        catalog = RestCatalog("lake", **properties, **{"py-io-impl": _FILE_IO})
        catalog.create_namespace(namespace)
        log = DurableLog(follower.database, follower.warehouse.id, namespace=[namespace])
        try:
            yield cls(follower, namespace, log, catalog)
        finally:
            log.close()
            catalog.close()

    def flush(self) -> Status:
        """Wait until everything is flushed that is in the log now, whatever fails meanwhile and is tried again."""
        upto = self.log.positions()[0]
        self._wait(lambda: self.log.positions()[1] >= upto)
        return self.follower.status

    def await_error(self, words: str) -> None:
        """Wait until the pipeline says that something fails, in these words."""
        self._wait(lambda: words in self.follower.status.error)

    def await_work(self) -> None:
        """Wait until the pipeline tries to write what is in the log."""
        self._wait(lambda: self.follower.status.state in {"flushing", "error"})

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, (self.follower.status.state, self.follower.status.error)
            time.sleep(0.1)

    def policy(self, mode: str) -> None:
        """What becomes of all tables of the namespace."""
        self.catalog.update_namespace_properties(self.namespace, updates={"lakewarden.cdc.mode": mode})

    def table(self, name: str) -> Table:
        table: Table = self.catalog.load_table((self.namespace, name))
        return table

    def rows(self, name: str) -> list[dict[str, Any]]:
        """By sequence; as PyIceberg reads them."""
        rows: list[dict[str, Any]] = self.table(name).scan().to_arrow().to_pylist()
        return sorted(rows, key=lambda row: (row["_cdc_sequence"], row["_cdc_row_id"]))

    def mirror(self, name: str) -> Mapping[str, dict[str, Any]]:
        """The rows by their ids, without the columns of the change log. Fails if an id is there twice."""
        rows = self.rows(name)
        found = {row["_cdc_row_id"]: {k: v for k, v in row.items() if not k.startswith("_cdc_")} for row in rows}
        assert len(found) == len(rows)
        return found


_FILE_IO = "pyiceberg.io.pyarrow.PyArrowFileIO"
