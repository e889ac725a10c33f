"""Durable events per second and core of the gateway: `python -m benchmarks.ingest --help`.

Each run has a new `lakewarden dev`, with its limits of rates lifted and an embedded Postgres that writes durably; with
`--contents kafka` also a broker.
"""

import argparse
import asyncio
import json
import os
import sys
import time
import urllib.parse
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import urllib3
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.failures import BenchmarkError
from benchmarks.machine import processes
from benchmarks.machine.parts import POSTGRES, SERVER, Parts
from benchmarks.stack import DevelopmentServer
from standalone.ready import ReadyInfo, read_ready_file
from standalone.signals import interrupting
from tests.servers import kafka

_KAFKA = "kafka"
_LIFTED = {
    "MESSAGES_PER_S": 1_000_000,
    "BURST": 1_000_000,
    "CONNECTIONS_PER_S": 1000,
    "CONNECTIONS_PER_ADDRESS": 1000,
    "BUFFER_BYTES": 1 << 40,
}


@dataclass(frozen=True, slots=True)
class Load:
    """`batches` of `events` each, on every one of the connections, at most `window` of them unacknowledged."""

    connections: int
    batches: int
    events: int
    window: int

    @property
    def total(self) -> int:
        return self.connections * self.batches * self.events


def main() -> int:
    options = _options()
    load = Load(options.connections, options.batches, options.events, options.window)
    os.environ.update({f"LAKEWARDEN__INGEST__{name}": str(value) for name, value in _LIFTED.items()})
    try:
        with interrupting(), _broker(options.contents) as broker, DevelopmentServer() as server:
            info = read_ready_file(server.ready)
            token = _token(info)
            parts = Parts.find(urllib.parse.urlsplit(info.catalog_uri).port or 0, below=info.pid)
            _prepare(info, token)
            for name, run in (("WebSocket", _over_sockets), ("HTTP", _over_http)):
                _warm_up(run, info, token, load)
                _print(name, load, *_measured(run, info, token, load, partial(_cpu, parts, broker)))
    except BenchmarkError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}")
    return 0


@contextmanager
def _broker(contents: str) -> Iterator[int | None]:
    """Its process, if contents go there."""
    if contents != "kafka":
        yield None
        return
    with kafka.start() as broker:
        chosen = {"BOOTSTRAP_SERVERS": broker.plain, "REPLICAS": "1", "MIN_IN_SYNC": "1"}
        os.environ.update({f"LAKEWARDEN__INGEST__KAFKA__{name}": value for name, value in chosen.items()})
        os.environ["LAKEWARDEN__INGEST__CONTENTS"] = contents
        yield broker.process.pid


def _cpu(parts: Parts, broker: int | None) -> dict[str, int]:
    """By part, in nanoseconds."""
    found = dict(parts.cpu())
    return found if broker is None else found | {_KAFKA: processes.cpu_ns(processes.tree(broker))}


_Run = Callable[[ReadyInfo, str, Load, str], Awaitable[None]]


def _warm_up(run: _Run, info: ReadyInfo, token: str, load: Load) -> None:
    asyncio.run(run(info, token, Load(load.connections, 20, load.events, load.window), "warm"))  # type: ignore[arg-type]


def _measured(
    run: _Run, info: ReadyInfo, token: str, load: Load, cpu: Callable[[], dict[str, int]]
) -> tuple[float, dict[str, int]]:
    before, began = cpu(), time.perf_counter()
    asyncio.run(run(info, token, load, "main"))  # type: ignore[arg-type]
    took = time.perf_counter() - began
    after = cpu()
    return took, {part: after[part] - before[part] for part in before}


def _print(name: str, load: Load, took: float, cpu: dict[str, int]) -> None:
    batches = load.connections * load.batches
    figures = [f"{name}: {load.total:,} events in {took:.1f} s: {load.total / took:,.0f} per second"]
    for part in (SERVER, POSTGRES, _KAFKA):
        if cpu.get(part):
            seconds = cpu[part] / 1e9
            figures.append(
                f"  {part}: {seconds / batches * 1e6:.0f} us of CPU a batch, {load.total / seconds:,.0f} events per "
                "second and core"
            )
    print("\n".join(figures))


