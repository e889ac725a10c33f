"""Appends to the durable log as the gateway does: positions in the order of commits, content byte for byte."""

import gzip
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import psycopg

from ingest.references import IN_KAFKA

_HEAD = """
    insert into ingest_log_head (warehouse_id) values (%s) on conflict do nothing
"""
_MOVE = """
    update ingest_log_head
    set last_position = last_position + 1, buffered_batches = buffered_batches + 1,
        buffered_events = buffered_events + %(events)s, buffered_bytes = buffered_bytes + %(bytes)s,
        total_batches = total_batches + 1, total_events = total_events + %(events)s,
        total_bytes = total_bytes + %(bytes)s, newest_at = clock_timestamp()
    where warehouse_id = %(warehouse)s returning last_position
"""
_ADD = """
    insert into ingest_batch (warehouse_id, position, source_id, principal, sequence_number, received_at, events,
                              bytes, encoding, tables, content)
    values (%(warehouse)s, %(position)s, 'test', 'oidc~test', %(position)s, clock_timestamp(), %(events)s, %(bytes)s,
            %(encoding)s, %(tables)s, %(content)s)
"""

_FORGET = """
    with again as (
        select count(*) as batches, sum(events) as events, sum(bytes) as bytes from ingest_batch
        where warehouse_id = %(warehouse)s and position > %(after)s
    )
    update ingest_log_head h
    set flushed_position = %(after)s, buffered_batches = a.batches, buffered_events = a.events, buffered_bytes = a.bytes
    from again a where h.warehouse_id = %(warehouse)s
"""

Event = Mapping[str, Any]


class DurableLog:
    """The log of one warehouse. `namespace` is where tables without a namespace are."""

    def __init__(self, url: str, warehouse: UUID | str, *, namespace: Sequence[str]) -> None:
        self.warehouse = str(warehouse)
        self.namespace = list(namespace)
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute(_HEAD, (self.warehouse,))

    def close(self) -> None:
        self._connection.close()

    def append(
        self, events: Iterable[Event] | str, *, compressed: bool = False, into: Callable[[bytes], bytes] | None = None
    ) -> int:
        """One batch; returns its position. `events` as JSON text are stored as they are written.

        `into` puts the content elsewhere, and returns the reference to it.
        """
        text = events if isinstance(events, str) else json.dumps(list(events))
        parsed = json.loads(text)
        named = dict.fromkeys(event["table"] for event in parsed)
        described = [
            {
                "table": name,
                "namespace": [*self.namespace, *name.split(".")[:-1]],
                "name": name.split(".")[-1],
                "id": None,
            }
            for name in named
        ]
        content = text.encode()
        values = {"warehouse": self.warehouse, "events": len(parsed), "bytes": len(content)}
        stored = gzip.compress(content) if compressed else content
        with self._connection.transaction():
            row = self._connection.execute(_MOVE, values).fetchone()
            assert row is not None
            batch = {
                "position": row[0],
                "encoding": int(compressed) + (IN_KAFKA if into else 0),
                "tables": json.dumps(described),
                "content": into(stored) if into else stored,
            }
            self._connection.execute(_ADD, values | batch)
        return int(row[0])

    def positions(self) -> tuple[int, int]:
        """The last one, and the one up to which everything is in snapshots."""
        row = self._connection.execute(
            "select last_position, flushed_position from ingest_log_head where warehouse_id = %s", (self.warehouse,)
        ).fetchone()
        assert row is not None
        return row[0], row[1]

    def forget_flushes(self, *, after: int) -> None:
        """As if the pipeline had ended before it noted that it has flushed what is behind the position."""
        self._connection.execute(_FORGET, {"warehouse": self.warehouse, "after": after})

    def answer_to(self, request: UUID, *, deadline_s: float) -> dict[str, Any]:
        """What the pipeline answers to a flush request."""
        deadline = time.monotonic() + deadline_s
        while True:
            state, result = self.query("select state, result from ingest_flush_request where id = %s", request)[0]
            if state != "pending":
                assert isinstance(result, dict)
                return result
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def query(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, parameters).fetchall()


def change(
    table: str,
    row: str,
    sequence: int,
    values: Mapping[str, Any] | None = None,
    *,
    operation: str = "INSERT",
    timestamp: int = 1_764_000_000_000,
    metadata: Mapping[str, Any] | None = None,
) -> Event:
    """An event of the wire format; a delete carries its values as `before`."""
    event: dict[str, Any] = {
        "sequence": sequence,
        "timestamp": timestamp + sequence,
        "operation": operation,
        "table": table,
        "rowId": row,
        "before" if operation == "DELETE" else "after": values,
    }
    return event | ({"metadata": metadata} if metadata else {})
