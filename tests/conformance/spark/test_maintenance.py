"""Maintenance by the pipeline's code on real tables: what it gains, what it leaves alone, what it waits for."""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyspark.sql import SparkSession

from pipeline.maintenance.ledger import Done, Ledger
from pipeline.maintenance.policy import Operation
from pipeline.maintenance.run import Warehouse
from pipeline.sources.table_locks import lock_key
from tests.conformance.sql import Sql
from tests.servers.lakewarden_server import DevServer

SMALL_FILES = 2000
Made = Callable[..., Warehouse]


@pytest.fixture
def ledger(server: DevServer) -> Iterator[Ledger]:
    with closing(Ledger(server.database_url)) as ledger:
        yield ledger


@pytest.fixture
def warehouse(spark: SparkSession, server: DevServer, ledger: Ledger) -> Made:
    """The warehouse with some policy of its own; `later_h`: its clock is so many hours ahead."""

    def made(*, later_h: float = 0.0, **policy: str) -> Warehouse:
        properties = {f"lakewarden.maintenance.{name.replace('_', '-')}": value for name, value in policy.items()}
        identifier = UUID(server.info.warehouse.id)
        return Warehouse(spark, "lake", identifier, ledger, properties, lambda: time.time() + later_h * 3600)

    return made


def files(run: Sql) -> tuple[int, int]:
    return tuple(run("SELECT count(*), sum(file_size_in_bytes) FROM {ns}.t.data_files")[0])


def by_operation(done: list[Done]) -> dict[Operation, Done]:
    return {each.operation: each for each in done}


def test_a_table_of_2000_small_files(
    spark: SparkSession, run: Sql, namespace: str, warehouse: Made, catalog: RestCatalog
) -> None:
    """Ten snapshots of 200 files each, a day ago; afterwards few files, one snapshot, the same rows."""
    run(
        "CREATE TABLE {ns}.t (id BIGINT, text STRING) USING iceberg TBLPROPERTIES ('lakewarden.cdc.kind' = 'changelog')"
    )
    for number in range(10):
        rows = spark.range(number * 20_000, (number + 1) * 20_000, numPartitions=SMALL_FILES // 10)
        options = {"distribution-mode": "none"}
        rows.selectExpr("id", "concat('row ', id) AS text").writeTo(f"lake.{namespace}.t").options(**options).append()
    count, size = files(run)
    assert count == SMALL_FILES
    table = (namespace, "t")

    (planned,) = warehouse().plan([table])
    rewrite = next(each for each in planned.steps if each.operation == Operation.REWRITE_DATA_FILES)
    assert rewrite.gain is not None
    assert rewrite.gain.files == SMALL_FILES - 1
    assert files(run) == (count, size), "a plan changes nothing"

    # the clock is ahead, and the procedure for orphans compares its limit with the real one
    operations = "rewrite-data-files,rewrite-manifests,expire-snapshots"
    done = by_operation(list(warehouse(later_h=24 * 6, operations=operations).run([table])))
    report = [
        (each.operation, each.files_before, each.files_after, each.bytes_before, each.bytes_after)
        for each in done.values()
    ]
    logging.getLogger(__name__).info("%s", report)
    assert {each.state for each in done.values()} == {"done"}
    rewritten, expired = done[Operation.REWRITE_DATA_FILES], done[Operation.EXPIRE_SNAPSHOTS]
    assert (rewritten.files_before, rewritten.bytes_before) == (count, size)
    assert (rewritten.files_after, rewritten.bytes_after) == files(run)
    assert rewritten.files_after is not None
    assert rewritten.files_after <= 2
    assert expired.files_before is not None
    assert expired.files_before > count
    assert expired.files_after == files(run)[0]
    assert run("SELECT count(*) FROM {ns}.t.snapshots") == [(1,)]
    assert catalog.load_table(table).scan().to_arrow().num_rows == 200_000
    assert run("SELECT sum(id), count(distinct text) FROM {ns}.t") == [(sum(range(200_000)), 200_000)]
    assert list(warehouse(later_h=24 * 6).run([table], only=[Operation.REWRITE_DATA_FILES])) == []


@pytest.fixture
def table(run: Sql, namespace: str) -> tuple[str, ...]:
    """Six files in six snapshots, and a delete file."""
    run(
        "CREATE TABLE {ns}.t (id BIGINT, part STRING) USING iceberg PARTITIONED BY (part) "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'lakewarden.cdc.kind' = 'mirror')"
    )
    for number in range(6):
        run("INSERT INTO {ns}.t VALUES ({number}, 'a'), (1{number}, 'a')", number=number)
    run("DELETE FROM {ns}.t WHERE id = 11")
    return (namespace, "t")


LITTLE = {"small_files": "5", "manifests": "2", "delete_files": "2"}


def test_nothing_is_due_twice_within_its_interval(warehouse: Made, table: tuple[str, ...]) -> None:
    first = list(warehouse(**LITTLE).run([table]))
    assert Operation.REWRITE_DATA_FILES in by_operation(first)
    assert list(warehouse(**LITTLE).run([table])) == []
    assert list(warehouse(later_h=2, small_files="2").run([table], only=[Operation.REWRITE_MANIFESTS])) == []


