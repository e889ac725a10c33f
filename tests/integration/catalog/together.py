"""Commits that reach the commit writer together, on the event loop of the application."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from catalog import access
from catalog.identifiers import TabularIdentifier
from catalog.services import tables
from catalog.services.commit_writer.writer import commit
from catalog.services.pointer import Stored
from catalog.services.tables import CommitTable
from lakewarden.authz.actions import TableAction
from lakewarden.context import Caller, IdempotencyKey, PrincipalId, RequestContext
from tests.servers import asgi_client

Outcome = Stored | Exception | None


@dataclass(frozen=True)
class Committing:
    """Who commits where; `together` authorizes each commit first, as a request does."""

    warehouse_id: str
    caller: str = "oidc~engine"
    keys: dict[int, IdempotencyKey] = field(default_factory=dict)

    def prepared(self, name: str, *updates: Any, requirements: Sequence[Any] = (), **more: Any) -> Any:
        context = RequestContext(Caller(PrincipalId(self.caller)), request_id=f"of-{name}", user_agent="tests", **more)
        granted = access.table(context, TabularIdentifier.parse(self.warehouse_id, "sales", name), TableAction.COMMIT)
        body = msgspec.json.encode({"requirements": list(requirements), "updates": list(updates)})
        return tables.prepared(granted, msgspec.json.decode(body, type=CommitTable))

    def by(self, caller: str) -> "Committing":
        return replace(self, caller=caller)


def together(*commits: Any) -> list[Outcome]:
    """What became of each; they reach the writer in their order, at the same moment."""

    async def all_of_them() -> list[Outcome]:
        return await asyncio.gather(*(commit(each) for each in commits), return_exceptions=True)  # type: ignore[return-value]

    return asgi_client._await(all_of_them())
