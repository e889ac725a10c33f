"""Branches, tags, write-audit-publish, time travel and metadata tables in Spark's SQL."""

import pytest
from pyspark.sql import SparkSession

from tests.conformance.sql import Sql


@pytest.fixture
def table(run: Sql) -> None:
    """Two snapshots: 1; 1, 2."""
    run("CREATE TABLE {ns}.t (id BIGINT) USING iceberg")
    run("INSERT INTO {ns}.t VALUES (1)")
    run("INSERT INTO {ns}.t VALUES (2)")


def ids(run: Sql, what: str = "{ns}.t") -> list[int]:
    return [number for (number,) in run("SELECT id FROM {what} ORDER BY id", what=what)]


def snapshots(run: Sql) -> list[int]:
    return [number for (number,) in run("SELECT snapshot_id FROM {ns}.t.snapshots ORDER BY committed_at")]


@pytest.mark.usefixtures("table")
def test_branches_and_tags_with_retention(run: Sql) -> None:
    first, second = snapshots(run)
    run("ALTER TABLE {ns}.t CREATE TAG v1 AS OF VERSION {first} RETAIN 7 DAYS", first=first)
    run("ALTER TABLE {ns}.t CREATE BRANCH dev RETAIN 1 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 DAYS")
    refs = run(
        "SELECT name, type, snapshot_id, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms "
        "FROM {ns}.t.refs ORDER BY name"
    )
    day = 86_400_000
    assert refs == [
        ("dev", "BRANCH", second, day, 2, 3 * day),
        ("main", "BRANCH", second, None, None, None),
        ("v1", "TAG", first, 7 * day, None, None),
    ]
    run("ALTER TABLE {ns}.t REPLACE TAG v1 AS OF VERSION {second}", second=second)
    run("ALTER TABLE {ns}.t DROP TAG v1")
    run("ALTER TABLE {ns}.t DROP BRANCH dev")
    assert [name for (name,) in run("SELECT name FROM {ns}.t.refs")] == ["main"]


@pytest.mark.usefixtures("table")
def test_a_branch_is_written_read_and_fast_forwarded(run: Sql) -> None:
    run("ALTER TABLE {ns}.t CREATE BRANCH dev")
    run("INSERT INTO {ns}.t.branch_dev VALUES (3)")
    run("DELETE FROM {ns}.t.branch_dev WHERE id = 1")
    assert ids(run) == [1, 2]
    assert ids(run, "{ns}.t VERSION AS OF 'dev'") == [2, 3]
    run("CALL lake.system.fast_forward('{namespace}.t', 'main', 'dev')")
    assert ids(run) == [2, 3]


@pytest.mark.usefixtures("table")
def test_time_travel_by_version_and_by_time(run: Sql) -> None:
    first, _ = snapshots(run)
    when = run("SELECT CAST(committed_at AS STRING) FROM {ns}.t.snapshots WHERE snapshot_id = {first}", first=first)[0][
        0
    ]
    assert ids(run, f"{{ns}}.t VERSION AS OF {first}") == [1]
    assert ids(run, f"{{ns}}.t TIMESTAMP AS OF '{when}'") == [1]


@pytest.mark.usefixtures("table")
def test_audited_rows_are_published_by_cherry_pick(run: Sql, spark: SparkSession) -> None:
    run("ALTER TABLE {ns}.t SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark.conf.set("spark.wap.id", "audit-1")
    try:
        run("INSERT INTO {ns}.t VALUES (3)")
    finally:
        spark.conf.unset("spark.wap.id")
    assert ids(run) == [1, 2]
    ((staged,),) = run("SELECT snapshot_id FROM {ns}.t.snapshots WHERE summary['wap.id'] = 'audit-1'")
    run("CALL lake.system.cherrypick_snapshot('{namespace}.t', {staged})", staged=staged)
    assert ids(run) == [1, 2, 3]


@pytest.mark.usefixtures("table")
def test_audited_rows_are_published_from_a_branch(run: Sql, spark: SparkSession) -> None:
    run("ALTER TABLE {ns}.t SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    run("ALTER TABLE {ns}.t CREATE BRANCH audit")
    spark.conf.set("spark.wap.branch", "audit")
    try:
        run("INSERT INTO {ns}.t VALUES (3)")
        assert ids(run) == [1, 2, 3]
    finally:
        spark.conf.unset("spark.wap.branch")
    assert ids(run) == [1, 2]
    run("CALL lake.system.fast_forward('{namespace}.t', 'main', 'audit')")
    assert ids(run) == [1, 2, 3]


@pytest.mark.usefixtures("table")
def test_rollback_and_set_current_snapshot(run: Sql) -> None:
    first, second = snapshots(run)
    run("CALL lake.system.rollback_to_snapshot('{namespace}.t', {first})", first=first)
    assert ids(run) == [1]
    run("CALL lake.system.set_current_snapshot('{namespace}.t', {second})", second=second)
    assert ids(run) == [1, 2]
    history = run("SELECT snapshot_id, is_current_ancestor FROM {ns}.t.history ORDER BY made_current_at")
    assert history == [(first, True), (second, True), (first, True), (second, True)]


@pytest.mark.usefixtures("table")
def test_metadata_tables_can_be_read(run: Sql) -> None:
    counts = {
        name: run("SELECT count(*) FROM {ns}.t.{name}", name=name)[0][0]
        for name in ("snapshots", "history", "files", "manifests", "entries", "partitions", "refs", "all_data_files")
    }
    assert counts == {
        "snapshots": 2,
        "history": 2,
        "files": 2,
        "manifests": 2,
        "entries": 2,
        "partitions": 1,
        "refs": 1,
        "all_data_files": 2,
    }
    assert run("SELECT count(*) FROM {ns}.t.metadata_log_entries") == [(3,)]
    assert run("SELECT operation, summary['added-records'] FROM {ns}.t.snapshots") == [("append", "1")] * 2
