"""Writing rows in Spark's SQL: merge, update, delete, overwrite, by copy and by delete files."""

import pytest

from tests.conformance.sql import Sql

MODES = ("copy-on-write", "merge-on-read")
ALL = "SELECT * FROM {ns}.t ORDER BY id"


def create(run: Sql, mode: str, *, version: int = 2) -> None:
    modes = ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in ("delete", "update", "merge"))
    run(
        "CREATE TABLE {ns}.t (id BIGINT, part STRING, n INT) USING iceberg PARTITIONED BY (part) "
        "TBLPROPERTIES ('format-version' = '{version}', {modes})",
        version=version,
        modes=modes,
    )
    run("INSERT INTO {ns}.t VALUES (1, 'a', 10), (2, 'a', 20), (3, 'b', 30), (4, 'b', 40)")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", MODES)
def test_merge_updates_deletes_and_inserts_at_once(run: Sql, mode: str, version: int) -> None:
    create(run, mode, version=version)
    run("""
        MERGE INTO {ns}.t USING (SELECT * FROM VALUES (1, 'a', 0), (3, 'b', 0), (5, 'c', 50) AS v (id, part, n)) AS s ON t.id = s.id
        WHEN MATCHED AND s.id = 1 THEN DELETE
        WHEN MATCHED THEN UPDATE SET n = t.n + 1
        WHEN NOT MATCHED THEN INSERT (id, part, n) VALUES (s.id, s.part, s.n + 0)
        WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN UPDATE SET part = 'z'
    """)
    assert run(ALL) == [(2, "a", 20), (3, "b", 31), (4, "z", 40), (5, "c", 50)]


@pytest.mark.parametrize("mode", MODES)
def test_update_and_delete_reach_the_rows_they_name(run: Sql, mode: str) -> None:
    create(run, mode)
    run("UPDATE {ns}.t SET n = -n WHERE id IN (1, 4)")
    run("DELETE FROM {ns}.t WHERE id = 2")
    run("DELETE FROM {ns}.t WHERE part = 'b' AND n > 0")
    assert run(ALL) == [(1, "a", -10), (4, "b", -40)]
    delete_files = run("SELECT count(*) FROM {ns}.t.delete_files")[0][0]
    assert (delete_files > 0) == (mode == "merge-on-read")


def test_overwrite_replaces_the_partition_that_is_written(run: Sql) -> None:
    create(run, "copy-on-write")
    run("INSERT OVERWRITE {ns}.t PARTITION (part = 'a') SELECT 9L, 90")
    assert run(ALL) == [(3, "b", 30), (4, "b", 40), (9, "a", 90)]
    run("INSERT OVERWRITE {ns}.t VALUES (7, 'q', 70)")
    assert run(ALL) == [(7, "q", 70)]


def test_create_table_as_select_and_its_replacement(run: Sql) -> None:
    create(run, "copy-on-write")
    run("CREATE TABLE {ns}.copy USING iceberg PARTITIONED BY (part) AS SELECT * FROM {ns}.t")
    assert run("SELECT count(*), sum(n) FROM {ns}.copy") == [(4, 100)]
    run("CREATE OR REPLACE TABLE {ns}.copy USING iceberg AS SELECT id, n * 2L AS twice FROM {ns}.t WHERE id < 3")
    assert run("SELECT * FROM {ns}.copy ORDER BY id") == [(1, 20), (2, 40)]
    assert len(run("SELECT * FROM {ns}.copy.snapshots")) == 2, "a replaced table keeps its history"
    run("REPLACE TABLE {ns}.copy (only STRING) USING iceberg")
    assert run("SELECT * FROM {ns}.copy") == []


def test_every_type_comes_back_as_it_was_written(run: Sql) -> None:
    run("""
        CREATE TABLE {ns}.types USING iceberg AS SELECT
          true AS truth, 9223372036854775807L AS large, CAST(1.5 AS FLOAT) AS single, -0.0D AS double,
          CAST('12345678901234567890123456789.123456789' AS DECIMAL(38, 9)) AS exact,
          DATE '1582-10-15' AS day, TIMESTAMP '1900-01-01 00:00:00.000001' AS instant,
          TIMESTAMP_NTZ '2026-11-21 12:00:00' AS local, 'Käse' AS text, X'00FF' AS bytes,
          array('a', NULL) AS list, map('k', named_struct('x', 1)) AS by_key
    """)
    assert run("""
        SELECT truth, large, single, CAST(exact AS STRING), CAST(day AS STRING), CAST(instant AS STRING),
          CAST(local AS STRING), text, hex(bytes), list, by_key['k'].x FROM {ns}.types
    """) == [
        (
            True,
            2**63 - 1,
            1.5,
            "12345678901234567890123456789.123456789",
            "1582-10-15",
            "1900-01-01 00:00:00.000001",
            "2026-11-21 12:00:00",
            "Käse",
            "00FF",
            ["a", None],
            1,
        )
    ]
