"""Counts the queries of a request: those that requests share on the event loop, and those of Django."""

from typing import Any

import psycopg
import pytest

from lakewarden.hot import coalescer
from lakewarden.hot.sessions import Row


class Counted:
    """Queries of both kinds since the last look."""

    def __init__(self) -> None:
        self.shared = 0
        self.django = 0

    def take(self) -> tuple[int, int]:
        found = (self.shared, self.django)
        self.shared = self.django = 0
        return found


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted()
    query, execute = coalescer.Coalescer._query, psycopg.Cursor.execute

    async def counting(self: coalescer.Coalescer, columns: list[list[object]], **options: bool) -> list[Row]:
        counted.shared += 1
        return await query(self, columns, **options)

    def executing(self: psycopg.Cursor[Any], *arguments: Any, **named: Any) -> Any:
        counted.django += 1
        return execute(self, *arguments, **named)

    monkeypatch.setattr(coalescer.Coalescer, "_query", counting)
    monkeypatch.setattr(psycopg.Cursor, "execute", executing)
    return counted
