"""Views in Spark's SQL, kept by the catalog."""

import pytest
from pyspark.errors import AnalysisException

from tests.conformance.sql import Sql


@pytest.fixture
def view(run: Sql) -> None:
    run("CREATE TABLE {ns}.t (id BIGINT, name STRING) USING iceberg")
    run("INSERT INTO {ns}.t VALUES (1, 'a'), (2, 'b')")
    run(
        "CREATE VIEW {ns}.v (key COMMENT 'the id', name) COMMENT 'told' TBLPROPERTIES ('p' = '1') AS SELECT * FROM {ns}.t"
    )


@pytest.mark.usefixtures("view")
def test_a_view_is_read_listed_and_described(run: Sql) -> None:
    assert run("SELECT key, name FROM {ns}.v ORDER BY key") == [(1, "a"), (2, "b")]
    assert [row[1] for row in run("SHOW VIEWS IN {ns}")] == ["v"]
    assert run("DESCRIBE TABLE {ns}.v")[0] == ("key", "bigint", "the id")
    assert run.mapping("SHOW TBLPROPERTIES {ns}.v")["p"] == "1"
    assert "told" in run("SHOW CREATE TABLE {ns}.v")[0][0]


@pytest.mark.usefixtures("view")
def test_a_replaced_view_answers_by_its_new_text(run: Sql) -> None:
    run("CREATE OR REPLACE VIEW {ns}.v AS SELECT count(*) AS n FROM {ns}.t")
    assert run("SELECT * FROM {ns}.v") == [(2,)]
    run("ALTER VIEW {ns}.v SET TBLPROPERTIES ('q' = '2')")
    run("ALTER VIEW {ns}.v UNSET TBLPROPERTIES ('q')")
    assert "q" not in run.mapping("SHOW TBLPROPERTIES {ns}.v")


@pytest.mark.usefixtures("view")
def test_a_view_is_renamed_and_dropped(run: Sql) -> None:
    run("ALTER VIEW {ns}.v RENAME TO {namespace}.w")
    assert run("SELECT count(*) FROM {ns}.w") == [(2,)]
    run("DROP VIEW {ns}.w")
    assert run("SHOW VIEWS IN {ns}") == []
    run("DROP VIEW IF EXISTS {ns}.w")


@pytest.mark.usefixtures("view")
def test_tables_and_views_share_their_names(run: Sql) -> None:
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        run("CREATE VIEW {ns}.t AS SELECT 1 AS one")
    with pytest.raises(AnalysisException, match=r"ALREADY_EXISTS|already exists"):
        run("CREATE TABLE {ns}.v (id INT) USING iceberg")
