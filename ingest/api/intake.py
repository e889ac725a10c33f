"""Decides where a sender's events may go, and remembers it; shared by sockets and requests."""

import json
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ingest.api.callers import Sender
from ingest.services import targets
from ingest.services.targets import Target
from lakewarden import config
from lakewarden.context import CallerKey, PrincipalId, RequestContext
from lakewarden.errors import LakewardenError
from lakewarden.fair_cache import FairCache
from lakewarden.http.call_recording import note_call, note_refused
from lakewarden.http.request_threads import ask

_KNOWN: Final[FairCache[CallerKey, tuple[UUID, str], Target]] = FairCache(config.current().ingest.known_tables)
"""The decisions of this process. They may be old: the statement that appends compares them with what is now, and
refuses those that are.
"""


class Decisions:
    """The decisions on the tables that one caller names in one warehouse. Belongs to the event loop.

    `caller` must be set before anything is asked: who the sender is by their token, which may be verified again.
    """

    def __init__(self, sender: Sender, warehouse_id: UUID, route: str) -> None:
        self._sender = sender
        self.caller: CallerKey = (PrincipalId(""), (), None)
        self._warehouse_id = warehouse_id
        self._route = route

    def find(self, tables: Sequence[str]) -> tuple[Target, ...] | None:
        """Those that were decided before, if that is all of them."""
        found = tuple(target for target in map(self._known, tables) if target is not None)
        return found if len(found) == len(tables) else None

    async def decide(self, tables: Sequence[str]) -> tuple[Target, ...]:
        """Decide on those that are not known. Raises what `targets.decide` raises, and NotAuthorized, Unavailable."""
        known = {table: target for table in tables if (target := self._known(table)) is not None}
        missing = [table for table in tables if table not in known]
        if missing:
            found = await self._decided(missing)
            newest = max(target.epoch for target in found.values())
            older = [table for table, target in known.items() if target.epoch < newest]
            # a right has changed since these were decided
            known |= found | (await self._decided(older) if older else {})
        return tuple(known[table] for table in tables)

    def forget(self, tables: Sequence[str]) -> None:
        for table in tables:
            _KNOWN.remove(self.caller, (self._warehouse_id, table))

    def _known(self, table: str) -> Target | None:
        return _KNOWN.get(self.caller, (self._warehouse_id, table))

    async def _decided(self, tables: Sequence[str]) -> dict[str, Target]:
        context = await self._sender.context()
        try:
            found = await ask(context.caller.id, lambda: self._decide(context, tables))
        except LakewardenError as error:
            note_refused(context, self._route, error, address=self._sender.address)
            raise
        note_call(context, self._route, 200)
        decided = dict(zip(tables, found, strict=True))
        for table, target in decided.items():
            _KNOWN.put(self.caller, (self._warehouse_id, table), target)
        return decided

    def _decide(self, context: RequestContext, tables: Sequence[str]) -> list[Target]:
        default = config.current().ingest.namespace
        return [targets.decide(context, self._warehouse_id, table, default=default) for table in tables]


def said(chosen: Sequence[Target]) -> str:
    """The JSON for `IngestBatch.tables`."""
    return json.dumps([each.said for each in chosen], separators=(",", ":"))
