"""Servers are killed and the broker goes away while batches are sent: what was acknowledged is there once."""

import asyncio
import json
import os
import signal
import time
from typing import Any

import psycopg
import pytest

from tests.integration.ingest.messages import batch, connect
from tests.integration.replicas.change_streams import numbers, say, socket_of, stream_while_servers_are_killed
from tests.integration.replicas.pair import Lake, Pair
from tests.servers.kafka import KafkaServer

LAST = 60


@pytest.mark.parametrize("seed", range(2))
def test_what_was_acknowledged_is_there_once_although_servers_are_killed(pair: Pair, lake: Lake, seed: int) -> None:
    stream_while_servers_are_killed(pair, lake, seed=seed)


def test_a_broker_that_is_away_for_a_while_costs_nothing_but_time(pair: Pair, lake: Lake, broker: KafkaServer) -> None:
    """Batches are refused meanwhile, and sent again."""
    lake.add_namespace("default")
    refusals: list[dict[str, Any]] = []

    async def stream() -> None:
        async with socket_of(pair.a, lake, pair.admin) as socket:
            await say(socket, connect(lastAckSequence=0))
            number = 1
            while number <= LAST:
                if number == LAST // 2 and not refusals:
                    broker.stop()
                answer = await say(socket, batch(number))
                if answer["type"] == "ack":
                    number += 1
                    continue
                refusals.append(answer)
                if len(refusals) == 2:
                    broker.start()
                await asyncio.sleep(0.1)

    pair.run(asyncio.wait_for(stream(), 240))
    assert {(each["reason"], each["shouldRetry"]) for each in refusals} == {("internal_error", True)}
    assert "does not take events now" in pair.a.server.log_text() or "did not take" in pair.a.server.log_text()
    assert numbers(pair, lake) == [(number, number) for number in range(1, LAST + 1)]


def test_a_server_that_is_killed_while_its_statement_waits_leaves_the_batch_once(pair: Pair, lake: Lake) -> None:
    """Its contents are in Kafka by then. Whether the statement still ends is the database's business."""
    lake.add_namespace("default")
    url = pair.a.server.settings["LAKEWARDEN__DATABASE__URL"]

    async def kill() -> None:
        async with socket_of(pair.a, lake, pair.admin) as socket:
            await say(socket, batch(1))
            with psycopg.connect(url) as other:
                other.execute("select 1 from ingest_log_head where warehouse_id = %s for update", [lake.id])
                await socket.send(json.dumps(batch(2)))
                await until_something_waits(other)
                os.kill(pair.a.server.process.pid, signal.SIGKILL)

    async def again() -> list[str]:
        async with socket_of(pair.b, lake, pair.admin) as socket:
            return [(await say(socket, batch(number)))["status"] for number in (2, 3)]

    pair.run(kill())
    pair.a.server.restart()
    second, third = pair.run(again())
    assert second in {"ok", "duplicate"}
    assert third == "ok"
    assert numbers(pair, lake) == [(1, 1), (2, 2), (3, 3)]


async def until_something_waits(connection: psycopg.Connection) -> None:
    deadline = time.monotonic() + 60
    while connection.execute("select count(*) from pg_locks where not granted").fetchone() == (0,):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
