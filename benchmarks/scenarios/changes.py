"""Drops, and changes of namespaces, views, names and several tables at once."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count

from benchmarks import metadata
from benchmarks.failures import BenchmarkError
from benchmarks.load.closed_loop import Workload
from benchmarks.load.http1 import Answer
from benchmarks.load.requests import Endpoint
from benchmarks.rest_client import Json, RestClient, in_parallel
from benchmarks.scenarios.creations import Creations
from benchmarks.scenarios.interface import NO_CONTENT, Scenario
from benchmarks.target import Target

_STOCK = 1_500
"""Objects to be dropped in one slice."""

_SQL = {"type": "sql", "sql": "select id from orders", "dialect": "spark"}


def view_version(number: int) -> Json:
    told = {"version-id": number, "timestamp-ms": 1_700_000_000_000 + number, "schema-id": 0}
    return {**told, "summary": {}, "default-namespace": ["sales"], "representations": [_SQL]}


def view(name: str) -> Json:
    return {"name": name, "schema": metadata.schema(2), "view-version": view_version(1), "properties": {}}


@dataclass(slots=True)
class Sequence:
    """A workload that asks for something else each time; `build` gets the client and the number of its request."""

    build: Callable[[int, int], bytes]
    counts: dict[int, int]
    good: frozenset[int] = NO_CONTENT
    is_head: bool = False
    keeps_bodies: bool = False

    def request(self, client: int) -> bytes:
        number = self.counts[client] = self.counts.get(client, 0) + 1
        return self.build(client, number)

    def answered(self, client: int, answer: Answer) -> None:
        """The status says all."""

    def lost(self, client: int) -> None:
        """What it did is not known; the next request does not depend on it."""


Make = Callable[[RestClient, str, str], object]


def _table(client: RestClient, namespace: str, name: str) -> object:
    return client.create_table(namespace, name, metadata.schema(2))


def _view(client: RestClient, namespace: str, name: str) -> object:
    return client.create_view(namespace, view(name))


@dataclass
class _Scenario:
    name: str
    about: str
    is_native: bool = False

    def prepare(self, target: Target) -> None:
        self._target = target
        self._numbers = count()

    def verdict(self, workload: Workload) -> str | None:  # noqa: ARG002 the status is enough
        return None

    def _place(self) -> str:
        return self._target.new_namespace(f"changes_{next(self._numbers)}")


@dataclass
class Drop(_Scenario):
    """Every slice has objects of its own, in one namespace that the caller owns."""

    kind: str = "tables"
    query: str = ""
    make: Make = _table

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:  # noqa: ARG002 the same for any number
        namespace = self._place()
        names = [f"stock_{number:05d}" for number in range(_STOCK)]
        in_parallel(partial(self.make, self._target.client, namespace, name) for name in names)
        stock = iter(names)

        def build(client: int, number: int) -> bytes:  # noqa: ARG001 whose turn it is does not matter
            name = next(stock, None)
            if name is None:
                raise BenchmarkError(f"{_STOCK} objects were dropped before the end: give fewer --seconds")
            return endpoint.request("DELETE", f"namespaces/{namespace}/{self.kind}/{name}{self.query}")

        return Sequence(build, {})


@dataclass
class DropNamespace(_Scenario):
    def workload(self, endpoint: Endpoint, clients: int) -> Workload:  # noqa: ARG002 the same for any number
        above = self._place()
        names = [f"{above}%1Fstock_{number:05d}" for number in range(_STOCK)]
        in_parallel(partial(self._target.client.create_namespace, *name.split("%1F")) for name in names)
        stock = iter(names)

        def build(client: int, number: int) -> bytes:  # noqa: ARG001 whose turn it is does not matter
            name = next(stock, None)
            if name is None:
                raise BenchmarkError(f"{_STOCK} namespaces were dropped before the end: give fewer --seconds")
            return endpoint.request("DELETE", f"namespaces/{name}")

        # those that are left would keep the one above from being dropped at the end
        self._target.at_end.append(partial(self._drop_rest, stock))
        return Sequence(build, {})

    def _drop_rest(self, stock: Iterator[str]) -> None:
        for name in stock:
            self._target.client.drop_namespace(name)


@dataclass
class UpdateNamespace(_Scenario):
    def workload(self, endpoint: Endpoint, clients: int) -> Workload:
        places = [self._place() for _ in range(clients)]

        def build(client: int, number: int) -> bytes:
            body = {"updates": {"owner": str(number)}, "removals": ["comment"]}
            return endpoint.request("POST", f"namespaces/{places[client]}/properties", body=json.dumps(body).encode())

        return Sequence(build, {})


@dataclass
class Rename(_Scenario):
    def workload(self, endpoint: Endpoint, clients: int) -> Workload:
        place = self._place()
        for client in range(clients):
            _table(self._target.client, place, f"table_{client}_0")

        def build(client: int, number: int) -> bytes:
            named = [{"namespace": [place], "name": f"table_{client}_{each}"} for each in (number - 1, number)]
            body = json.dumps(dict(zip(("source", "destination"), named, strict=True))).encode()
            return endpoint.request("POST", "tables/rename", body=body)

        return Sequence(build, {})


@dataclass
class CreateView(_Scenario):
    def workload(self, endpoint: Endpoint, clients: int) -> Workload:  # noqa: ARG002 the same for any number
        place = self._place()
        numbers = count()

        def build(name: str) -> bytes:
            return endpoint.request("POST", f"namespaces/{place}/views", body=json.dumps(view(name)).encode())

        return Creations(build, lambda: f"view_{next(numbers)}", lambda _: None, {})


@dataclass
class Transaction(_Scenario):
    """Two tables of each client."""

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:
        place = self._place()
        for client in range(clients):
            for each in "ab":
                _table(self._target.client, place, f"table_{client}_{each}")

        def build(client: int, number: int) -> bytes:
            update = {"action": "set-properties", "updates": {"n": str(number)}}
            names = [{"namespace": [place], "name": f"table_{client}_{each}"} for each in "ab"]
            changes = [{"identifier": name, "requirements": [], "updates": [update]} for name in names]
            return endpoint.request("POST", "transactions/commit", body=json.dumps({"table-changes": changes}).encode())

        return Sequence(build, {})


def changes() -> list[Scenario]:
    return [
        Drop("drop-table", "drop a table and purge its files", query="?purgeRequested=true"),
        Drop("drop-table-keep", "drop a table, keep its files", query="?purgeRequested=false"),
        Drop("drop-view", "drop a view", kind="views", make=_view),
        DropNamespace("drop-namespace", "drop an empty namespace inside another one"),
        UpdateNamespace("update-namespace", "set and remove a property, each client of a namespace of its own"),
        Rename("rename-table", "rename a table, each client its own"),
        CreateView("create-view", "create a view of 2 columns: row, metadata file, event"),
        Transaction("transaction", "one property of two tables, each client its own two"),
    ]
