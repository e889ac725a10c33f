"""Statements of the event loop that are too long for the driver to remember how their parameters are to be written."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from lakewarden.hot.sessions import fetch
from lakewarden.postgres.bounded import AsyncBounded

_NAMED: Final = re.compile(r"%\((\w+)\)s")
_TEXT: Final = 0
_BINARY: Final = 1


class Statement:
    """A prepared statement with parameters named as `%(name)s`, which are numbered once.

    They are texts, bytes, booleans and moments; their types are those that the statement gives them.
    """

    def __init__(self, text: str) -> None:
        self._names = list(dict.fromkeys(_NAMED.findall(text)))
        numbers = {name: f"${number}" for number, name in enumerate(self._names, start=1)}
        self._text = _NAMED.sub(lambda found: numbers[found[1]], text).encode()

    async def fetch_one(self, connection: AsyncBounded, parameters: Mapping[str, object]) -> tuple[Any, ...]:
        """Its only row. Raises psycopg.Error."""
        values = [parameters[name] for name in self._names]
        formats = [_BINARY if isinstance(value, bytes) else _TEXT for value in values]
        (row,) = await fetch(connection, self._text, [_sent(value) for value in values], formats)
        return row


def _sent(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return b"t" if value else b"f"
    assert isinstance(value, datetime)  # noqa: S101 a further type is to be added here
    return value.isoformat().encode()
