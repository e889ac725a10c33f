"""Rows, evolution, snapshots and maintenance of tables in Trino."""

import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.conformance.sql import Sql

ALL = "SELECT * FROM {ns}.t ORDER BY id"


@pytest.fixture
def table(run: Sql) -> None:
    run("CREATE TABLE {ns}.t (id bigint, part varchar, n integer) WITH (partitioning = ARRAY['part'])")
    run("INSERT INTO {ns}.t VALUES (1, 'a', 10), (2, 'a', 20), (3, 'b', 30), (4, 'b', 40)")


def snapshots(run: Sql) -> list[int]:
    return [number for (number,) in run('SELECT snapshot_id FROM {ns}."t$snapshots" ORDER BY committed_at')]


def test_create_table_as_select_and_its_replacement(run: Sql) -> None:
    run("CREATE TABLE {ns}.t WITH (format = 'ORC', sorted_by = ARRAY['id']) AS SELECT 1 AS id, 'a' AS name")
    assert run(ALL) == [(1, "a")]
    run("CREATE OR REPLACE TABLE {ns}.t AS SELECT 2 AS id")
    assert run(ALL) == [(2,)]
    assert len(snapshots(run)) >= 2, "a replaced table keeps its history"
    run("CREATE TABLE {ns}.empty AS SELECT * FROM {ns}.t WITH NO DATA")
    assert run("SELECT count(*) FROM {ns}.empty") == [(0,)]


@pytest.mark.usefixtures("table")
def test_rows_are_updated_deleted_and_merged(run: Sql) -> None:
    run("UPDATE {ns}.t SET n = -n WHERE id = 1")
    run("DELETE FROM {ns}.t WHERE id = 2")
    run("DELETE FROM {ns}.t WHERE part = 'b' AND n = 30")
    assert run(ALL) == [(1, "a", -10), (4, "b", 40)]
    run("""
        MERGE INTO {ns}.t USING (VALUES (1, 'a', 0), (4, 'z', 0), (5, 'c', 50)) AS s (id, part, n) ON t.id = s.id
        WHEN MATCHED AND s.id = 1 THEN DELETE
        WHEN MATCHED THEN UPDATE SET n = t.n + 1, part = s.part
        WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.part, s.n)
    """)
    assert run(ALL) == [(4, "z", 41), (5, "c", 50)]
    run("TRUNCATE TABLE {ns}.t")
    assert run(ALL) == []


@pytest.mark.usefixtures("table")
def test_columns_are_added_renamed_widened_and_dropped(run: Sql) -> None:
    run("ALTER TABLE {ns}.t ADD COLUMN extra row(x integer)")
    run("ALTER TABLE {ns}.t ADD COLUMN extra.y varchar")
    run("ALTER TABLE {ns}.t RENAME COLUMN part TO title")
    run("ALTER TABLE {ns}.t ALTER COLUMN n SET DATA TYPE bigint")
    run("COMMENT ON COLUMN {ns}.t.id IS 'the key'")
    run("COMMENT ON TABLE {ns}.t IS 'told'")
    described = [("id", "bigint", "the key"), ("title", "varchar", ""), ("n", "bigint", "")]
    assert [(name, kind, comment) for name, kind, _, comment in run("DESCRIBE {ns}.t")] == [
        *described,
        ("extra", "row(x integer, y varchar)", ""),
    ]
    run("ALTER TABLE {ns}.t DROP COLUMN n")
    assert run(ALL)[0] == (1, "a", None)
    assert "told" in run("SHOW CREATE TABLE {ns}.t")[0][0]


@pytest.mark.usefixtures("table")
def test_partitioning_and_sorting_evolve(run: Sql) -> None:
    run("ALTER TABLE {ns}.t SET PROPERTIES partitioning = ARRAY['bucket(id, 4)', 'truncate(part, 1)']")
    run("ALTER TABLE {ns}.t SET PROPERTIES sorted_by = ARRAY['n DESC']")
    run("INSERT INTO {ns}.t VALUES (5, 'c', 50)")
    told = run("SHOW CREATE TABLE {ns}.t")[0][0]
    assert "partitioning = ARRAY['bucket(id, 4)','truncate(part, 1)']" in told
    assert "sorted_by = ARRAY['n DESC NULLS LAST']" in told
    assert run("SELECT count(*), sum(n) FROM {ns}.t") == [(5, 150)]


