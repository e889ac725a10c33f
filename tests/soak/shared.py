"""Tables that all clients commit to at once: snapshots and properties that only grow, alone and in transactions."""

import random
from dataclasses import dataclass, field
from time import time
from typing import Any

from tests.integration.replicas.exchange import Call
from tests.integration.replicas.pair import SCHEMA
from tests.soak.book import Book, Warehouse
from tests.soak.ledger import Finding, GrowingSet, Outcome
from tests.soak.wire import Reply

MOST_COMMITS = 60
"""Then another table takes its place: metadata files grow with each commit."""
NAMESPACE = "shared"
_CONFLICT = frozenset({409})
_SNAPSHOT, _PROPERTY = "s", "op-"


@dataclass
class Shared:
    name: str
    path: str
    elements: GrowingSet
    location: str = ""

    @property
    def is_full(self) -> bool:
        return len(self.elements.writes) >= MOST_COMMITS

    def judge(self, reply: Reply) -> list[Finding]:
        """What a load showed."""
        if reply.status != 200:
            return []
        return self.elements.read(elements(reply.content["metadata"]), reply.start, reply.end)


def elements(metadata: dict[str, Any]) -> list[str]:
    found = [f"{_SNAPSHOT}{each['snapshot-id']}" for each in metadata.get("snapshots", [])]
    return found + [name for name in metadata["properties"] if name.startswith(_PROPERTY)]


@dataclass
class SharedTables:
    """`open` are those that are committed to; `full` ones are only read."""

    book: Book
    warehouse: Warehouse
    open: list[Shared] = field(default_factory=list)
    full: list[Shared] = field(default_factory=list)
    pairs: list[tuple[str, Shared, Shared]] = field(default_factory=list)
    """Elements that a transaction adds to two tables: to both or to none."""

    @property
    def all(self) -> list[Shared]:
        return [*self.open, *self.full]

    async def add(self, rng: random.Random) -> None:
        """Make a table, again under another name until that is acknowledged."""
        name = f"t{self.book.next_number()}"
        body = {"name": name, "schema": SCHEMA, "properties": {"format-version": "1"}}
        path = self.warehouse.path("namespaces", NAMESPACE, "tables")
        made = GrowingSet(f"creation of {name}")
        call = Call(rng.choice(self.book.ports), "POST", path, self.book.admin.token, body, {})
        reply = await self.book.change([made], name, call, rng=rng)
        if reply.outcome is Outcome.ACKNOWLEDGED:
            self.open.append(
                Shared(name, f"{path}/{name}", GrowingSet(f"table {name}"), reply.content["metadata"]["location"])
            )

    async def replace_full(self, rng: random.Random) -> None:
        for table in [each for each in self.open if each.is_full]:
            self.open.remove(table)
            self.full.append(table)
            await self.add(rng)

    async def commit(self, rng: random.Random) -> None:
        """One commit, of one table or of two."""
        if len(self.open) < 2:
            await self.add(rng)
            return
        choice = rng.random()
        if choice < 0.2:
            await self._transaction(rng, *rng.sample(self.open, 2))
            return
        table = rng.choice(self.open)
        number = self.book.next_number()
        value = f"{_SNAPSHOT}{number}" if choice < 0.7 else f"{_PROPERTY}{number}"
        body = {"requirements": [], "updates": updates(value, table.location)}
        call = Call(rng.choice(self.book.ports), "POST", table.path, self.book.admin.token, body, {})
        reply = await self.book.change(
            [table.elements], value, call, rng=rng, keyed=rng.random() < 0.4, may_refuse=_CONFLICT
        )
        self.book.commits += reply.outcome is Outcome.ACKNOWLEDGED

    async def _transaction(self, rng: random.Random, one: Shared, two: Shared) -> None:
        number = self.book.next_number()
        value = f"{_SNAPSHOT}{number}" if rng.random() < 0.5 else f"{_PROPERTY}{number}"
        changes = [
            {
                "identifier": {"namespace": [NAMESPACE], "name": each.name},
                "requirements": [],
                "updates": updates(value, each.location),
            }
            for each in (one, two)
        ]
        path = self.warehouse.path("transactions", "commit")
        call = Call(rng.choice(self.book.ports), "POST", path, self.book.admin.token, {"table-changes": changes}, {})
        self.pairs.append((value, one, two))
        objects = [one.elements, two.elements]
        reply = await self.book.change(
            objects, value, call, rng=rng, keyed=rng.random() < 0.4, may_refuse=_CONFLICT, changes=len(objects)
        )
        self.book.commits += len(objects) * (reply.outcome is Outcome.ACKNOWLEDGED)

    async def look(self, rng: random.Random) -> None:
        """Load one of them, or ask only whether it is there."""
        table = rng.choice(self.open or self.full)
        method = "HEAD" if rng.random() < 0.2 else "GET"
        reply = await self.book.read(rng.choice(self.book.ports), table.path, method=method)
        findings = table.judge(reply) if method == "GET" else []
        if reply.status == 404:
            findings.append(table.elements.missing(reply.end))
        self.book.note(reply, findings)


def updates(value: str, location: str) -> list[dict[str, Any]]:
    if value.startswith(_PROPERTY):
        return [{"action": "set-properties", "updates": {value: "x"}}]
    identifier = int(value.removeprefix(_SNAPSHOT))
    snapshot = {
        "snapshot-id": identifier,
        "timestamp-ms": int(time() * 1000),
        "manifest-list": f"{location}/metadata/snap-{identifier}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return [{"action": "add-snapshot", "snapshot": snapshot}]
