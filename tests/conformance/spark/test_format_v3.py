"""What format version 3 brings, in Spark's SQL: deletion vectors, row lineage, variants, nanoseconds' neighbours."""

import pytest

from tests.conformance.sql import Sql

V3 = "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"


@pytest.fixture
def table(run: Sql) -> None:
    run("CREATE TABLE {ns}.t (id BIGINT, name STRING) USING iceberg {V3}", V3=V3)
    run("INSERT INTO {ns}.t SELECT id, CAST(id AS STRING) FROM range(0, 4, 1, 1)")


def lineage(run: Sql) -> list[tuple[int, int, int]]:
    return [(a, b, c) for a, b, c in run("SELECT id, _row_id, _last_updated_sequence_number FROM {ns}.t ORDER BY id")]


@pytest.mark.usefixtures("table")
def test_deleted_rows_are_held_in_deletion_vectors(run: Sql) -> None:
    run("DELETE FROM {ns}.t WHERE id = 1")
    run("DELETE FROM {ns}.t WHERE id = 2")
    assert run("SELECT id FROM {ns}.t ORDER BY id") == [(0,), (3,)]
    assert run("SELECT file_format, record_count FROM {ns}.t.delete_files") == [("PUFFIN", 2)]


@pytest.mark.usefixtures("table")
def test_a_row_keeps_its_id_when_it_is_updated(run: Sql) -> None:
    assert lineage(run) == [(0, 0, 1), (1, 1, 1), (2, 2, 1), (3, 3, 1)]
    run("UPDATE {ns}.t SET name = 'new' WHERE id = 2")
    assert lineage(run) == [(0, 0, 1), (1, 1, 1), (2, 2, 2), (3, 3, 1)]
    run("INSERT INTO {ns}.t VALUES (9, 'nine')")
    (*_, (key, row_id, sequence)) = lineage(run)
    assert (key, sequence) == (9, 3)
    assert row_id > 3


@pytest.mark.usefixtures("table")
def test_rewriting_keeps_row_ids(run: Sql) -> None:
    run("DELETE FROM {ns}.t WHERE id = 0")
    before = lineage(run)
    run("CALL lake.system.rewrite_data_files(table => '{namespace}.t', options => map('rewrite-all', 'true'))")
    assert lineage(run) == before


def test_variants_are_written_read_and_deleted_by(run: Sql) -> None:
    run("CREATE TABLE {ns}.v (id INT, data VARIANT) USING iceberg {V3}", V3=V3)
    run(
        """INSERT INTO {ns}.v SELECT 1, parse_json('{"a": [1, {"b": "x"}]}') UNION ALL SELECT 2, parse_json('"text"')"""
    )
    assert run("SELECT id, variant_get(data, '$.a[1].b', 'string') FROM {ns}.v ORDER BY id") == [(1, "x"), (2, None)]
    run("DELETE FROM {ns}.v WHERE id = 1")
    assert run("SELECT to_json(data) FROM {ns}.v") == [('"text"',)]
    assert ("data", "variant") in [row[:2] for row in run("DESCRIBE TABLE {ns}.v")]


@pytest.mark.usefixtures("table")
def test_lineage_starts_when_a_table_is_upgraded(run: Sql) -> None:
    run("DROP TABLE {ns}.t")
    run("CREATE TABLE {ns}.t (id BIGINT) USING iceberg TBLPROPERTIES ('format-version' = '2')")
    run("INSERT INTO {ns}.t VALUES (1)")
    run("ALTER TABLE {ns}.t SET TBLPROPERTIES ('format-version' = '3')")
    run("INSERT INTO {ns}.t VALUES (2)")
    numbers = [row_id for _, row_id, _ in lineage(run)]
    assert None not in numbers
    assert len(set(numbers)) == 2
