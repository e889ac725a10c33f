"""Statements of the event loop that are too long for the driver to remember how their parameters are to be written."""

import re
from collections.abc import Mapping
from typing import Any, Final

import psycopg

_NAMED: Final = re.compile(r"%\((\w+)\)s")


class Statement:
    """A prepared statement with parameters named as `%(name)s`, which are numbered once."""

    def __init__(self, text: str) -> None:
        self._names = list(dict.fromkeys(_NAMED.findall(text)))
        numbers = {name: f"${number}" for number, name in enumerate(self._names, start=1)}
        self._text = _NAMED.sub(lambda found: numbers[found[1]], text).encode()

    async def fetch_one(
        self, connection: psycopg.AsyncConnection[Any], parameters: Mapping[str, object]
    ) -> tuple[Any, ...]:
        """Its only row. Raises psycopg.Error."""
        async with psycopg.AsyncRawCursor(connection) as cursor:
            values = [parameters[name] for name in self._names]
            await cursor.execute(self._text, values, prepare=True, binary=True)
            row: tuple[Any, ...] | None = await cursor.fetchone()
        assert row is not None  # noqa: S101 a select of values
        return row
