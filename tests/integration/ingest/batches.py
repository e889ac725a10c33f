"""Batches for the log, made without the gateway."""

from collections.abc import Sequence
from uuid import UUID
from zlib import crc32

from django.db import connection

from ingest.references import IN_KAFKA, unpack
from ingest.services import log
from ingest.services.log import Batch, Decided, Outcome
from lakewarden import config
from lakewarden.hot import connections
from pipeline.sources.kafka_contents import KafkaContents
from tests.servers.asgi_client import run

__all__ = ["run"]

TABLES = '[{"table":"users","namespace":["default"],"name":"users","id":null}]'
ROOMY = 1 << 40


def batch(number: int, *, source: str = "s", principal: str = "oidc~a", content: bytes | None = None) -> Batch:
    content = content or b'[{"sequence":%d}]' % number
    return Batch(principal, source, number, 1, content, TABLES, crc32(content), len(content))


async def unchanged(warehouse_id: UUID) -> Decided:
    """Decisions of this moment, about no table."""
    async with connections.connection() as usable:
        cursor = await usable.execute(
            "select p.authz_epoch from project p join warehouse w on w.project_id = p.id where w.id = %s",
            [warehouse_id],
        )
        row = await cursor.fetchone()
    return Decided(row[0] if row else 0, frozenset())


async def append(warehouse_id: UUID, batches: Sequence[Batch], *, capacity: int) -> list[Outcome]:
    return await log.append(warehouse_id, batches, capacity=capacity, decided=await unchanged(warehouse_id))


async def open_source(
    warehouse_id: UUID, *, source_id: str, principal: str = "oidc~a", shard_name: str = "", last_acked: int | None = 0
) -> int | None:
    found = await log.open_source(
        warehouse_id, principal=principal, source_id=source_id, shard_name=shard_name, last_acked=last_acked
    )
    assert found.is_open
    return found.last


def logged(warehouse_id: UUID) -> list[tuple[int, str, int | None, bytes]]:
    """Position, source, number and content of all batches, as the pipeline reads them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select position, source_id, sequence_number, encoding, content from ingest_batch where warehouse_id = %s"
            " order by position",
            [warehouse_id],
        )
        rows = cursor.fetchall()
    wanted = {position: unpack(bytes(row[-1])) for position, *row in rows if row[-2] & IN_KAFKA}
    kafka, found = config.current().ingest.kafka, {}
    if wanted and kafka is not None:
        with KafkaContents(kafka) as contents:
            found = contents.read(wanted.values())
    return [
        (position, source, number, found[wanted[position]] if position in wanted else bytes(content))
        for position, source, number, _, content in rows
    ]
