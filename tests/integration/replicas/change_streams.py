"""Sockets to the gateways of two servers, and what is in the log."""

import asyncio
import json
from typing import Any

import psycopg
from websockets.asyncio.client import ClientConnection, connect

from tests.integration.replicas.pair import Lake, Pair, Person, Replica

_PATIENCE_S = 60


def socket_of(replica: Replica, lake: Lake, person: Person, **options: Any) -> connect:
    headers = {"Authorization": f"Bearer {person.token}"}
    address = f"ws://127.0.0.1:{replica.port}/lakehouse/w/{lake.name}/ws"
    return connect(address, additional_headers=headers, ping_interval=None, **options)


async def say(socket: ClientConnection, message: Any) -> dict[str, Any]:
    await socket.send(json.dumps(message))
    async with asyncio.timeout(_PATIENCE_S):
        return dict(json.loads(await socket.recv()))


def numbers(pair: Pair, lake: Lake) -> list[tuple[int, int]]:
    with psycopg.connect(pair.a.server.settings["LAKEWARDEN__DATABASE__URL"]) as database:
        return database.execute(
            "select position, sequence_number from ingest_batch where warehouse_id = %s order by position", [lake.id]
        ).fetchall()
