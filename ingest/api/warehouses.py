"""Finds the warehouse that a path names, for a caller who may use it."""

from typing import Final
from uuid import UUID

from cachetools import TTLCache

from catalog.services import lakehouse
from ingest.api.routes import Asked
from lakewarden.context import CallerKey, RequestContext
from lakewarden.http.request_threads import ask

_KEPT: Final[TTLCache[tuple[CallerKey, str | None, str | None, str | None], UUID]] = TTLCache(10_000, ttl=5)
"""Names alone are remembered: rights are decided on by whatever is done in the warehouse."""


async def find(asked: Asked, context: RequestContext) -> UUID:
    """Raises NoSuchWarehouse if it is missing, hidden, inactive or ambiguous."""
    return await ask(context.caller.id, lambda: lakehouse.warehouse_id(context, asked.warehouse, project=asked.project))


async def find_for_events(asked: Asked, context: RequestContext) -> UUID:
    """The same, from memory for some seconds: for events, whose tables are decided on one by one."""
    key = (context.caller.key, context.project_id, asked.warehouse, asked.project)
    found = _KEPT.get(key)
    if found is None:
        found = _KEPT[key] = await find(asked, context)
    return found
