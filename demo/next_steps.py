"""Prints what to try after the demo: addresses to open, and snippets with the same settings."""

from demo import snippets
from demo.connection import Connection
from demo.report import Report


def say(connection: Connection, report: Report, *, table: str) -> None:
    """`table` is `namespace.table`, the one that the snippets read."""
    statement = f"SELECT origin, count(*) AS flights FROM {table} GROUP BY origin"  # noqa: S608  our own name
    report.heading("Open")
    for what, address in snippets.addresses(connection):
        report.say(f"    {what.ljust(16)}{address}")
    for title, snippet in (
        ("Python: PyIceberg", snippets.pyiceberg(connection, table=table)),
        ("Python: PySpark", snippets.pyspark(connection, statement=statement)),
        (
            "Shell: spark-sql (without Java: `lakewarden spark-sql`)",
            snippets.spark_sql(connection, statement=statement),
        ),
    ):
        report.heading(title)
        report.say(snippet.rstrip())
