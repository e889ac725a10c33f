"""Reads that come again byte for byte: their route, their caller and, where nothing has changed, their answer are kept.

Nothing is trusted for a time. Each request has its token looked up, asks the database for its row in the statement that
all requests of the moment share, and is answered from memory only if that row, with the project's epoch, is the one
that the kept answer was made of, the decision is known under this epoch, and the document is the one of this version.
"""

from asyncio import Future
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final

from catalog.api.hot.call import Handler, HotCall, HotRead, KnownCaller, Seen, decision, may, note_allowed
from lakewarden import backends
from lakewarden.audit import decision_buffer
from lakewarden.audit.decision_buffer import DECISIONS
from lakewarden.authn.interface import VerifiedToken
from lakewarden.hot.coalescer import Key
from lakewarden.hot.routes import Answer, HotRequest, WholeAnswer
from lakewarden.hot.sessions import Row
from lakewarden.http.lane import whole_of
from lakewarden.ids import new_id_text
from lakewarden.usage.call_counter import COUNTS

_SECRET: Final = frozenset({b"authorization", b"proxy-authorization", b"cookie"})
"""What a dump of the process's memory must not contain."""
_LARGEST: Final = 64 * 1024
"""Bytes of an answer: of a larger one, only what is known of its request is kept."""


def handler(read: HotRead, label: str) -> Handler:
    """Of a route; `label` is its template, with the method."""

    def handle(request: HotRequest, caller: KnownCaller, key: Key) -> Awaitable[Answer | None]:
        call = HotCall(request, caller.key, key, read, label)
        return read.answer(call) if request.keep is None else _first(call, caller.token)

    return handle


async def _first(call: HotCall, token: VerifiedToken) -> Answer | None:
    """Answer a request that is likely to come again."""
    request = call.request
    assert request.keep is not None  # noqa: S101 the caller has looked
    mark = backends.authenticator().mark_of(request.headers[b"authorization"].decode("latin-1"))
    kept = {name: value for name, value in request.headers.items() if name not in _SECRET}
    repeat = RepeatedRead(call._replace(request=request._replace(headers=kept, keep=None)), token, mark)
    answer = await call.read.answer(call._replace(repeat=repeat))
    if answer is not None:
        request.keep(repeat)
    return answer


@dataclass(slots=True)
class _Kept:
    """What a row was answered with."""

    seen: Seen
    row: Row
    decision: decision_buffer.Key
    whole: WholeAnswer


class RepeatedRead:
    """See `hot.routes.Repeat`. Shared by requests that come at the same time."""

    def __init__(self, call: HotCall, token: VerifiedToken, mark: bytes) -> None:
        self._call = call
        self._token = token
        self._mark = mark
        self._kept: _Kept | None = None
        self._made: tuple[Seen, Answer] | None = None

    @property
    def request(self) -> HotRequest:
        return self._call.request

    @property
    def caller(self) -> str:
        return self._call.caller[0]

    def is_known(self) -> bool:
        return backends.authenticator().find_marked(self._mark) == self._token

    def look_up(self) -> Future[Row | None] | None:
        look_up = self._call.read.look_up
        return None if self._kept is None or look_up is None else look_up.ask(self._kept.seen.key)

    def at_once(self, looking: Future[Row | None]) -> tuple[WholeAnswer, bytes] | None:
        kept = self._kept
        if kept is None or looking.exception() is not None:
            return None
        row = looking.result()
        if row is not kept.row:
            if row != kept.row:
                return None
            kept.row = row  # the requests that were answered by the same statement have this very row
        _, _, found, warehouse_id, is_current = kept.seen
        if not may(self._call, found) or (is_current is not None and not is_current()):
            return None
        whole, identifier = kept.whole, new_id_text()
        COUNTS.add(self._call.label, whole.status, project_id=found.epoch.project_id, warehouse_id=warehouse_id)
        if decision_buffer.are_recorded() and not DECISIONS.again(kept.decision):
            note_allowed(self._call, found, kept.decision, identifier)
        return whole, identifier.encode()

    def answer(self, looking: Future[Row | None] | None) -> Awaitable[Answer | None]:
        return self._call.read.answer(self._call._replace(looking=looking, repeat=self))

    def keep(self, seen: Seen, answer: Answer) -> None:
        """See `call.Repeatable`. What it is kept in place of goes at once, so that what is held is what was counted."""
        self._kept = None
        self._made = (seen, answer) if len(answer[2]) <= _LARGEST else None

    def sent(self, answer: Answer | None) -> int:
        made, self._made = self._made, None
        # another request for the same may have been answered meanwhile, from another row
        if made is None or made[1] is not answer:
            return 0
        seen = made[0]
        self._kept = _Kept(seen, seen.row, decision(self._call, seen.found), whole_of(answer))
        return len(answer[2])
