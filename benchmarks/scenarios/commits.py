"""Commits: properties on tables apart and on one table, with a ledger; appends to tables with 1,000 snapshots."""

import json
from dataclasses import dataclass, field

from benchmarks import metadata
from benchmarks.load.closed_loop import Workload
from benchmarks.load.http1 import Answer
from benchmarks.load.requests import Endpoint
from benchmarks.metadata import BUSY, WORN
from benchmarks.rest_client import Json, metadata_location
from benchmarks.scenarios.fixtures import put_table
from benchmarks.scenarios.interface import OK
from benchmarks.scenarios.ledger import Ledger
from benchmarks.target import Target

_SERVER_ERROR = 500


def commit_body(uuid: str, requirements: list[Json], updates: list[Json]) -> bytes:
    required = [{"type": "assert-table-uuid", "uuid": uuid}, *requirements]
    return json.dumps({"requirements": required, "updates": updates}).encode()


@dataclass(slots=True)
class PropertyWorkload:
    """Client n sets its own property to 1, 2, 3 …; `ledgers` and `uuids` are by client, equal on one table."""

    endpoint: Endpoint
    ledgers: list[Ledger]
    uuids: list[str]
    good: frozenset[int] = OK
    is_head: bool = False
    keeps_bodies: bool = True
    counts: dict[int, int] = field(default_factory=dict)

    def request(self, client: int) -> bytes:
        number = self.counts[client] = self.counts.get(client, 0) + 1
        update = {"action": "set-properties", "updates": {f"client-{client}": str(number)}}
        ledger = self.ledgers[client]
        path = f"namespaces/{ledger.namespace}/tables/{ledger.table}"
        return self.endpoint.request("POST", path, body=commit_body(self.uuids[client], [], [update]))

    def answered(self, client: int, answer: Answer) -> None:
        ledger = self.ledgers[client]
        if answer.status in OK:
            ledger.acknowledged.append(metadata_location(answer))
            ledger.properties[f"client-{client}"] = str(self.counts[client])
        elif answer.status >= _SERVER_ERROR:
            ledger.unknown += 1

    def lost(self, client: int) -> None:
        self.ledgers[client].unknown += 1


@dataclass
class PropertyCommits:
    """`is_contended`: all clients commit to one table. Every slice has tables of its own."""

    name: str
    about: str
    is_contended: bool
    is_native: bool = True

    def prepare(self, target: Target) -> None:
        self._target = target
        self._namespace = target.new_namespace("commits")
        self._slices = 0

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:
        self._slices += 1
        ledgers, uuids = [], []
        for number in range(1 if self.is_contended else clients):
            table = f"slice_{self._slices}_table_{number}"
            made = put_table(self._target, self._namespace, table, WORN)
            ledgers.append(Ledger(self._namespace, table, made["metadata-location"]))
            uuids.append(made["metadata"]["table-uuid"])
        if self.is_contended:
            ledgers, uuids = ledgers * clients, uuids * clients
        return PropertyWorkload(endpoint, ledgers, uuids)

    def verdict(self, workload: Workload) -> str | None:
        assert isinstance(workload, PropertyWorkload)  # noqa: S101 the runner gives back what it got
        ledgers = workload.ledgers[:1] if self.is_contended else workload.ledgers
        wrong = [found for ledger in ledgers if (found := ledger.check(self._target.client)) is not None]
        return "; ".join(wrong) or None


@dataclass(slots=True)
class BusyTable:
    """A table with many snapshots and how many it has now."""

    name: str
    uuid: str
    location: str
    snapshots: int


@dataclass(slots=True)
class SnapshotWorkload:
    """Client n appends to table n, as an engine does: the new snapshot and the branch that points to it."""

    endpoint: Endpoint
    namespace: str
    tables: list[BusyTable]
    good: frozenset[int] = OK
    is_head: bool = False
    keeps_bodies: bool = False

    def request(self, client: int) -> bytes:
        table = self.tables[client]
        present = metadata.snapshot_id(table.snapshots)
        required = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": present}
        updates = metadata.append_updates(table.snapshots + 1, table.snapshots + 1, table.location)
        path = f"namespaces/{self.namespace}/tables/{table.name}"
        return self.endpoint.request("POST", path, body=commit_body(table.uuid, [required], updates))

    def answered(self, client: int, answer: Answer) -> None:
        if answer.status in OK:
            self.tables[client].snapshots += 1

    def lost(self, client: int) -> None:
        """Its next append is refused if this one was applied."""


class SnapshotCommits:
    name = "commit-snapshots"
    about = "append to tables of 1,000 snapshots and 200 columns, each client to its own"
    is_native = False

    def prepare(self, target: Target) -> None:
        self._target = target
        self._namespace = target.new_namespace("appends")
        self._tables: list[BusyTable] = []

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:
        while len(self._tables) < clients:
            name = f"busy_{len(self._tables)}"
            made = put_table(self._target, self._namespace, name, BUSY)["metadata"]
            self._tables.append(BusyTable(name, made["table-uuid"], made["location"], BUSY.snapshots))
        return SnapshotWorkload(endpoint, self._namespace, self._tables)

    def verdict(self, workload: Workload) -> str | None:  # noqa: ARG002 the requirement of each append is its proof
        return None
