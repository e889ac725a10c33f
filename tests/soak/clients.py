"""The clients of a soak: each a seeded generator that changes and reads until it is stopped."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from tests.integration.replicas.exchange import Call, Exchange
from tests.integration.replicas.pair import SCHEMA
from tests.soak.book import CONNECTIONS, Book, Warehouse
from tests.soak.shared import NAMESPACE, SharedTables
from tests.soak.slots import Right, Slot, listed
from tests.soak.wire import Reply, ask

OWNERS, COMMITTERS, READERS = 4, 4, 3
SLOTS = 2
"""Of each kind, in each warehouse, of each owner."""
TABLES = 4
_KINDS = ("tables", "views", "namespaces")


@dataclass
class Clients:
    """`start` runs them in a thread of their own, `stop` lets each end what it has begun."""

    book: Book
    shared: SharedTables
    committers: int = COMMITTERS
    slots: list[list[Slot]] = field(default_factory=list)
    rights: list[Right] = field(default_factory=list)
    failure: BaseException | None = None
    _thread: Thread | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._thread = Thread(target=self._run, name="clients")
        self._thread.start()

    def stop(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.book.over.set)
        if self._thread is not None:
            self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as error:  # noqa: BLE001 raised again by `stop`, in the thread that waits
            self.failure = error

    async def _work(self) -> None:
        self._loop = asyncio.get_running_loop()
        steps: list[Callable[[random.Random], Awaitable[None]]] = [
            *([self._own(each) for each in self.slots]),
            self._grant,
            *([self.shared.commit] * self.committers),
            *([self._read] * READERS),
        ]
        async with asyncio.TaskGroup() as group:
            for number, step in enumerate(steps):
                group.create_task(self._repeat(step, random.Random(f"{self.book.seed}-{number}")))
        await self.book.exchange.close()

    async def _repeat(self, step: Callable[[random.Random], Awaitable[None]], rng: random.Random) -> None:
        while not self.book.over.is_set():
            await step(rng)
            await asyncio.sleep(0)

    def _own(self, mine: list[Slot]) -> Callable[[random.Random], Awaitable[None]]:
        async def step(rng: random.Random) -> None:
            await rng.choice(mine).step()
            await self.shared.replace_full(rng) if mine is self.slots[0] else None

        return step

    async def _grant(self, rng: random.Random) -> None:
        await rng.choice(self.rights).step()

    async def _read(self, rng: random.Random) -> None:
        port, choice = rng.choice(self.book.ports), rng.random()
        if choice < 0.35:
            await self.shared.look(rng)
        elif choice < 0.5:
            await rng.choice(self.rights).look(port)
        elif choice < 0.9:
            slot = rng.choice(rng.choice(self.slots))
            await slot.look(port, rng.choice(slot.names))
        else:
            await self._list(rng.choice(self.slots), port, rng)

    async def _list(self, mine: list[Slot], port: int, rng: random.Random) -> None:
        """A list of tables or views shows each that is there, and none that is not."""
        chosen = rng.choice([each for each in mine if each.kind != "namespaces"])
        alike = [each for each in mine if (each.kind, each.warehouse) == (chosen.kind, chosen.warehouse)]
        known = [(each.register, each.names) for each in alike]
        reply = await self.book.read(port, chosen.warehouse.path("namespaces", chosen.within, chosen.kind))
        findings = []
        if reply.status == 200:
            there = {each["name"] for each in reply.content["identifiers"]}
            for register, names in known:
                findings += [register.read(name in there, reply.start, reply.end, listed(name)) for name in names]
        self.book.note(reply, findings)


async def _done(book: Book, method: str, path: str, body: Any = None) -> Any:
    reply = await _sent(book, method, path, body)
    assert reply.answer is not None, (method, path)
    assert reply.status < 300, (method, path, reply.answer)
    return reply.answer.json() if reply.answer.body else None


async def _sent(book: Book, method: str, path: str, body: Any) -> Reply:
    return await ask(book.exchange, Call(book.ports[0], method, path, book.admin.token, body, {}))


async def prepared(book: Book, local_root: str, *, committers: int = COMMITTERS) -> Clients:
    """Two warehouses and all that the clients work in; nothing is broken yet."""
    for name, profile in (("hard", {"type": "hard"}), ("soft", {"type": "soft", "expiration-seconds": 60})):
        storage = {"type": "local", "base-path": f"{local_root}/{name}"}
        body = {"warehouse-name": name, "storage-profile": storage, "delete-profile": profile}
        made = await _done(book, "POST", "/management/v1/warehouse", body)
        book.warehouses.append(Warehouse(made["id"], is_soft=name == "soft"))
    hard = book.warehouses[0]
    for person in book.people:
        await ask(book.exchange, Call(book.ports[0], "GET", "/management/v1/whoami", person.token))
    shared = SharedTables(book, hard)
    clients = Clients(book, shared, committers)
    await _done(book, "POST", hard.path("namespaces"), {"namespace": [NAMESPACE]})
    rng = random.Random(book.seed)
    for _ in range(max(TABLES, committers // 3)):
        await shared.add(rng)
    for number in range(OWNERS):
        clients.slots.append([])
        for warehouse in book.warehouses:
            within = f"owner{number}"
            await _done(book, "POST", warehouse.path("namespaces"), {"namespace": [within]})
            for kind in _KINDS:
                own = random.Random(f"{book.seed}-{number}-{kind}-{warehouse.is_soft}")
                clients.slots[-1] += [Slot(book, warehouse, kind, within, own) for _ in range(SLOTS)]
    await _add_rights(book, clients)
    await book.exchange.close()
    book.exchange, book.over = Exchange(most=CONNECTIONS), asyncio.Event()  # for another loop
    return clients


async def _add_rights(book: Book, clients: Clients) -> None:
    hard = book.warehouses[0]
    await _done(book, "POST", hard.path("namespaces"), {"namespace": ["granted"]})
    for number in range(TABLES):
        path = hard.path("namespaces", "granted", "tables")
        made = await _done(book, "POST", path, {"name": f"g{number}", "schema": SCHEMA})
        grants = f"{hard.managed}/table/{made['metadata']['table-uuid']}/grants"
        for person in range(1, len(book.people)):
            own = random.Random(f"{book.seed}-{number}-{person}")
            clients.rights.append(Right(book, f"{path}/g{number}", grants, person, own))