@pytest.mark.usefixtures("table")
def test_time_travel_and_rollback(run: Sql, catalog: RestCatalog, namespace: str) -> None:
    before = snapshots(run)[-1]
    run("DELETE FROM {ns}.t WHERE id > 1")
    assert run("SELECT count(*) FROM {ns}.t FOR VERSION AS OF {before}", before=before) == [(4,)]
    when = run(
        'SELECT CAST(committed_at AS varchar) FROM {ns}."t$snapshots" WHERE snapshot_id = {before}', before=before
    )[0][0]
    assert run("SELECT count(*) FROM {ns}.t FOR TIMESTAMP AS OF TIMESTAMP '{when}'", when=when) == [(4,)]
    run("ALTER TABLE {ns}.t EXECUTE rollback_to_snapshot({before})", before=before)
    assert run("SELECT count(*) FROM {ns}.t") == [(4,)]
    assert catalog.load_table((namespace, "t")).history()[-1].snapshot_id == before


@pytest.mark.usefixtures("table")
def test_optimize_expire_and_analyze_keep_the_rows(run: Sql) -> None:
    run("INSERT INTO {ns}.t VALUES (5, 'a', 50)")
    run("DELETE FROM {ns}.t WHERE id = 1")
    run("ANALYZE {ns}.t")
    assert ("id", 4.0) in [(row[0], row[2]) for row in run("SHOW STATS FOR {ns}.t")]
    run("ALTER TABLE {ns}.t EXECUTE optimize")
    run("ALTER TABLE {ns}.t EXECUTE optimize_manifests")
    run("ALTER TABLE {ns}.t EXECUTE expire_snapshots(retention_threshold => '0s')")
    run("ALTER TABLE {ns}.t EXECUTE remove_orphan_files(retention_threshold => '0s')")
    assert len(snapshots(run)) == 1
    assert run(ALL) == [(2, "a", 20), (3, "b", 30), (4, "b", 40), (5, "a", 50)]
    assert run('SELECT count(*) FROM {ns}."t$files" WHERE content <> 0') == [(0,)]


@pytest.mark.usefixtures("table")
def test_metadata_tables_can_be_read(run: Sql) -> None:
    counts = {
        name: run('SELECT count(*) FROM {ns}."t${name}"', name=name)[0][0]
        for name in ("files", "manifests", "partitions")
    }
    assert counts == {"files": 2, "manifests": 1, "partitions": 2}
    assert run('SELECT name, type FROM {ns}."t$refs"') == [("main", "BRANCH")]
    log = run('SELECT file, latest_sequence_number FROM {ns}."t$metadata_log_entries"')
    assert len(log) == 3, "created, its empty snapshot, one insert"


@pytest.mark.usefixtures("table")
def test_a_table_is_unregistered_and_registered_again(run: Sql) -> None:
    location = run("SHOW CREATE TABLE {ns}.t")[0][0].partition("location = '")[2].partition("'")[0]
    log = run('SELECT file FROM {ns}."t$metadata_log_entries" ORDER BY timestamp')
    rows = run(ALL)
    run("CALL lake.system.unregister_table('{namespace}', 't')")
    assert run("SHOW TABLES FROM {ns}") == []
    # with the file's name: the file that Trino finds by itself it gives an address of its own file system
    name = log[-1][0].rpartition("/")[2]
    run("CALL lake.system.register_table('{namespace}', 't', '{location}', '{name}')", location=location, name=name)
    assert run(ALL) == rows


def test_every_type_comes_back_as_it_was_written(run: Sql) -> None:
    run("""
        CREATE TABLE {ns}.types AS SELECT
          true AS truth, 9223372036854775807 AS large, REAL '1.5' AS single, -DOUBLE '0.0' AS "double",
          DECIMAL '12345678901234567890123456789.123456789' AS exact, DATE '1582-10-15' AS day,
          TIME '23:59:59.999999' AS clock, TIMESTAMP '1900-01-01 00:00:00.000001' AS local,
          TIMESTAMP '2026-11-21 12:00:00.000000 UTC' AS instant, VARCHAR 'Käse' AS text, X'00FF' AS bytes,
          UUID 'f79c3e09-677c-4bbd-a479-3f349cb785e7' AS uuid, ARRAY[VARCHAR 'a', NULL] AS list,
          MAP(ARRAY[VARCHAR 'k'], ARRAY[CAST(ROW(1) AS row(x integer))]) AS by_key
    """)
    assert run("""
        SELECT truth, large, single, exact, CAST(day AS varchar), CAST(clock AS varchar), CAST(local AS varchar),
          CAST(instant AS varchar), text, to_hex(bytes), uuid, list, by_key['k'].x FROM {ns}.types
    """) == [
        (
            True,
            2**63 - 1,
            1.5,
            "12345678901234567890123456789.123456789",
            "1582-10-15",
            "23:59:59.999999",
            "1900-01-01 00:00:00.000001",
            "2026-11-21 12:00:00.000000 UTC",
            "Käse",
            "00FF",
            "f79c3e09-677c-4bbd-a479-3f349cb785e7",
            ["a", None],
            1,
        )
    ]
