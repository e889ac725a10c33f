"""Asks the pipeline for a flush and waits for what it did; reads what the pipeline says of itself."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from ingest.services.statements import run
from lakewarden import config
from lakewarden.hot.batches import Batches
from lakewarden.hot.sessions import Lookup
from lakewarden.ids import new_id

NOT_RUNNING: Final = (
    "The pipeline is not running: start it with `lakewarden pipeline`. Nothing is lost: the events wait in the log"
)
_POLL_S: Final = (0.05, 0.1, 0.2, 0.4)
_AT_ONCE: Final = 2
_ANY_NUMBER: Final = 1_000_000
_NOT_FOR_ALL: Final = "The flush failed; only those who may see everything in the warehouse can read why"
_IN_PROGRESS: Final[dict[UUID, Batches[str, dict[str, Any]]]] = {}


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What it last said; `is_running` unless it has been silent for too long."""

    is_running: bool
    state: str
    error: str
    last_flush_at: datetime | None
    freshness: dict[str, Any]


async def pipeline(warehouse_id: UUID) -> Pipeline | None:
    """None: there never was one. Raises LogUnavailable."""
    rows = await run(_PIPELINE, [[warehouse_id]])
    if not rows:
        return None
    heartbeat, state, error, last_flush_at, freshness = rows[0]
    silence = (datetime.now(UTC) - heartbeat).total_seconds()
    is_running = silence <= config.current().ingest.pipeline_silence_s
    return Pipeline(is_running, state, error, last_flush_at, json.loads(freshness))


async def flush(warehouse_id: UUID, *, requested_by: str) -> dict[str, Any]:
    """The members of the answer to a flush of everything that is in the log by now. Raises LogUnavailable.

    Requests for the same positions share one row, and one flush; those that arrive while others are waited for share
    the next one.
    """
    found = _IN_PROGRESS.get(warehouse_id)
    if found is None:
        flushing = partial(_flush, warehouse_id)
        found = _IN_PROGRESS[warehouse_id] = Batches(flushing, most=_ANY_NUMBER, at_once=_AT_ONCE)
    return await found.do(requested_by, caller=requested_by)


def without_names(result: dict[str, Any]) -> dict[str, Any]:
    """The same for a caller who may not see all tables: paths and errors name them."""
    hidden = {"error": _NOT_FOR_ALL} if result.get("error") not in {None, NOT_RUNNING} else {}
    return result | {"paths": []} | hidden


async def _flush(warehouse_id: UUID, requested_by: Sequence[str]) -> list[dict[str, Any]]:
    return [await _flushed(warehouse_id, requested_by[0])] * len(requested_by)


async def _flushed(warehouse_id: UUID, requested_by: str) -> dict[str, Any]:
    began = time.monotonic()
    rows = await run(_ASK, [[new_id()], [warehouse_id], [requested_by]])
    if not rows:
        return _answer(began, success=True)  # nothing was ever sent
    identifier, is_flushed, used_fallback, _ = rows[0]
    if is_flushed:
        return _answer(began, success=True)
    found = await pipeline(warehouse_id)
    if found is None or not found.is_running:
        await run(_WITHDRAW, [[identifier]])
        return _answer(began, success=False, error=NOT_RUNNING)
    timeout_s = config.current().ingest.flush_timeout_s
    pauses = iter(_POLL_S)
    while time.monotonic() - began < timeout_s:
        await asyncio.sleep(next(pauses, _POLL_S[-1]))
        answered = await run(_ANSWERED, [[identifier]])
        if not answered:
            return _answer(began, success=False, error="The request was withdrawn, because the pipeline is not running")
        state, result = answered[0]
        if state != "pending":
            return _answer(began, success=state == "done", **json.loads(result) | {"usedFallback": used_fallback})
    return _answer(began, success=False, error=f"The pipeline has not answered for {timeout_s:g} s; it goes on")


def _answer(began: float, *, success: bool, **found: Any) -> dict[str, Any]:  # noqa: ANN401 JSON
    return {
        "success": success,
        "batchesFlushed": 0,
        "eventsFlushed": 0,
        "bytesWritten": 0,
        "paths": [],
        "durationMs": round((time.monotonic() - began) * 1000),
        "usedFallback": False,
        **{name: value for name, value in found.items() if name != "success"},
    }


_PIPELINE: Final = Lookup("""
    select p.heartbeat_at, p.state, p.error, p.last_flush_at, p.freshness::text
    from unnest(%s::uuid[]) as k(id) join ingest_pipeline p on p.warehouse_id = k.id
""")
_ASK: Final = Lookup("""
    with asked as (
        select g.id, g.requested_by, h.warehouse_id, h.last_position, h.flushed_position, h.fallback_position
        from unnest(%s::uuid[], %s::uuid[], %s::text[]) as g(id, warehouse_id, requested_by)
        join ingest_log_head h using (warehouse_id)
    ),
    same as (
        select f.id from ingest_flush_request f join asked a using (warehouse_id)
        where f.state = 'pending' and f.upto_position = a.last_position limit 1
    ),
    added as (
        insert into ingest_flush_request (id, warehouse_id, requested_at, requested_by, upto_position)
        select id, warehouse_id, now(), requested_by, last_position from asked
        where last_position > flushed_position and not exists (select 1 from same)
        returning id, warehouse_id
    ),
    told as (select pg_notify('ingest_flush', warehouse_id::text) from added)
    select coalesce((select id from same), a.id), a.last_position <= a.flushed_position,
           a.fallback_position > a.flushed_position, (select count(*) from told)
    from asked a
""")
_WITHDRAW: Final = Lookup("delete from ingest_flush_request where id = (%s::uuid[])[1] and state = 'pending'")
_ANSWERED: Final = Lookup("""
    select f.state, f.result::text from unnest(%s::uuid[]) as k(id) join ingest_flush_request f on f.id = k.id
""")
