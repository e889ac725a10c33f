"""Prepared, binary statements on Django's own connection, for the few queries that every request makes.

The ORM compiles its SQL and has Postgres plan it anew each time: four to eight times the cost of the query itself.
Only `models` and `services` call this.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import psycopg
from django.db import connection, models

M = TypeVar("M", bound=models.Model)
Parameters = Sequence[object] | Mapping[str, object]

IN_ROW = 2000
"""Bytes: a longer value is not kept in its row."""


def fetch(statement: str, parameters: Parameters) -> list[tuple[Any, ...]]:
    """All rows. Errors are Django's (django.db.Error); the statement is part of the transaction that is open."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        return cursor.execute(statement.encode(), parameters, prepare=True, binary=True).fetchall()


def execute(statement: str, parameters: Parameters) -> None:
    """As `fetch`, for a statement that returns no rows."""
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(statement.encode(), parameters, prepare=True)


def unless_large(column: str) -> str:
    """The column's value where it is kept in the row itself, as it is; null for one that is large.

    Telling costs nothing: neither function reads or unpacks a value that is kept elsewhere.
    """
    is_small = f"pg_column_size({column}) < {IN_ROW} and pg_column_compression({column}) is null"
    return f"case when {is_small} then {column} end"


class Shape(Generic[M]):
    """All columns of a model under an alias, and the instance that their values make.

    A `narrow` column (never null) comes along only where it is small; else the instance reads it when it is asked for.
    """

    def __init__(self, model: type[M], alias: str, *, narrow: str | None = None) -> None:
        self._model = model
        fields = model._meta.concrete_fields  # noqa: SLF001 Django's documented model API
        self._names = [field.attname for field in fields]
        self._narrow = self._names.index(narrow) if narrow else None
        columns = [f"{alias}.{field.column}" for field in fields]
        if self._narrow is not None:
            columns[self._narrow] = unless_large(columns[self._narrow])
        self.columns = ", ".join(columns)

    def __len__(self) -> int:
        return len(self._names)

    def instance(self, values: Sequence[Any]) -> M:
        names = self._names
        if (at := self._narrow) is not None and values[at] is None:
            names, values = [*names[:at], *names[at + 1 :]], [*values[:at], *values[at + 1 :]]
        return self._model.from_db("default", names, values)
