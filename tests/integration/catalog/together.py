"""Commits that reach the commit writer together, on the event loop of the application."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID, uuid4

import msgspec

from catalog import access
from catalog.identifiers import TabularIdentifier
from catalog.services import tables
from catalog.services.commit_writer.writer import commit
from catalog.services.pointer import Commit, Stored
from catalog.services.tables import CommitTable
from lakewarden.authz.actions import TableAction
from lakewarden.context import Caller, IdempotencyKey, PrincipalId, RequestContext
from tests.servers import asgi_client

T = TypeVar("T")
Outcome = Stored | BaseException | None

NO_SUCH_UUID = {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}


@dataclass(frozen=True)
class Committing:
    """Who commits in which warehouse."""

    warehouse_id: str
    caller: str = "oidc~engine"

    def to(
        self, name: str, *updates: Any, requirements: Sequence[Any] = (), within: str = "sales", key: UUID | None = None
    ) -> Commit:
        """A commit whose caller is authorized now, as a request does it."""
        context = RequestContext(
            Caller(PrincipalId(self.caller)),
            request_id=f"of-{name}",
            user_agent="tests",
            idempotency=None if key is None else IdempotencyKey(key, "fingerprint", uuid4()),
        )
        granted = access.table(context, TabularIdentifier.parse(self.warehouse_id, within, name), TableAction.COMMIT)
        body = msgspec.json.encode({"requirements": list(requirements), "updates": list(updates)})
        return tables.prepared(granted, msgspec.json.decode(body, type=CommitTable))


def on_the_loop(work: Callable[[], Awaitable[T]]) -> T:
    async def awaited() -> T:
        return await work()

    return asgi_client.run(awaited())


def together(*commits: Commit) -> list[Outcome]:
    """The outcome of each; they reach the writer in their order, at the same moment."""
    return on_the_loop(lambda: asyncio.gather(*(commit(each) for each in commits), return_exceptions=True))


def kinds(outcomes: Sequence[Outcome]) -> list[Any]:
    """The types of outcomes; None for a commit that the writer does not handle."""
    return [None if each is None else type(each) for each in outcomes]
