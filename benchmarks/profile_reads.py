"""What a warm read costs by layer, in this process: `python -m benchmarks.profile_reads --help`.

Connections are the server's own, with a transport that writes into memory: the kernel's part is left out, and so is a
load generator. Layers are switched off from the inside out; each line is the whole up to there.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from benchmarks.authorization.filling import SCHEMA, known
from benchmarks.authorization.installation import Installation
from benchmarks.authorization.server import ADMIN, InProcess, in_process
from benchmarks.failures import BenchmarkError

_SUBJECT = "engine"
_TOKEN = "e" * 1200
_HEADERS = (
    "Host: 127.0.0.1:8181",
    f"Authorization: Bearer {_TOKEN}",
    "Accept: application/json",
    "Accept-Encoding: gzip",
    "User-Agent: lakewarden-benchmark",
)
_TABLES = 1000
_PATHS = {
    "loadTable": "GET {base}/namespaces/sales/tables/orders",
    "HEAD": "HEAD {base}/namespaces/sales/tables/orders",
    "config": "GET /catalog/v1/config?warehouse=main",
    "list": "GET {base}/namespaces/many/tables",
}


Application = Callable[[Any, Any, Any], Awaitable[None]]


class _Memory(asyncio.Transport):
    """A client that has read all that is written, and asks again when its answer is complete."""

    def __init__(self, loop: asyncio.AbstractEventLoop, request: bytes, done: Callable[[], bool]) -> None:
        super().__init__({"peername": ("127.0.0.1", 50_000), "sockname": ("127.0.0.1", 8181)})
        self.protocol: Any = None
        self.status = 0
        self._loop = loop
        self._request = request
        self._done = done
        self._left = -1

    def ask(self) -> None:
        self.protocol.data_received(self._request)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._left < 0:
            head, _, body = bytes(data).partition(b"\r\n\r\n")
            self.status = int(head[9:12])
            place = head.find(b"content-length: ")
            self._left = (
                0 if place < 0 or self._request.startswith(b"HEAD") else int(head[place + 16 :].split(b"\r\n", 1)[0])
            )
            self._left -= len(body)
        else:
            self._left -= len(data)
        if self._left == 0:
            self._left = -1
            if not self._done():
                self._loop.call_soon(self.ask)

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    abort = pause_reading = resume_reading = close

    def get_write_buffer_size(self) -> int:
        return 0


async def _drive(request: bytes, *, application: Application, clients: int, requests: int) -> float:
    """CPU of this process for each request, in microseconds."""
    from uvicorn import Config  # noqa: PLC0415 after the settings
    from uvicorn.server import ServerState  # noqa: PLC0415 as above

    from lakewarden.http.connection import BoundedConnection  # noqa: PLC0415 as above

    config = Config(
        application, http=BoundedConnection, ws="none", log_config=None, access_log=False, server_header=False
    )
    config.load()
    state, loop, over = ServerState(), asyncio.get_running_loop(), asyncio.Event()
    answered = 0

    def done() -> bool:
        nonlocal answered
        answered += 1
        if answered > requests - clients:
            if answered == requests:
                over.set()
            return True
        return False

    transports = []
    for _ in range(clients):
        transport = _Memory(loop, request, done)
        transport.protocol = BoundedConnection(config=config, server_state=state, app_state={})
        transport.protocol.connection_made(transport)
        transports.append(transport)
    start = time.process_time_ns()
    for transport in transports:
        transport.ask()
    await over.wait()
    spent = (time.process_time_ns() - start) / 1000 / requests
    if not {each.status for each in transports} <= {200, 204}:
        raise BenchmarkError(f"Requests were answered with {sorted({each.status for each in transports})}")
    return spent


def _believe() -> None:
    """The real authenticator, which has verified our token before."""
    from lakewarden import backends  # noqa: PLC0415 after the settings
    from lakewarden.authn.chain import AuthenticatorChain  # noqa: PLC0415 as above
    from lakewarden.authn.interface import VerifiedToken  # noqa: PLC0415 as above
    from lakewarden.authn.verifier import Verified  # noqa: PLC0415 as above

    class _Nobody:
        recheck_after_s = None
        max_missed_rechecks = 1

        def stamp(self) -> int:
            return 0

    until = time.time() + 3600
    principal = VerifiedToken(f"oidc~{_SUBJECT}", _SUBJECT, None, "human", "benchmark", until)
    chain = AuthenticatorChain([])
    chain._known.add(_TOKEN, Verified(principal, until), _Nobody())  # type: ignore[arg-type]  # noqa: SLF001
    backends.authenticator = lambda: chain  # type: ignore[assignment]


def _filled(server: InProcess, names: Sequence[str]) -> dict[str, bytes]:
    """The requests of these names, on a warehouse of their own."""
    known(server, _SUBJECT)
    body = {
        "warehouse-name": "main",
        "storage-profile": {"type": "local", "base-path": str(server.directory / "main")},
    }
    identifier = server.call(ADMIN, "POST", "/management/v1/warehouse", body)["id"]
    base, warehouse = f"/catalog/v1/{identifier}", f"/management/v1/warehouse/{identifier}"
    entries = [{"privilege": each, "principal": {"user": f"oidc~{_SUBJECT}"}} for each in ("create", "modify")]
    server.call(ADMIN, "POST", f"{warehouse}/grants", {"writes": entries})
    for name in ("sales", "many"):
        server.call(_SUBJECT, "POST", f"{base}/namespaces", {"namespace": [name]})
    table = {"name": "orders", "schema": SCHEMA}
    server.call(_SUBJECT, "POST", f"{base}/namespaces/sales/tables", table)
    for number in range(_TABLES if "list" in names else 0):
        server.call(_SUBJECT, "POST", f"{base}/namespaces/many/tables", table | {"name": f"table_{number:05d}"})
    requests = {}
    for name in names:
        method, path = _PATHS[name].format(base=base).split(" ")
        server.timed([(_SUBJECT, method, path, None)] * 3, warm_up=2, expect=204 if method == "HEAD" else 200)
        requests[name] = "\r\n".join([f"{method} {path} HTTP/1.1", *_HEADERS, "", ""]).encode()
    return requests


async def _constant(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401, ARG001 ASGI's
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})


@contextmanager
def _without_database() -> Iterator[None]:
    """Each look-up is answered with what it was answered with the first time."""
    from lakewarden.hot.coalescer import Coalescer  # noqa: PLC0415 after the settings

    answers: dict[object, object] = {}
    ask = Coalescer._answer  # noqa: SLF001

    async def answered(self: Coalescer, batch: Any) -> None:  # noqa: ANN401
        if batch[0][0] in answers:
            for key, future in batch:
                future.set_result(answers[key])
            return
        await ask(self, batch)
        for key, future in batch:
            answers[key] = future.result()

    with patch.object(Coalescer, "_answer", answered):
        yield


def main() -> int:
    options = _options()
    names = options.reads.split(",")
    with in_process(Installation()) as server:
        requests = _filled(server, names)
        _believe()
        from lakewarden.asgi import application  # noqa: PLC0415 after the settings

        def measured(name: str, answers: Application = application, *, count: int = options.requests) -> float:
            """The cheapest round."""
            driven = (
                _drive(requests[name], application=answers, clients=options.clients, requests=count)
                for _ in range(options.rounds)
            )
            return min(server.run(each) for each in driven)

        print(f"{options.clients} clients, best of {options.rounds} rounds; µs of this process's CPU for a request")
        print(f"connection alone, constant answer  {measured(names[0], _constant):7.1f}", flush=True)
        for name in names:
            count = options.requests // (10 if name == "list" else 1)
            measured(name, count=10 * options.clients)
            with _without_database():
                alone = measured(name, count=count)
            whole = measured(name, count=count)
            print(f"{name:10} without the database {alone:7.1f}, whole {whole:7.1f}", flush=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile_reads", description=__doc__)
    parser.add_argument("--reads", default=",".join(_PATHS), help="which [all]")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
