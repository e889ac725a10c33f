"""What one caller can do to a server with few rights: each attack is a coroutine that one connection runs for ever."""

import asyncio
import base64
import gzip
import json
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn
from uuid import uuid4

MIB = 1024 * 1024
_PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class Scene:
    """`stranger` and `creator` are tokens: of somebody without any right, and with `create` on one namespace, in which
    they own the tables `mine` (small) and `large`. Paths are below the warehouse's.
    """

    port: int
    stranger: str
    creator: str
    warehouse: str
    namespace: str

    def path(self, *rest: str) -> str:
        return "/".join(["/catalog/v1", self.warehouse, "namespaces", *rest])

    def table(self, name: str) -> str:
        return self.path(self.namespace, "tables", name)


class Connection:
    """One that is opened anew whenever the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, content: bytes) -> None:
        if self._writer is None or self._writer.is_closing():
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=4 * MIB)
        self._writer.write(content)
        await self._writer.drain()

    async def answered(self) -> None:
        """Read one answer and forget it."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next((line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"0")
        await self._reader.readexactly(int(length))
        if b"connection: close" in head.lower():
            self.close()

    async def silence(self) -> None:
        """Until the server closes, or for a minute; what it sends is read."""
        async with asyncio.timeout(_PATIENCE_S):
            while await self._reader.read(65536):
                pass

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def request(method: str, path: str, *, token: str = "", body: bytes = b"", coding: str = "", **more: str) -> bytes:
    named = {"Host": "lake", "Content-Length": str(len(body)), **{n.replace("_", "-"): v for n, v in more.items()}}
    if token:
        named["Authorization"] = f"Bearer {token}"
    if coding:
        named["Content-Encoding"] = coding
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items()), "", ""]
    return "\r\n".join(lines).encode() + body


Attack = Callable[[Scene, Connection], Coroutine[Any, Any, None]]


async def endless_heads(scene: Scene, connection: Connection) -> None:
    await connection.send(f"GET {scene.path()} HTTP/1.1\r\nHost: lake\r\nX-A: ".encode())
    for _ in range(50):
        await connection.send(b"a" * 1000)
        await asyncio.sleep(0.1)


async def endless_bodies(scene: Scene, connection: Connection) -> None:
    await _endless(scene, connection, "")


async def endless_bodies_of_a_caller(scene: Scene, connection: Connection) -> None:
    await _endless(scene, connection, scene.stranger)


async def _endless(scene: Scene, connection: Connection, token: str) -> None:
    head = request("POST", scene.path(), token=token, Content_Length=str(31 * MIB))
    await connection.send(head)
    for _ in range(31):
        await connection.send(b" " * (MIB - 1))
    await connection.silence()


async def endless_chunks(scene: Scene, connection: Connection) -> None:
    head = request("POST", scene.path(), Transfer_Encoding="chunked").replace(b"Content-Length: 0\r\n", b"")
    await connection.send(head)
    for _ in range(10_000):
        await connection.send(b"1\r\n \r\n")
        await asyncio.sleep(0.001)


async def bombs(scene: Scene, connection: Connection) -> None:
    await _posted(connection, scene.path(), scene.stranger, BOMB, coding="gzip, gzip")


async def millions_of_values(scene: Scene, connection: Connection) -> None:
    await _posted(connection, scene.table("mine"), scene.stranger, VALUES, coding="gzip")


async def nonsense_for_the_management_api(scene: Scene, connection: Connection) -> None:
    path = f"/management/v1/warehouse/{scene.warehouse}/grants"
    await _posted(connection, path, scene.stranger, NONSENSE, coding="gzip")


async def large_commits(scene: Scene, connection: Connection) -> None:
    updates = {f"k{number}": secrets.token_hex(100_000) for number in range(4)}
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": updates}]}
    await _posted(connection, scene.table("mine"), scene.creator, json.dumps(body).encode())


async def many_commits(scene: Scene, connection: Connection) -> None:
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": secrets.token_hex(8)}}]}
    await _posted(connection, scene.table("mine"), scene.creator, json.dumps(body).encode())


async def many_reads(scene: Scene, connection: Connection) -> None:
    await connection.send(request("GET", scene.table("mine"), token=scene.creator))
    await connection.answered()


