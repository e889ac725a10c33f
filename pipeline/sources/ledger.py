"""What the pipeline and the gateway tell each other in Postgres: leases, states, flush requests, positions."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg

from ingest.log_statements import MARK_FLUSHED
from lakewarden.errors import InternalError, Unavailable
from pipeline.sources.postgres_log import connect
from pipeline.sources.table_locks import RELEASE, TRY, lock_key


@dataclass(frozen=True, slots=True)
class IngestWarehouse:
    """A warehouse with a log. `name` is `<project>/<name>`, as `GET /v1/config?warehouse=` takes it."""

    id: UUID
    log_id: UUID
    name: str
    storage: str


@dataclass(frozen=True, slots=True)
class Head:
    """How far the log goes, and how far of it is in snapshots."""

    last_position: int
    flushed_position: int


@dataclass(frozen=True, slots=True)
class FlushRequest:
    """Somebody waits until everything up to the position is in snapshots."""

    id: UUID
    upto_position: int
    age_s: float


_WAREHOUSES = """
    select h.warehouse_id, h.log_id, w.project_id || '/' || w.name, w.storage_profile ->> 'type'
    from ingest_log_head h join warehouse w on w.id = h.warehouse_id
    where w.status = 'active' order by h.warehouse_id
"""
_STORAGES = "select distinct storage_profile ->> 'type' from warehouse where status = 'active'"
_LEASE = """
    insert into ingest_pipeline (warehouse_id, instance, heartbeat_at, state, freshness)
    values (%(warehouse)s, %(instance)s, clock_timestamp(), 'recovering', '{}')
    on conflict (warehouse_id) do update
    set instance = excluded.instance, heartbeat_at = excluded.heartbeat_at, state = 'recovering', error = ''
    where ingest_pipeline.instance in ('', %(instance)s)
       or ingest_pipeline.heartbeat_at < clock_timestamp() - make_interval(secs => %(lease_s)s)
    returning instance
"""
_HOLDER = (
    "select instance, extract(epoch from clock_timestamp() - heartbeat_at) from ingest_pipeline where warehouse_id = %s"
)
_BEAT = """
    update ingest_pipeline
    set heartbeat_at = clock_timestamp(), state = %(state)s, error = %(error)s,
        last_flush_at = coalesce(to_timestamp(%(flushed_at)s), last_flush_at),
        last_flush = coalesce(%(last_flush)s::jsonb, last_flush), freshness = %(freshness)s::jsonb
    where warehouse_id = %(warehouse)s and instance = %(instance)s
    returning 1
"""
_RELEASE = """
    update ingest_pipeline set instance = '', heartbeat_at = to_timestamp(0), state = 'idle'
    where warehouse_id = %s and instance = %s
"""
_REQUESTS = """
    select id, upto_position, extract(epoch from clock_timestamp() - requested_at) from ingest_flush_request
    where warehouse_id = %s and state = 'pending' order by upto_position
"""
_ANSWER = "update ingest_flush_request set state = %s, result = %s::jsonb where id = %s and state = 'pending'"
_REQUEST = """
    insert into ingest_flush_request (id, warehouse_id, requested_at, requested_by, upto_position)
    select %s, warehouse_id, clock_timestamp(), %s, last_position from ingest_log_head where warehouse_id = %s
"""
_REMOVE = "delete from ingest_flush_request where id = %s"


class Ledger:
    """One connection, opened again when it was lost; for all threads of the pipeline. Raises `Unavailable`."""

    def __init__(self, dsn: str, *, instance: str) -> None:
        self._dsn = dsn
        self.instance = instance
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def warehouses(self) -> list[IngestWarehouse]:
        """The active warehouses with a log."""
        return [IngestWarehouse(*row) for row in self._ask(_WAREHOUSES, ())]

    def storages(self) -> set[str]:
        """The types of storage of all active warehouses."""
        return {storage for (storage,) in self._ask(_STORAGES, ())}

    def head(self, warehouse: UUID) -> Head:
        rows = self._ask(
            "select last_position, flushed_position from ingest_log_head where warehouse_id = %s", (warehouse,)
        )
        if not rows:
            raise Unavailable(f"The log of warehouse {warehouse} is gone: was the warehouse deleted?")
        return Head(*rows[0])

    def take_lease(self, warehouse: UUID, *, lease_s: float) -> str | None:
        """None when this process holds it now, else who does. A holder that was silent for `lease_s` loses it."""
        if self._ask(_LEASE, {"warehouse": warehouse, "instance": self.instance, "lease_s": lease_s}):
            return None
        rows = self._ask(_HOLDER, (warehouse,))
        return f"{rows[0][0]}, heard of {float(rows[0][1]):.0f} s ago" if rows else "another pipeline"

    def beat(self, warehouse: UUID, status: Mapping[str, object]) -> bool:
        """Say that we are here, and how it goes. False: the lease is another's now."""
        return bool(self._ask(_BEAT, {"warehouse": warehouse, "instance": self.instance, **status}))

    def release(self, warehouse: UUID) -> None:
        self._ask(_RELEASE, (warehouse, self.instance))

    def mark_flushed(self, warehouse: UUID, upto: int) -> None:
        """Everything up to the position is in snapshots: from now on the gateway says so, and may drop it."""
        self._ask(MARK_FLUSHED, {"warehouse_id": warehouse, "upto": upto})

    def try_lock(self, warehouse: UUID, table: Sequence[str]) -> bool:
        """False if maintenance works on the table now. The lock ends with the connection, too."""
        ((is_locked,),) = self._ask(TRY, lock_key(warehouse, table))
        return bool(is_locked)

    def unlock(self, warehouse: UUID, table: Sequence[str]) -> None:
        self._ask(RELEASE, lock_key(warehouse, table))

    def requests(self, warehouse: UUID) -> list[FlushRequest]:
        rows = self._ask(_REQUESTS, (warehouse,))
        return [FlushRequest(identifier, upto, float(age)) for identifier, upto, age in rows]

    def answer(self, request: UUID, *, done: bool, result: Mapping[str, object]) -> None:
        self._ask(_ANSWER, ("done" if done else "failed", json.dumps(result), request))

    def request_flush(self, warehouse: UUID) -> UUID:
        """Our own request, at the end of the process; to be removed by `remove_request`."""
        identifier = uuid4()
        self._ask(_REQUEST, (identifier, "pipeline", warehouse))
        return identifier

    def remove_request(self, request: UUID) -> None:
        self._ask(_REMOVE, (request,))

    def _ask(self, statement: str, parameters: Mapping[str, object] | Sequence[object]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = connect(self._dsn)
                cursor = self._connection.execute(statement, parameters)
                return cursor.fetchall() if cursor.description else []
            except psycopg.OperationalError as error:
                if self._connection is not None:
                    self._connection.close()
                raise Unavailable(f"The database does not answer: {_first_line(error)}.") from error
            except psycopg.Error as error:
                raise InternalError(
                    f"The database refuses what the pipeline notes there: {_first_line(error)}."
                ) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