async def _over_sockets(info: ReadyInfo, token: str, load: Load, run: str) -> None:
    address = info.catalog_uri.replace("http", "ws", 1).removesuffix("/catalog") + "/lakehouse/ws"

    async def stream(number: int) -> None:
        source = f"bench-{run}-{number}"
        messages = [_message(source, each, load.events) for each in range(1, load.batches + 1)]
        headers = {"Authorization": f"Bearer {token}"}
        async with connect(address, additional_headers=headers, max_queue=None, compression=None) as socket:
            await _stream(socket, messages, load.window)

    await asyncio.gather(*(stream(number) for number in range(load.connections)))


async def _stream(socket: ClientConnection, messages: list[str], window: int) -> None:
    for sent, message in enumerate(messages):
        if sent >= window:
            _check(json.loads(await socket.recv()))
        await socket.send(message)
    for _ in range(min(window, len(messages))):
        _check(json.loads(await socket.recv()))


def _check(answer: dict[str, object]) -> None:
    if answer.get("status") not in {"ok", "buffered"}:
        raise BenchmarkError(f"A batch was not acknowledged: {answer}")


async def _over_http(info: ReadyInfo, token: str, load: Load, run: str) -> None:
    address = info.catalog_uri.removesuffix("/catalog") + "/lakehouse/cdc"
    pool = urllib3.PoolManager(maxsize=load.connections, block=True)

    def send(number: int) -> None:
        for each in range(load.batches):
            body = json.dumps({"events": _events(each, load.events)})
            headers = {
                "authorization": f"Bearer {token}",
                "content-type": "application/json",
                "idempotency-key": f"{run}-{number}-{each}",
            }
            answer = pool.request("POST", address, body=body, headers=headers)
            if answer.status != 200:  # noqa: PLR2004
                raise BenchmarkError(f"A request failed: {answer.status} {answer.data!r}")

    await asyncio.gather(*(asyncio.to_thread(send, number) for number in range(load.connections)))


def _message(source: str, number: int, events: int) -> str:
    return json.dumps(
        {"type": "cdc_batch", "sourceDoId": source, "sequenceNumber": number, "events": _events(number, events)}
    )


def _events(batch: int, count: int) -> list[dict[str, object]]:
    return [
        {
            "sequence": batch * count + number,
            "timestamp": 1705840000500,
            "operation": "INSERT",
            "table": "users",
            "rowId": f"user-{batch}-{number}",
            "after": {
                "id": f"user-{batch}-{number}",
                "name": "John Doe",
                "email": "john@example.com",
                "city": "Utrecht",
                "created_at": "2026-01-21T12:34:56.789Z",
                "amount": 12345.67,
                "active": True,
            },
        }
        for number in range(count)
    ]


def _token(info: ReadyInfo) -> str:
    form = {
        "grant_type": "client_credentials",
        "client_id": info.admin.client_id,
        "client_secret": info.admin.client_secret,
        "scope": info.engine.scope,
    }
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = urllib3.request("POST", info.token_endpoint, body=urllib.parse.urlencode(form), headers=headers)
    return str(json.loads(answer.data)["access_token"])


def _prepare(info: ReadyInfo, token: str) -> None:
    address = info.catalog_uri.removesuffix("/catalog") + "/lakehouse/v1/namespaces"
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    answer = urllib3.request("POST", address, body=json.dumps({"namespace": ["default"]}), headers=headers)
    if answer.status not in {200, 409}:
        raise BenchmarkError(f"The namespace could not be made: {answer.status} {answer.data!r}")


def _options() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.ingest", description=__doc__)
    arguments.add_argument("--connections", type=int, default=4, help="sockets, or clients over HTTP [4]")
    arguments.add_argument("--batches", type=int, default=1000, help="of each of them [1000]")
    arguments.add_argument("--events", type=int, default=100, help="of a batch [100]")
    arguments.add_argument(
        "--contents", choices=["postgres", "kafka"], default="postgres", help="where they go [postgres]"
    )
    arguments.add_argument("--window", type=int, default=4, help="unacknowledged batches of a socket [4]")
    return arguments.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
