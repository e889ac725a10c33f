"""Decides where a sender's events may go, and appends them; shared by sockets and requests."""

import json
from collections.abc import Sequence
from uuid import UUID

from cachetools import LRUCache

from ingest.api.callers import Sender
from ingest.services import targets
from ingest.services.targets import Target
from lakewarden import config
from lakewarden.context import RequestContext
from lakewarden.errors import LakewardenError
from lakewarden.http.call_recording import note_call, note_refused
from lakewarden.http.request_threads import ask

_REMEMBERED = 1000


class Decisions:
    """The decisions on the tables that one caller has named.

    They may be old: the statement that appends compares them with what is now, and refuses those that are.
    """

    def __init__(self, sender: Sender, warehouse_id: UUID, route: str) -> None:
        self._sender = sender
        self._warehouse_id = warehouse_id
        self._route = route
        self._known: LRUCache[str, Target] = LRUCache(_REMEMBERED)

    def find(self, tables: Sequence[str]) -> tuple[Target, ...] | None:
        """Those that were decided before, if that is all of them."""
        known = self._known
        found = [known.get(table) for table in tables]
        return None if None in found else tuple(each for each in found if each is not None)

    async def decide(self, tables: Sequence[str]) -> tuple[Target, ...]:
        """Decide on those that are not known. Raises what `targets.decide` raises, and NotAuthorized, Unavailable."""
        missing = [table for table in tables if table not in self._known]
        if missing:
            context = await self._sender.context()
            try:
                found = await ask(context.caller.id, lambda: self._decided(context, missing))
            except LakewardenError as error:
                note_refused(context, self._route, error, address=self._sender.address)
                raise
            note_call(context, self._route, 200)
            if len({each.epoch for each in (*found, *self._known.values())}) > 1:
                self.forget()  # a right has changed since the others were decided
            self._known.update(zip(missing, found, strict=True))
        decided = self.find(tables)
        return decided if decided is not None else await self.decide(tables)

    def forget(self) -> None:
        self._known.clear()

    def _decided(self, context: RequestContext, tables: Sequence[str]) -> list[Target]:
        default = config.current().ingest.namespace
        return [targets.decide(context, self._warehouse_id, table, default=default) for table in tables]


def said(chosen: Sequence[Target]) -> str:
    """The JSON for `IngestBatch.tables`."""
    return json.dumps([each.said for each in chosen], separators=(",", ":"))
