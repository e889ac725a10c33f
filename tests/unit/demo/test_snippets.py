import ast
import shlex
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from demo import snippets
from demo.connection import Connection, Engine, Warehouse
from pipeline.spark.catalogs import spark_settings

CONNECTION = Connection(
    catalog_uri="http://h/catalog",
    token_endpoint="http://h/token",
    engine=Engine("engine", 'it\'s $HOME "hidden" \\', "lakewarden"),
    warehouse=Warehouse("w1", "demo", "file:///w"),
    console_uri="http://h/console",
)
STATEMENT = "SELECT 'a' AS \"b\""


def test_pyiceberg_snippet_passes_the_catalogs_own_settings() -> None:
    tree = ast.parse(snippets.pyiceberg(CONNECTION, table="nyc.flights"))
    (settings,) = [ast.literal_eval(node) for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    assert settings == CONNECTION.catalog.properties()


def test_pyspark_snippet_passes_the_sessions_settings() -> None:
    calls = ast.walk(ast.parse(snippets.pyspark(CONNECTION, statement=STATEMENT)))
    given: dict[str, Any] = {}
    statements = []
    for call in calls:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            words = [ast.literal_eval(word) for word in call.args]
            if call.func.attr == "config":
                given[words[0]] = words[1]
            elif call.func.attr == "sql":
                statements += words
    assert given.pop("spark.jars.packages").startswith("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:")
    assert given == spark_settings([CONNECTION.catalog])
    assert statements == [STATEMENT]


def test_spark_sql_snippet_survives_the_shell() -> None:
    words = shlex.split(snippets.spark_sql(CONNECTION, statement=STATEMENT).replace("\\\n", ""))
    given = dict(word.split("=", 1) for flag, word in pairwise(words) if flag == "--conf")
    assert given.items() >= spark_settings([CONNECTION.catalog]).items()
    assert words[0] == "spark-sql"
    assert words[-2:] == ["-e", STATEMENT]


def test_addresses_leave_out_what_is_not_known() -> None:
    named = dict(snippets.addresses(CONNECTION))
    assert named["console"] == "http://h/console"
    assert "management" not in named


@pytest.mark.parametrize("warehouse", ["demo", 'quo"te'])
def test_a_warehouses_name_is_quoted(warehouse: str) -> None:
    other = replace(CONNECTION, warehouse=replace(CONNECTION.warehouse, name=warehouse))
    assert ast.parse(snippets.pyiceberg(other, table="nyc.flights"))
