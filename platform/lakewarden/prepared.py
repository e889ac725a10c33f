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


class Shape(Generic[M]):
    """All columns of a model under an alias, and the instance that their values make."""

    def __init__(self, model: type[M], alias: str) -> None:
        self._model = model
        fields = model._meta.concrete_fields  # noqa: SLF001 Django's documented model API
        self._names = [field.attname for field in fields]
        self.columns = ", ".join(f"{alias}.{field.column}" for field in fields)

    def __len__(self) -> int:
        return len(self._names)

    def instance(self, values: Sequence[Any]) -> M:
        return self._model.from_db("default", self._names, values)
