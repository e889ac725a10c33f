"""Sockets to the gateways of two servers, and what is in the log."""

import asyncio
import json
import os
import random
import signal
from contextlib import suppress
from typing import Any

import psycopg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.integration.ingest.messages import batch
from tests.integration.replicas.pair import Lake, Pair, Person, Replica

_PATIENCE_S = 60
_LAST = 400


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


def stream_while_servers_are_killed(pair: Pair, lake: Lake, *, seed: int) -> None:
    """What was acknowledged is in the log once.

    The client streams with a window, and goes on at another server from what it knows was acknowledged.
    """
    lake.add_namespace("default")
    draw = random.Random(seed)  # noqa: S311
    kills = sorted(draw.sample(range(_LAST // 8, _LAST), 3))
    acked: set[int] = set()

    async def stream() -> None:
        replicas = [pair.a, pair.b]
        while len(acked) < _LAST:
            with suppress(ConnectionClosed, OSError, InvalidHandshake):
                async with socket_of(replicas[0], lake, pair.admin) as socket:
                    await receive_while_sending(socket, replicas[0])
            replicas.reverse()

    async def receive_while_sending(socket: ClientConnection, replica: Replica) -> None:
        start = await say(socket, {"type": "connect", "sourceDoId": "abc123", "lastAckSequence": len(acked)})
        known = start["lastAckedSequence"]
        acked.update(range(1, known + 1))  # the server has them: they were stored, and the acknowledgement was lost
        sending = asyncio.create_task(send_rest(socket, known + 1))
        try:
            while len(acked) < _LAST:
                answer = json.loads(await socket.recv())
                if answer["type"] == "nack":
                    assert answer["shouldRetry"], answer
                    await asyncio.sleep(answer["retryDelayMs"] / 1000)
                    return
                assert answer["status"] in {"ok", "duplicate"}
                acked.add(answer["sequenceNumber"])
                if kills and len(acked) >= kills[0]:
                    kills.pop(0)
                    os.kill(replica.server.process.pid, signal.SIGKILL)
                    await asyncio.to_thread(replica.server.restart)
                    return
        finally:
            sending.cancel()

    async def send_rest(socket: ClientConnection, first: int) -> None:
        for number in range(first, _LAST + 1):
            await socket.send(json.dumps(batch(number)))
            await asyncio.sleep(0.011)  # below the limit of messages per second

    pair.run(asyncio.wait_for(stream(), 240))
    assert not kills
    assert numbers(pair, lake) == [(number, number) for number in range(1, _LAST + 1)]
