"""Iceberg's maintenance and migration procedures in Spark, against the catalog."""

import os
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conformance.sql import Sql


@pytest.fixture
def table(run: Sql) -> None:
    """Four small files in four snapshots, and delete files."""
    run(
        "CREATE TABLE {ns}.t (id BIGINT, part STRING) USING iceberg PARTITIONED BY (part) "
        "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    )
    for number in (1, 2, 3):
        run("INSERT INTO {ns}.t VALUES ({number}, 'a'), (1{number}, 'a')", number=number)
    run("DELETE FROM {ns}.t WHERE id = 11")


ROWS = [(1,), (2,), (3,), (12,), (13,)]


def ids(run: Sql) -> list[tuple[int]]:
    return [(number,) for (number,) in run("SELECT id FROM {ns}.t ORDER BY id")]


def file_count(run: Sql, kind: str = "data_files") -> int:
    return int(run("SELECT count(*) FROM {ns}.t.{kind}", kind=kind)[0][0])


@pytest.mark.usefixtures("table")
def test_rewriting_files_keeps_the_rows(run: Sql) -> None:
    call = "CALL lake.system.rewrite_data_files(table => '{namespace}.t', options => map('rewrite-all', 'true'))"
    assert run(call)[0][0] == 3
    assert file_count(run) == 1
    run(
        "CALL lake.system.rewrite_position_delete_files(table => '{namespace}.t', options => map('rewrite-all', 'true'))"
    )
    run("CALL lake.system.rewrite_manifests('{namespace}.t')")
    assert ids(run) == ROWS


@pytest.mark.usefixtures("table")
def test_sorted_rewrite_keeps_the_rows(run: Sql) -> None:
    run(
        "CALL lake.system.rewrite_data_files(table => '{namespace}.t', strategy => 'sort', "
        "sort_order => 'zorder(id, part)', options => map('rewrite-all', 'true'))"
    )
    assert ids(run) == ROWS


@pytest.mark.usefixtures("table")
def test_expired_snapshots_go_with_their_files(run: Sql) -> None:
    run("CALL lake.system.rewrite_data_files(table => '{namespace}.t', options => map('rewrite-all', 'true'))")
    before = {Path(urlsplit(path).path) for (path,) in run("SELECT file_path FROM {ns}.t.all_data_files")}
    run(
        "CALL lake.system.expire_snapshots(table => '{namespace}.t', older_than => TIMESTAMP '2100-01-01 00:00:00', "
        "retain_last => 1)"
    )
    assert run("SELECT count(*) FROM {ns}.t.snapshots") == [(1,)]
    assert sum(path.exists() for path in before) == 1
    assert ids(run) == ROWS


@pytest.mark.usefixtures("table")
def test_orphan_files_are_found_and_nothing_else(run: Sql) -> None:
    ((known,), *_) = run("SELECT file_path FROM {ns}.t.data_files")
    stray = Path(urlsplit(known).path).with_name("stray.parquet")
    stray.write_bytes(b"nobody knows me")
    week_ago = time.time() - 7 * 86_400
    for file in stray.parents[2].rglob("*.*"):  # younger ones are left alone
        os.utime(file, (week_ago, week_ago))
    found = run("CALL lake.system.remove_orphan_files(table => '{namespace}.t')")
    assert [Path(urlsplit(path).path) for (path,) in found] == [stray]
    assert not stray.exists()
    assert ids(run) == ROWS


@pytest.mark.usefixtures("table")
def test_a_dropped_table_is_registered_again(run: Sql) -> None:
    log = run("SELECT file FROM {ns}.t.metadata_log_entries ORDER BY timestamp")
    run("DROP TABLE {ns}.t")
    run("CALL lake.system.register_table(table => '{namespace}.t', metadata_file => '{last}')", last=log[-1][0])
    assert ids(run) == ROWS
    assert run("SELECT file FROM {ns}.t.metadata_log_entries ORDER BY timestamp") == log


@pytest.mark.usefixtures("table")
def test_drop_purge_removes_the_files(run: Sql) -> None:
    files = [Path(urlsplit(path).path) for (path,) in run("SELECT file_path FROM {ns}.t.files")]
    assert all(path.is_file() for path in files)
    run("DROP TABLE {ns}.t PURGE")
    assert run("SHOW TABLES IN {ns}") == []
    assert not any(path.exists() for path in files)


@pytest.mark.usefixtures("table")
def test_changes_between_snapshots_are_told(run: Sql) -> None:
    run("DROP TABLE {ns}.t")
    run("CREATE TABLE {ns}.t (id BIGINT, name STRING) USING iceberg")
    run("INSERT INTO {ns}.t VALUES (1, 'a'), (2, 'b')")
    run("UPDATE {ns}.t SET name = 'c' WHERE id = 1")
    run(
        "CALL lake.system.create_changelog_view(table => '{namespace}.t', changelog_view => 'changes', "
        "identifier_columns => array('id'))"
    )
    assert run("SELECT id, name, _change_type FROM changes ORDER BY _change_ordinal, id, name") == [
        (1, "a", "INSERT"),
        (2, "b", "INSERT"),
        (1, "a", "UPDATE_BEFORE"),
        (1, "c", "UPDATE_AFTER"),
    ]
    run("DROP VIEW changes")


@pytest.mark.usefixtures("table")
def test_statistics_are_computed_and_kept(run: Sql) -> None:
    ((written,),) = run("CALL lake.system.compute_table_stats('{namespace}.t')")
    assert Path(urlsplit(written).path).is_file()
    ((partitions,),) = run("CALL lake.system.compute_partition_stats('{namespace}.t')")
    assert Path(urlsplit(partitions).path).is_file()
    assert ids(run) == ROWS