def test_a_flush_of_the_same_table_is_waited_for(
    server: DevServer, warehouse: Made, table: tuple[str, ...], run: Sql
) -> None:
    before = files(run)
    key = lock_key(UUID(server.info.warehouse.id), table)
    with psycopg.connect(server.database_url, autocommit=True) as flush:
        flush.execute("select pg_advisory_lock(%s, %s)", key)
        assert list(warehouse(**LITTLE).run([table])) == []
    assert files(run) == before
    assert list(warehouse(**LITTLE).run([table])) != []


def test_other_tables_are_left_alone_unless_a_level_enables_them(
    warehouse: Made, table: tuple[str, ...], run: Sql, namespace: str
) -> None:
    run("ALTER TABLE {ns}.t UNSET TBLPROPERTIES ('lakewarden.cdc.kind')")
    assert list(warehouse(**LITTLE).plan([table])) == []
    assert list(warehouse(**LITTLE).run([table])) == []
    run("ALTER NAMESPACE {ns} SET PROPERTIES ('lakewarden.maintenance.enabled' = 'true')")
    (planned,) = warehouse(**LITTLE).plan([table])
    assert planned.steps
    run("ALTER TABLE {ns}.t SET TBLPROPERTIES ('lakewarden.maintenance.enabled' = 'false')")
    assert list(warehouse(**LITTLE).plan([table])) == []


def test_a_wrong_property_is_reported_and_nothing_is_done(
    warehouse: Made, table: tuple[str, ...], run: Sql, namespace: str
) -> None:
    run("ALTER TABLE {ns}.t SET TBLPROPERTIES ('lakewarden.maintenance.manifests' = 'few')")
    (planned,) = warehouse().plan([table])
    assert "lakewarden.maintenance.manifests is 'few'" in planned.problem
    assert list(warehouse().run([table])) == []


def test_the_position_of_the_log_survives_an_expiration(
    spark: SparkSession, warehouse: Made, table: tuple[str, ...], run: Sql, namespace: str
) -> None:
    option = "snapshot-property.lakewarden.ingest.to-position"
    spark.sql("SELECT 70L AS id, 'a' AS part").writeTo(f"lake.{namespace}.t").option(option, "41").append()
    run("INSERT INTO {ns}.t VALUES (80, 'a')")
    list(warehouse(later_h=24 * 6, **LITTLE).run([table]))
    kept = run("SELECT summary['lakewarden.ingest.to-position'] FROM {ns}.t.snapshots ORDER BY committed_at")
    assert kept[0] == ("41",)
    assert len(kept) < 8


def test_position_deletes_and_manifests(warehouse: Made, table: tuple[str, ...], run: Sql) -> None:
    run("ALTER TABLE {ns}.t SET TBLPROPERTIES ('write.delete.granularity' = 'partition')")
    for number in (2, 3, 4):
        run("DELETE FROM {ns}.t WHERE id = 1{number}", number=number)
    operations = "rewrite-position-delete-files,rewrite-manifests"
    done = by_operation(list(warehouse(operations=operations, **LITTLE).run([table])))
    deletes, manifests = done[Operation.REWRITE_POSITION_DELETES], done[Operation.REWRITE_MANIFESTS]
    assert (deletes.files_before, deletes.files_after) == (4, 1)
    assert manifests.files_before is not None
    assert manifests.files_after is not None
    assert manifests.files_after < manifests.files_before
    assert run("SELECT id FROM {ns}.t WHERE id > 9 ORDER BY id") == [(10,), (15,)]


def test_orphan_files_are_removed_by_the_tables_own_access(warehouse: Made, table: tuple[str, ...], run: Sql) -> None:
    ((known,), *_) = run("SELECT file_path FROM {ns}.t.data_files")
    stray = Path(urlsplit(known).path).with_name("stray.parquet")
    stray.write_bytes(b"not in any snapshot")
    week_ago = time.time() - 7 * 86_400
    os.utime(stray, (week_ago, week_ago))
    rows = run("SELECT id FROM {ns}.t ORDER BY id")
    (done,) = warehouse(operations="remove-orphan-files").run([table])
    assert (done.state, done.files_before, done.files_after) == ("done", 1, 0)
    assert not stray.exists()
    assert run("SELECT id FROM {ns}.t ORDER BY id") == rows


def test_what_was_done_is_kept_and_failures_with_their_reason(
    warehouse: Made,
    ledger: Ledger,
    server: DevServer,
    table: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_arguments: object, **_options: object) -> str:
        return "CALL lake.system.no_such_procedure()"

    with monkeypatch.context() as patched:
        patched.setattr("pipeline.maintenance.procedures.statement", refused)
        failed = list(warehouse(**LITTLE).run([table], only=[Operation.REWRITE_DATA_FILES]))
    assert [each.state for each in failed] == ["failed"]
    list(warehouse(**LITTLE).run([table], only=[Operation.REWRITE_DATA_FILES], now=True))
    newest, oldest = ledger.history(UUID(server.info.warehouse.id), ".".join(table), 10)
    assert (newest["state"], newest["files_before"], newest["error"]) == ("done", 6, "")
    assert oldest["state"] == "failed"
    assert oldest["error"]


def test_all_tables_of_a_warehouse_are_found(warehouse: Made, table: tuple[str, ...], run: Sql, namespace: str) -> None:
    run("CREATE NAMESPACE {ns}.`b.c`")
    run("CREATE TABLE {ns}.`b.c`.`t``u` (id INT) USING iceberg")
    found = set(warehouse().tables())
    assert {table, (namespace, "b.c", "t`u")} <= found
    (planned,) = warehouse(enabled="true").plan([(namespace, "b.c", "t`u")])
    assert planned.problem == ""
