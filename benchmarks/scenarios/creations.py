"""Creations: every request makes something new, so each slice leaves more behind."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from benchmarks.load.closed_loop import Workload
from benchmarks.load.http1 import Answer
from benchmarks.load.requests import Endpoint
from benchmarks.metadata import SMALL, schema
from benchmarks.scenarios.interface import OK
from benchmarks.target import Target


@dataclass(slots=True)
class Creations:
    """A workload that generates names by a counter; `created` gets those that were answered with success."""

    build: Callable[[str], bytes]
    names: Callable[[], str]
    created: Callable[[str], None]
    under_way: dict[int, str]
    good: frozenset[int] = OK
    is_head: bool = False
    keeps_bodies: bool = False

    def request(self, client: int) -> bytes:
        name = self.under_way[client] = self.names()
        return self.build(name)

    def answered(self, client: int, answer: Answer) -> None:
        if answer.status in OK:
            self.created(self.under_way[client])

    def lost(self, client: int) -> None:
        """It may be there: nobody looks for it."""


class CreateNamespace:
    name = "create-namespace"
    about = "create a namespace with two properties"
    is_native = False

    def prepare(self, target: Target) -> None:
        self._target = target
        self._first = target.new_namespace("namespaces")
        self._numbers = count()

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:  # noqa: ARG002 the same for any number
        properties = {"owner": "benchmarks", "comment": "made by a measurement"}

        def build(name: str) -> bytes:
            body = json.dumps({"namespace": [name], "properties": properties}).encode()
            return endpoint.request("POST", "namespaces", body=body)

        def fresh() -> str:
            return f"{self._first}_{next(self._numbers)}"

        return Creations(build, fresh, self._target.namespaces.append, {})

    def verdict(self, workload: Workload) -> str | None:  # noqa: ARG002 the status is enough
        return None


class CreateTable:
    name = "create-table"
    about = "create a table of 14 columns: row, metadata file, event"
    is_native = True

    def prepare(self, target: Target) -> None:
        self._target = target
        self._namespace = target.new_namespace("tables")
        self._schema = json.dumps(schema(SMALL.columns))
        self._numbers = count()

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:  # noqa: ARG002 the same for any number
        def build(name: str) -> bytes:
            body = f'{{"name":"{name}","schema":{self._schema},"stage-create":false}}'.encode()
            return endpoint.request("POST", f"namespaces/{self._namespace}/tables", body=body)

        def fresh() -> str:
            return f"table_{next(self._numbers)}"

        self._made: list[str] = []
        return Creations(build, fresh, self._made.append, {})

    def verdict(self, workload: Workload) -> str | None:  # noqa: ARG002 what was made is known
        """The last one is there: with its row, its document and what its creator owns of it."""
        if self._made:
            columns = self._target.client.load(self._namespace, self._made[-1])["metadata"]["schemas"][0]["fields"]
            if len(columns) != SMALL.columns:
                return f"{self._namespace}.{self._made[-1]} has {len(columns)} columns instead of {SMALL.columns}"
        return None
