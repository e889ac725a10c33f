"""Objects that one client makes, changes, renames, drops and restores, and all read: tables, views, namespaces, grants."""

import asyncio
import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, cast

from tests.integration.catalog.lake import VIEW_VERSION
from tests.integration.replicas.exchange import Call
from tests.integration.replicas.pair import SCHEMA
from tests.soak.book import Book, Warehouse
from tests.soak.ledger import Finding, Outcome, Register
from tests.soak.wire import Reply

UNDROP_WITHIN_S = 35.0
"""What was dropped can be restored for sixty seconds: later nobody tries, as the clock would decide."""
MARK = "soak"
ABSENT = ("absent", "", 0)


def shown(name: str) -> Callable[[Any], Hashable]:
    """What a load of `name` shows of a value: its version, or None for 404."""
    return lambda value: value[2] if value[:2] == ("live", name) else None


def listed(name: str) -> Callable[[Any], Hashable]:
    return lambda value: value[:2] == ("live", name)


@dataclass
class Slot:
    """`kind` is tables, views or namespaces; values are (state, name, version), the state live, dropped or absent.

    `within` is the namespace (of a table or view). A dropped one is restored, or left to its expiry and replaced.
    """

    book: Book
    warehouse: Warehouse
    kind: str
    within: str
    rng: random.Random
    register: Register = field(init=False)
    names: tuple[str, str] = field(init=False)
    id: str = ""
    location: str = ""
    dropped_at: float = 0.0

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Another object, of names that nobody has used."""
        number = self.book.next_number()
        self.names = (f"{self.kind[0]}{number}a", f"{self.kind[0]}{number}b")
        self.register = Register(f"{self.kind} {self.within}.{self.names[0]}", ABSENT)
        self.id = self.location = ""

    def path(self, name: str) -> str:
        return self.path_of(self.warehouse, self.kind, self.within, name)

    @staticmethod
    def path_of(warehouse: Warehouse, kind: str, within: str, name: str) -> str:
        if kind == "namespaces":
            return warehouse.path("namespaces", name)
        return warehouse.path("namespaces", within, kind, name)

    async def look(self, port: int, name: str) -> Any:
        """Load it by a name of its own, and judge what is shown; the content of the answer, or None."""
        register = self.register
        reply = await self.book.read(port, self.path(name))
        finding, told = None, reply.content if reply.status == 200 else None
        if reply.status in {200, 404}:
            finding = register.read(self._version(told), reply.start, reply.end, shown(name))
        self.book.note(reply, [finding])
        return told

    async def step(self) -> None:
        """One change of it; what is uncertain is settled when the system is quiet."""
        if not self.register.is_certain:
            await self.settle()
            return
        state, name, version = cast("tuple[str, str, int]", self.register.value)
        if state == "absent":
            await self._create(version + 1)
        elif state == "dropped":
            await self._after_drop(name, version)
        elif self.kind == "namespaces":
            await self.rng.choice([self._mark, self._mark, self._drop])(name, version)
        else:
            await self.rng.choice([self._mark, self._rename, self._drop])(name, version)

    async def settle(self) -> None:
        if not self.book.timeline.is_settled(monotonic()):
            await asyncio.sleep(0.2)
            return
        before = len(self.book.findings)
        for port in self.book.ports:
            for name in self.names:
                await self.look(port, name)
        if self.book.timeline.is_settled(monotonic()) and len(self.book.findings) == before:
            self.register.settle(monotonic())
            self._note_gone()

    async def _create(self, version: int) -> None:
        name, mark = self.names[0], {MARK: str(version)}
        self.id = self.location = ""
        if self.kind == "namespaces":
            body: dict[str, Any] = {"namespace": [name], "properties": mark}
            path = self.warehouse.path("namespaces")
        else:
            body = {"name": name, "schema": SCHEMA, "properties": mark}
            path = self.warehouse.path("namespaces", self.within, self.kind)
        if self.kind == "views":
            body["view-version"] = VIEW_VERSION
        await self._change(("live", name, version), "POST", path, body)

    async def _mark(self, name: str, version: int) -> None:
        mark = {MARK: str(version + 1)}
        if self.kind == "namespaces":
            await self._change(("live", name, version + 1), "POST", f"{self.path(name)}/properties", {"updates": mark})
            return
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": mark}]}
        await self._change(("live", name, version + 1), "POST", self.path(name), body)

    async def _rename(self, name: str, version: int) -> None:
        other = self.names[1 - self.names.index(name)]
        body = {
            "source": {"namespace": [self.within], "name": name},
            "destination": {"namespace": [self.within], "name": other},
        }
        await self._change(("live", other, version), "POST", self.warehouse.path(self.kind, "rename"), body)

    async def _drop(self, name: str, version: int) -> None:
        if not await self._learn(name):
            return
        value = ("dropped", name, version) if self.warehouse.is_soft else ("absent", "", version)
        query = "?purgeRequested=true" if self.kind == "tables" else ""
        self.dropped_at = monotonic()
        await self._change(value, "DELETE", f"{self.path(name)}{query}", None)
        if self.register.is_certain:
            self._note_gone()

    async def _after_drop(self, name: str, version: int) -> None:
        late = monotonic() - self.dropped_at > UNDROP_WITHIN_S
        if late or self.rng.random() < 0.3:
            if self.location:
                self.book.gone[self.location] = self.register.name
            self.book.left.append((self.warehouse, self.kind, self.within, self.names, self.register))
            self.renew()
            return
        body = {"targets": [{"type": self.kind.removesuffix("s"), "id": self.id}]}
        path = f"{self.warehouse.managed}/deleted-tabulars/undrop"
        await self._change(("live", name, version), "POST", path, body, keyed=False)

    def _note_gone(self) -> None:
        """After a permanent drop, its files must be removed."""
        if self.register.value[0] == "absent" and self.location:  # type: ignore[index]
            self.book.gone[self.location] = self.register.name
            self.id = self.location = ""

    async def _learn(self, name: str) -> bool:
        """Its id and location, which a later undrop and the end of the soak ask for."""
        if self.id:
            return True
        if self.kind == "namespaces":
            reply = await self.book.read(
                self.rng.choice(self.book.ports), self.warehouse.path("namespaces", query="?returnUuids=true")
            )
            self.book.note(reply)
            if reply.status == 200:
                names = [each[0] for each in reply.content["namespaces"]]
                self.id = dict(zip(names, reply.content["namespace-uuids"], strict=True)).get(name, "")
            return bool(self.id)
        told = await self.look(self.rng.choice(self.book.ports), name)
        if told is not None:
            metadata = told["metadata"]
            self.id, self.location = metadata.get("table-uuid") or metadata["view-uuid"], metadata["location"]
        return bool(self.id)

    async def _change(self, value: Hashable, method: str, path: str, body: Any, *, keyed: bool | None = None) -> Reply:
        call = Call(self.rng.choice(self.book.ports), method, path, self.book.admin.token, body, {})
        again = self.rng.random() < 0.3 if keyed is None else keyed
        return await self.book.change([self.register], value, call, rng=self.rng, keyed=again)

    def _version(self, told: Any) -> Hashable:
        if told is None:
            return None
        properties = told["properties"] if self.kind == "namespaces" else told["metadata"]["properties"]
        return int(properties.get(MARK, -1))


@dataclass
class Right:
    """Whether a person may read a table; granted and revoked, and asked at once at the other replica."""

    book: Book
    table_path: str
    grants_path: str
    person: int
    rng: random.Random
    register: Register = field(init=False)

    def __post_init__(self) -> None:
        self.register = Register(f"right of person {self.person} on {self.table_path}", (False, 0))

    async def look(self, port: int) -> None:
        reply = await self.book.read(port, self.table_path, person=self.book.people[self.person])
        finding: Finding | None = None
        if reply.status in {200, 404}:
            finding = self.register.read(reply.status == 200, reply.start, reply.end, lambda value: value[0])
        self.book.note(reply, [finding])

    async def step(self) -> None:
        if not self.register.is_certain:
            if not self.book.timeline.is_settled(monotonic()):
                await asyncio.sleep(0.2)
                return
            for port in self.book.ports:
                await self.look(port)
            self.register.settle(monotonic())
            return
        has, number = cast("tuple[bool, int]", self.register.value)
        entry = {"privilege": "select", "principal": {"user": self.book.people[self.person].id}}
        here, there = self.rng.sample(self.book.ports, 2)
        call = Call(
            here, "POST", self.grants_path, self.book.admin.token, {"deletes" if has else "writes": [entry]}, {}
        )
        reply = await self.book.change([self.register], (not has, number + 1), call, rng=self.rng)
        if reply.outcome is Outcome.ACKNOWLEDGED:
            await self.look(there)
