"""Batches for the log, made without the gateway."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar
from uuid import UUID
from zlib import crc32

from django.db import connection

from ingest.services.log import Batch
from lakewarden.hot import connections

T = TypeVar("T")

TABLES = '[{"table":"users","namespace":["default"],"name":"users","id":null}]'
ROOMY = 1 << 40


def run(work: Coroutine[Any, Any, T]) -> T:
    """What it returns; the sessions that it used are closed with the loop."""

    async def whole() -> T:
        try:
            return await work
        finally:
            await connections.close_all()

    return asyncio.run(whole())


def batch(number: int, *, source: str = "s", principal: str = "oidc~a", content: bytes | None = None) -> Batch:
    content = content or b'[{"sequence":%d}]' % number
    return Batch(principal, source, number, 1, content, TABLES, crc32(content), len(content))


def logged(warehouse_id: UUID) -> list[tuple[int, str, int | None, bytes]]:
    """Position, source, number and content of all batches."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select position, source_id, sequence_number, content from ingest_batch where warehouse_id = %s"
            " order by position",
            [warehouse_id],
        )
        return [(position, source, number, bytes(content)) for position, source, number, content in cursor.fetchall()]
