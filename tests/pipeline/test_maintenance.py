"""Maintenance on the pipeline's driver, and beside its flushes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest
from pyspark.sql import SparkSession

from lakewarden.config.maintenance import MaintenanceConfig
from pipeline.jobs.upkeep import Upkeep
from pipeline.maintenance.ledger import Ledger
from pipeline.maintenance.run import Warehouse
from pipeline.sources.table_locks import TABLE_LOCKS, lock_key
from tests.pipeline.durable_log import change
from tests.pipeline.flushing import DEADLINE_S, Stage

EAGER = {"lakewarden.maintenance.small-files": "3", "lakewarden.maintenance.operations": "rewrite-data-files"}


def await_(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def history(stage: Stage, table: str) -> list[dict[str, object]]:
    with closing(Ledger(stage.follower.options.dsn)) as ledger:
        return ledger.history(stage.follower.stream.warehouse.id, f"{stage.namespace}.{table}", 10)


def files(stage: Stage, table: str) -> int:
    return len(list(stage.table(table).scan().plan_files()))


def write_files(stage: Stage, table: str, *, count: int) -> None:
    """Each flush makes one."""
    for number in range(count):
        stage.log.append([change(table, f"r{number}", number, {"v": number})])
        stage.flush()


def test_a_flush_waits_for_maintenance_of_its_table(stage: Stage) -> None:
    stage.log.append([change("t", "a", 1, {"v": 1})])
    stage.flush()
    key = lock_key(stage.follower.stream.warehouse.id, (stage.namespace, "t"))
    with psycopg.connect(stage.follower.options.dsn, autocommit=True) as maintenance:
        maintenance.execute("select pg_advisory_lock(%s, %s)", key)
        stage.log.append([change("t", "a", 2, {"v": 2}), change("other", "a", 3, {"v": 3})])
        await_(lambda: stage.catalog.table_exists((stage.namespace, "other")))
        await_(lambda: stage.rows("other"))
        assert len(stage.rows("t")) == 1
        assert stage.log.positions()[1] < stage.log.positions()[0]
    stage.flush()
    assert [row["v"] for row in stage.rows("t")] == [1, 2]
    assert stage.follower.status.error == ""


def test_the_driver_maintains_the_tables_that_it_writes_and_no_others(stage: Stage, spark: SparkSession) -> None:
    write_files(stage, "t", count=4)
    stage.catalog.create_table((stage.namespace, "foreign"), stage.table("t").schema())
    for _ in range(4):
        stage.table("foreign").append(stage.table("t").scan().to_arrow().slice(0, 1))
    config = stage.follower.options.config.model_copy(update={"maintenance_interval_s": 0.2})
    options = replace(stage.follower.options, config=config, maintenance=MaintenanceConfig(policy=EAGER))
    rows = stage.rows("t")
    upkeep = Upkeep(spark, lambda: [stage.follower.stream], options=options)
    upkeep.start()
    try:
        await_(lambda: history(stage, "t"))
        stage.log.append([change("t", "late", 9, {"v": 9})])
        stage.flush()
    finally:
        upkeep.stop()
    (done,) = history(stage, "t")
    assert (done["state"], done["operation"], done["files_before"]) == ("done", "rewrite-data-files", 4)
    assert files(stage, "t") <= 2
    assert [row["v"] for row in stage.rows("t")] == [*(row["v"] for row in rows), 9]
    assert (history(stage, "foreign"), files(stage, "foreign")) == ([], 4)


@pytest.mark.timeout(900)
def test_maintenance_that_is_killed_leaves_the_table_as_it_was_and_the_next_one_goes_on(
    stage: Stage, spark: SparkSession
) -> None:
    write_files(stage, "t", count=4)
    rows = stage.rows("t")
    config = stage.follower.options.config
    assert config.client_secret is not None
    environment = os.environ | {
        "LAKEWARDEN__DATABASE__URL": stage.follower.options.dsn,
        "LAKEWARDEN__MAINTENANCE__CATALOG_URI": config.catalog_uri or "",
        "LAKEWARDEN__MAINTENANCE__OAUTH2_SERVER_URI": config.oauth2_server_uri or "",
        "LAKEWARDEN__MAINTENANCE__CLIENT_ID": config.client_id or "",
        "LAKEWARDEN__MAINTENANCE__CLIENT_SECRET": config.client_secret.get_secret_value(),
        "LAKEWARDEN__MAINTENANCE__POLICY": '{"lakewarden.maintenance.small-files": "3"}',
    }
    command = [sys.executable, "-m", "lakewarden.cli", "maintenance", "run", "--table", f"{stage.namespace}.t"]
    command += ["--operation", "rewrite-data-files", "--now", "--master", "local[2]"]
    _, second = lock_key(stage.follower.stream.warehouse.id, (stage.namespace, "t"))
    held = "select 1 from pg_locks where locktype = 'advisory' and classid = %s and objid::bigint = %s"
    key = (TABLE_LOCKS, second % 2**32)
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as maintenance:
        await_(lambda: stage.log.query(held, *key) or maintenance.poll() is not None)
        maintenance.send_signal(signal.SIGKILL)
    await_(lambda: not stage.log.query(held, *key))
    assert stage.rows("t") == rows
    if files(stage, "t") > 1:  # it may have been quicker
        stream = stage.follower.stream
        with closing(Ledger(stage.follower.options.dsn)) as ledger:
            warehouse = Warehouse(spark, stream.catalog, stream.warehouse.id, ledger, EAGER)
            (done,) = warehouse.run([(stage.namespace, "t")], now=True)
        assert (done.state, done.files_after) == ("done", 1)
    assert stage.rows("t") == rows