async def large_reads(scene: Scene, connection: Connection) -> None:
    await connection.send(request("GET", scene.table("large"), token=scene.creator))
    await connection.answered()


async def unread_answers(scene: Scene, connection: Connection) -> None:
    await connection.send(request("GET", scene.table("large"), token=scene.creator))
    await asyncio.sleep(_PATIENCE_S)


async def pipelined(scene: Scene, connection: Connection) -> None:
    await connection.send(request("GET", scene.table("mine"), token=scene.creator) * 30)
    for _ in range(30):
        await connection.answered()


async def cold_checks(scene: Scene, connection: Connection) -> None:
    about = {"warehouse-id": scene.warehouse, "table-id": "", "action": "read_data"}
    checks = [{"operation": {"table": about | {"table-id": str(uuid4())}}} for _ in range(1000)]
    await _posted(
        connection, "/management/v1/action/batch-check", scene.stranger, json.dumps({"checks": checks}).encode()
    )


async def made_up_tokens(scene: Scene, connection: Connection) -> None:
    parts = [{"alg": "RS256", "kid": secrets.token_hex(4)}, {"iss": "http://127.0.0.1:1", "sub": secrets.token_hex(4)}]
    token = ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts)
    await connection.send(request("GET", scene.path(), token=f"{token}.{secrets.token_urlsafe(64)}"))
    await connection.answered()


async def made_up_paths(scene: Scene, connection: Connection) -> None:
    await connection.send(request("GET", scene.path(secrets.token_hex(25_000), "tables", "a")))
    await connection.answered()


async def idle_connections(scene: Scene, connection: Connection) -> None:
    others = [Connection(scene.port) for _ in range(30)]
    for each in (connection, *others):
        await each.send(b"")
    await connection.silence()
    for each in others:
        each.close()


async def _posted(connection: Connection, path: str, token: str, body: bytes, *, coding: str = "") -> None:
    await connection.send(request("POST", path, token=token, body=body, coding=coding))
    await connection.answered()


ATTACKS: dict[str, tuple[str, Attack]] = {
    "heads that never end": ("nothing", endless_heads),
    "bodies of 31 MiB that never end": ("nothing", endless_bodies),
    "bodies of 31 MiB that never end, with a token": ("a token", endless_bodies_of_a_caller),
    "bodies in chunks of one byte": ("nothing", endless_chunks),
    "30 idle connections each": ("nothing", idle_connections),
    "made-up tokens": ("nothing", made_up_tokens),
    "made-up paths of 50 KB": ("nothing", made_up_paths),
    "30 MiB packed twice": ("a token", bombs),
    "bodies of millions of values": ("a token", millions_of_values),
    "lists of nonsense for the management API": ("a token", nonsense_for_the_management_api),
    "checks of 1,000 unknown objects": ("a token", cold_checks),
    "30 requests ahead on each connection": ("create", pipelined),
    "commits to one table": ("create", many_commits),
    "loads of one table": ("create", many_reads),
    "commits of 800 KB to one table": ("create", large_commits),
    "loads of a table of 8 MB": ("create", large_reads),
    "loads of a table of 8 MB that are not read": ("create", unread_answers),
}

BOMB = gzip.compress(gzip.compress(b'{"a":"' + b" " * 30 * MIB + b'"}'))
VALUES = gzip.compress(b'{"requirements":[],"updates":[' + b"{}," * 10_000_000 + b"{}]}", 1)
NONSENSE = gzip.compress(b'{"writes":[' + b"0," * 1_000_000 + b"0]}")


def run(names: list[str], scene: Scene, connections: int) -> NoReturn:
    """In a process of its own: so many connections in all, the attacks in turn, until it is killed."""
    chosen = [ATTACKS[name][1] for name in names]

    async def on_and_on(attack: Attack) -> NoReturn:
        connection = Connection(scene.port)
        while True:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
                await attack(scene, connection)
                continue
            connection.close()
            await asyncio.sleep(0.02)

    async def all_of_them() -> None:
        await asyncio.gather(*(on_and_on(chosen[number % len(chosen)]) for number in range(connections)))

    asyncio.run(all_of_them())
    raise SystemExit
