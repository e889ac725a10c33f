"""Ready-to-paste ways into the demo's warehouse, with this server's addresses and credentials filled in."""

import shlex

from demo.connection import Connection
from pipeline.spark.artifacts import artifacts
from pipeline.spark.catalogs import local_settings, spark_settings
from pipeline.spark.jars import CATALOG_JARS

_SHELL_SETTINGS = ("spark.sql.catalogImplementation",)


def addresses(connection: Connection) -> list[tuple[str, str]]:
    """What to open or to configure, as (what, address)."""
    known = (
        ("console", connection.console_uri),
        ("catalog", connection.catalog_uri),
        ("management", connection.management_uri),
        ("token endpoint", connection.token_endpoint),
        ("warehouse", connection.warehouse.name),
        ("files", connection.warehouse.location),
    )
    return [(what, address) for what, address in known if address]


def pyiceberg(connection: Connection, *, table: str) -> str:
    """A script that loads `table` (`namespace.table`) and shows five of its rows."""
    catalog = connection.catalog
    lines = "".join(f"    {_quoted(key)}: {_quoted(value)},\n" for key, value in catalog.properties().items())
    return (
        "from pyiceberg.catalog import load_catalog\n\n"
        f"{catalog.name} = load_catalog({_quoted(catalog.name)}, **{{\n{lines}}})\n"
        f"table = {catalog.name}.load_table({_quoted(table)})\n"
        "print(table.scan(limit=5).to_arrow().to_pylist())\n"
    )


def spark_sql(connection: Connection, *, statement: str) -> str:
    """A shell command: Spark's own `spark-sql`, which needs Java 17 or 21 on PATH."""
    settings = spark_settings([connection.catalog])
    settings |= {key: local_settings()[key] for key in _SHELL_SETTINGS}
    lines = [f"spark-sql --packages {_packages()}"]
    lines += [f"  --conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items()]
    return " \\\n".join([*lines, f"  -e {shlex.quote(statement)}"]) + "\n"


def pyspark(connection: Connection, *, statement: str) -> str:
    """A script for plain PySpark, with the jar fetched by Spark itself."""
    settings = {"spark.jars.packages": _packages(), **spark_settings([connection.catalog])}
    lines = "".join(f"    .config({_quoted(key)}, {_quoted(value)})\n" for key, value in settings.items())
    return (
        "from pyspark.sql import SparkSession\n\n"
        f"spark = (\n    SparkSession.builder\n{lines}    .getOrCreate()\n)\n"
        f"spark.sql({_quoted(statement)}).show()\n"
    )


def _packages() -> str:
    return ",".join(artifacts()[name].coordinates for name in CATALOG_JARS)


def _quoted(text: str) -> str:
    """A Python string in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
