"""Finds the warehouse that a path names, for a caller who may use it."""

from typing import Final
from uuid import UUID

from cachetools import LRUCache, TTLCache

from catalog.services import lakehouse
from ingest.api.routes import Asked
from ingest.services import storing
from lakewarden.authz.actions import WarehouseAction
from lakewarden.context import CallerKey, RequestContext
from lakewarden.errors import Unavailable
from lakewarden.http.request_threads import ask
from lakewarden.names import match_key
from tenants import access

_KEPT: Final[TTLCache[tuple[CallerKey, str | None, str | None, str | None], UUID]] = TTLCache(10_000, ttl=5)
"""Names alone are remembered: rights are decided on by whatever is done in the warehouse."""
_LAST: Final[LRUCache[tuple[CallerKey, str | None, str | None, str | None], UUID]] = LRUCache(10_000)
"""For as long as the database does not answer, if there is a fallback file."""


async def find(asked: Asked, context: RequestContext) -> UUID:
    """Raises NoSuchWarehouse if it is missing, hidden, inactive or ambiguous."""
    return await ask(context.caller.id, lambda: lakehouse.warehouse_id(context, asked.warehouse, project=asked.project))


async def find_for_events(asked: Asked, context: RequestContext) -> UUID:
    """The same, from memory for some seconds: for events, whose tables are decided on one by one."""
    name = None if asked.warehouse is None else match_key(asked.warehouse)  # not one entry for each spelling
    key = (context.caller.key, context.project_id, name, asked.project)
    found = _KEPT.get(key)
    if found is None:
        try:
            found = _KEPT[key] = _LAST[key] = await find(asked, context)
        except Unavailable:
            found = None if storing.FALLBACK is None else _LAST.get(key)
            if found is None:
                raise
    return found


async def shows_everything(context: RequestContext, warehouse_id: UUID) -> bool:
    """Whether a caller who may use the warehouse also sees what others do in it. Raises NoSuchWarehouse."""
    granted = await ask(context.caller.id, lambda: access.warehouse(context, warehouse_id, WarehouseAction.USE))
    return granted.allows(WarehouseAction.GET_ENDPOINT_STATISTICS)
