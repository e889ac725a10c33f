"""Change data on real sockets of two servers: what was acknowledged is in the log once, whichever server dies."""

import asyncio

import psycopg
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from lakewarden.config import IngestConfig
from tests.integration.ingest.messages import batch, event
from tests.integration.replicas.change_streams import numbers, say, socket_of, stream_while_servers_are_killed
from tests.integration.replicas.pair import Lake, Pair, Replica


def test_a_batch_that_one_server_has_stored_is_a_duplicate_on_the_other(pair: Pair, lake: Lake) -> None:
    lake.add_namespace("default")

    async def both() -> list[str]:
        async with socket_of(pair.a, lake, pair.admin) as one, socket_of(pair.b, lake, pair.admin) as other:
            found = [await say(socket, batch(number)) for number in (1, 2) for socket in (one, other)]
        return [each["status"] for each in found]

    assert pair.run(both()) == ["ok", "duplicate", "ok", "duplicate"]
    assert numbers(pair, lake) == [(1, 1), (2, 2)]


def test_a_message_that_is_too_large_ends_the_connection_by_its_size(pair: Pair, lake: Lake) -> None:
    lake.add_namespace("default")

    async def send() -> tuple[str, int | None]:
        async with socket_of(pair.a, lake, pair.admin) as socket:
            large = [event(number, after={"x": "y" * 900_000}) for number in range(4)]
            first = await say(socket, batch(1, *large))
            with pytest.raises(ConnectionClosed):
                await say(socket, batch(2, *large, *large[:2]))
            return first["status"], socket.close_code

    assert pair.run(send()) == ("ok", 1009)
    assert numbers(pair, lake) == [(1, 1)]


def test_sockets_of_an_address_are_counted_on_all_servers(pair: Pair, lake: Lake) -> None:
    async def open_all() -> list[int]:
        async with asyncio.TaskGroup() as group:
            tries = [group.create_task(opened(pair.both[number % 2])) for number in range(12)]
        sockets = [each.result() for each in tries]
        try:
            return [each for each in sockets if isinstance(each, int)]
        finally:
            for each in sockets:
                if not isinstance(each, int):
                    await each.close()

    async def opened(replica: Replica) -> ClientConnection | int:
        try:
            return await socket_of(replica, lake, pair.admin)
        except InvalidStatus as refused:
            return refused.response.status_code

    refused = pair.run(open_all())
    assert len(refused) >= 2
    assert set(refused) == {429}


def test_requests_that_are_recognised_are_counted_on_all_servers(pair: Pair, lake: Lake) -> None:
    lake.add_namespace("default")
    most = IngestConfig().max_requests_per_caller

    def send(replica: Replica, key: str) -> int:
        path = f"/lakehouse/w/{lake.name}/cdc"
        return replica.ask(pair.admin, "POST", path, {"events": [event(1)]}, idempotency_key=key).status

    assert send(pair.a, "1") == 200
    with psycopg.connect(pair.a.server.settings["LAKEWARDEN__DATABASE__URL"]) as database:
        raised = database.execute(
            "update ingest_request_count set requests = %s where warehouse_id = %s and principal = %s",
            [most - 1, lake.id, pair.admin.id],
        )
        assert raised.rowcount == 1
    assert [send(replica, key) for replica, key in ((pair.a, "2"), (pair.b, "3"), (pair.a, "4"), (pair.b, "2"))] == [
        200,
        429,
        429,
        200,
    ]


@pytest.mark.parametrize("seed", range(2))
def test_what_was_acknowledged_is_in_the_log_once_although_servers_are_killed(
    pair: Pair, lake: Lake, seed: int
) -> None:
    stream_while_servers_are_killed(pair, lake, seed=seed)


def test_a_server_that_is_stopped_closes_its_sockets_after_its_answers(pair: Pair, lake: Lake) -> None:
    lake.add_namespace("default")

    async def stop() -> tuple[int, int | None]:
        async with socket_of(pair.b, lake, pair.admin) as socket:
            assert (await say(socket, batch(1)))["status"] == "ok"
            stopping = asyncio.create_task(asyncio.to_thread(pair.b.server.stop))
            acked = 1
            try:
                for number in range(2, 2000):
                    answer = await say(socket, batch(number))
                    if answer["type"] == "nack":
                        assert answer["reason"] in {"shutting_down", "rate_limited"}
                        await asyncio.sleep(0.05)
                        continue
                    acked = number
                    await asyncio.sleep(0.01)
            except ConnectionClosed:
                pass
            await stopping
            return acked, socket.close_code

    try:
        acked, code = pair.run(stop())
    finally:
        pair.b.server.start()
    assert code == 1012
    assert [number for _, number in numbers(pair, lake)][:acked] == list(range(1, acked + 1))
