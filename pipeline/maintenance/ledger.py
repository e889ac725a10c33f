"""What maintenance keeps in Postgres: a lock for each table, and what was done."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg

from lakewarden.errors import NotFound, Unavailable
from pipeline.maintenance.policy import Operation
from pipeline.sources.table_locks import RELEASE, TRY, lock_key

CONNECT_TIMEOUT_S = 10
PAUSE_S = 0.05
"""Between two looks at a lock: shorter than what passes between two flushes of a busy table."""

_WAREHOUSE = """
    select id, project_id || '/' || name, storage_profile ->> 'type' = 's3' from warehouse
    where status = 'active' and coalesce(%(name)s::text in (name, project_id || '/' || name, id::text), true)
    order by id
"""
_RECORD = """
    insert into ingest_maintenance_run (
        id, warehouse_id, table_name, operation, state, began_at, ended_at,
        files_before, files_after, bytes_before, bytes_after, reason, error
    ) values (
        %(id)s, %(warehouse)s, %(table)s, %(operation)s, %(state)s, to_timestamp(%(began)s), to_timestamp(%(ended)s),
        %(files_before)s, %(files_after)s, %(bytes_before)s, %(bytes_after)s, %(reason)s, %(error)s
    )
"""
_FORGET = """
    delete from ingest_maintenance_run
    where warehouse_id = %s and ended_at < clock_timestamp() - make_interval(days => %s)
"""
_LAST = """
    select operation, extract(epoch from max(ended_at))::float8 from ingest_maintenance_run
    where warehouse_id = %(warehouse)s and table_name = %(table)s group by operation
"""
_HISTORY = """
    select table_name, operation, state, to_char(began_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') as began,
        extract(epoch from ended_at - began_at)::float8 as seconds,
        files_before, files_after, bytes_before, bytes_after, reason, error
    from ingest_maintenance_run
    where warehouse_id = %(warehouse)s and (%(table)s::text is null or table_name = %(table)s)
    order by ended_at desc, id desc limit %(limit)s
"""
_SHOWN = (
    "table",
    "operation",
    "state",
    "began",
    "seconds",
    "files_before",
    "files_after",
    "bytes_before",
    "bytes_after",
    "reason",
    "error",
)


@dataclass(frozen=True, slots=True)
class Done:
    """One operation on one table. Figures are of the files that it is about; times in seconds since 1970."""

    warehouse: UUID
    table: str
    operation: Operation
    state: str
    began: float
    ended: float
    reason: str
    files_before: int | None = None
    files_after: int | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None
    error: str = ""


class Ledger:
    """One connection, which holds the locks: they end with it. Raises `Unavailable`."""

    def __init__(self, dsn: str, *, history_days: int = 90) -> None:
        self._history_days = history_days
        try:
            self._connection = psycopg.connect(dsn, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
        except psycopg.Error as error:
            raise Unavailable(f"The database cannot be reached: {str(error).strip()}") from error

    def close(self) -> None:
        self._connection.close()

    def warehouse(self, name: str | None) -> tuple[UUID, str, bool]:
        """The id, the name as `GET /v1/config?warehouse=` takes it, and whether it lies on S3.

        `name` may be an id, or that of a warehouse of any project; None stands for the only one. Raises `NotFound`.
        """
        found: list[tuple[UUID, str, bool]] = self._ask(_WAREHOUSE, {"name": name})
        if not found:
            raise NotFound("There is no warehouse." if name is None else f"The warehouse {name!r} does not exist.")
        if len(found) > 1:
            several = ", ".join(full for _, full, _ in found)
            raise NotFound(f"There are several warehouses: {several}. Give --warehouse <project>/<name>.")
        return found[0]

    @contextmanager
    def locked(self, warehouse: UUID, table: Sequence[str], *, wait_s: float = 0.0) -> Iterator[bool]:
        """Whether the table is locked for us until the end of the block; False if flushes write to it for `wait_s`."""
        key = lock_key(warehouse, table)
        deadline = time.monotonic() + wait_s
        while not (is_locked := self._ask(TRY, key)[0][0]) and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
        try:
            yield bool(is_locked)
        finally:
            if is_locked:
                self._ask(RELEASE, key)

    def record(self, done: Done) -> None:
        self._ask(_RECORD, asdict(done) | {"id": uuid4(), "operation": str(done.operation)})
        self._ask(_FORGET, (done.warehouse, self._history_days))

    def last(self, warehouse: UUID, table: str) -> Mapping[str, float]:
        """When each operation ended last, also in failure, in seconds since 1970."""
        return dict(self._ask(_LAST, {"warehouse": warehouse, "table": table}))

    def history(self, warehouse: UUID, table: str | None, limit: int) -> list[dict[str, Any]]:
        """The newest first."""
        rows = self._ask(_HISTORY, {"warehouse": warehouse, "table": table, "limit": limit})
        return [dict(zip(_SHOWN, row, strict=True)) for row in rows]

    def _ask(self, statement: str, values: Mapping[str, object] | Sequence[object]) -> list[Any]:
        try:
            cursor = self._connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise Unavailable(f"The database cannot be used: {str(error).strip()}") from error
