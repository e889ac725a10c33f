"""`GET` of the tables of a namespace, and of the top namespaces of a warehouse, by those who may see all of them."""

from collections.abc import Awaitable, Callable
from sys import getsizeof
from typing import Final, NamedTuple
from urllib.parse import parse_qsl
from uuid import UUID

from catalog.api.hot.answers import Header, accepted, compressed, request_id
from catalog.api.hot.call import Found, HotCall, HotRead, counted, find, may
from catalog.api.wire_types import identifiers_body, namespaces_body
from catalog.services import hot_queries
from lakewarden import board, config
from lakewarden.authz.actions import NamespaceAction, ObjectType, WarehouseAction
from lakewarden.authz.decision_cache import Epoch
from lakewarden.errors import LakewardenError
from lakewarden.hot.coalescer import Coalescer, Key
from lakewarden.hot.kept_answers import KeptAnswers
from lakewarden.hot.routes import Answer
from lakewarden.http import codings
from lakewarden.memory import off_loop
from lakewarden.names import match_key
from lakewarden.paging import Page
from lakewarden.remembered import remembered

_NAMES_BETWEEN: Final = "\x1f"  # no name holds it
_LONG_LIST: Final = 64 * 1024  # characters of names: a list that takes the loop longer than some milliseconds
_PER_CHARACTER: Final = 16  # bytes that a list takes at most, while it is built, for each character of its names
_PER_ANSWER: Final = 2048  # bytes that an answer takes beside its names, its body and what its caller has sent
_MOST_PLACES: Final = 10_000
_PLACES: dict[tuple[ObjectType, Key], Found] = {}
"""What is listed, as it was last found: a decision may be known under this id and epoch."""


class _Listed(NamedTuple):
    """The parts of an answer: the requested page, and the names that the database has just returned."""

    object_id: str
    page: Page
    path: list[str]
    names: str | None


_ANSWERS: KeptAnswers[tuple[_Listed, list[Header], bytes]] = KeptAnswers(
    config.current().catalog.kept_lists_bytes // board.current().processes,
    percent=config.current().server.caller_share_percent,
)

Body = Callable[[list[str], list[str], str | None], bytes]
"""Of a path, the names below it, and the last of them where there are more."""


def _lists(names: Coalescer, body: Body) -> Callable[[HotCall], Awaitable[Answer | None]]:
    async def answer(call: HotCall) -> Answer | None:
        page = _page(call.request.query)
        listed = None if page is None else await _names(names, call, page)
        if page is None or listed is None:
            return None
        found, path, told = listed
        made = await _answer(call, _Listed(found.object_id, page, path, told), body)
        return None if made is None else counted(call, found, call.key[0], made)

    return answer


async def _names(coalescer: Coalescer, call: HotCall, page: Page) -> tuple[Found, list[str], str | None] | None:
    """What lists a place: its path and its names, which are fetched only for a caller known to be allowed them.

    One query, which compares the id and the epoch of the decision; the first one under an epoch is asked again.
    """
    about = (call.read.object_type, call.key)
    for _ in range(2):
        place = _PLACES.get(about)
        known = place if place and may(call, place) else None
        expected = (UUID(known.object_id), known.epoch.number) if known else (None, None)
        row = await find(coalescer, (*call.key, page.after or "", page.limit, *expected))
        if row is None:
            return None
        identifier, path, project, number, is_told, names = row
        found = Found(str(identifier), Epoch(project, number))
        if is_told:
            return found, path or [], names
        if len(_PLACES) >= _MOST_PLACES:
            _PLACES.clear()
        _PLACES[about] = found
        if not may(call, found):
            return None
    return None


async def _answer(call: HotCall, listed: _Listed, body: Body) -> Answer | None:
    """The answer that was built last for the same names, else a new one."""
    key = (listed.object_id, listed.page, codings.preferred(accepted(call.request)))
    kept = _ANSWERS.find(key)
    if kept is not None and kept[0] == listed:
        return 200, [request_id(call.request), *kept[1]], kept[2]
    made = await _built(call, listed, body)
    if made is not None:
        headers = [each for each in made[1] if each[0] != b"x-request-id"]
        sized = (listed.names, made[2], listed.page.after, *listed.path)
        size = _PER_ANSWER + sum(map(getsizeof, sized))
        _ANSWERS.keep(key, (listed, headers, made[2]), size=size, caller=call.caller[0])
    return made


async def _built(call: HotCall, listed: _Listed, body: Body) -> Answer | None:
    names = listed.names

    def build() -> Answer:
        return compressed(call.request, body(listed.path, *_cut(listed.page, names)))

    try:
        if names is None or len(names) < _LONG_LIST:
            return build()
        return await off_loop(build, size=_PER_CHARACTER * len(names), caller=call.caller[0])
    except LakewardenError:
        return None  # too long, or too much at once: Django's turn to say it


def _asked(query_string: bytes) -> Page | None:
    """What a list asks for; None unless the query holds nothing else."""
    query = dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=True))
    if not query.keys() <= {"pageToken", "pageSize"}:
        return None
    try:
        page = Page.parse(query)
    except LakewardenError:
        return None
    return None if "\x00" in (page.after or "") else page


_page: Final = remembered(_asked, entries=10_000, longest=200)


def _cut(page: Page, names: str | None) -> tuple[list[str], str | None]:
    shown, last = page.cut([(name, name) for name in (names.split(_NAMES_BETWEEN) if names else [])])
    return shown, None if last is None else match_key(last)


TABLES: Final = HotRead(
    _lists(hot_queries.TABLE_NAMES, identifiers_body),
    NamespaceAction.LIST_EVERYTHING,
    ObjectType.NAMESPACE,
    noted=NamespaceAction.LIST_TABLES,
    methods=frozenset({"GET"}),
)
NAMESPACES: Final = HotRead(
    _lists(hot_queries.TOP_NAMESPACE_NAMES, lambda _, shown, last: namespaces_body([[name] for name in shown], last)),
    WarehouseAction.LIST_EVERYTHING,
    ObjectType.WAREHOUSE,
    noted=WarehouseAction.LIST_NAMESPACES,
    methods=frozenset({"GET"}),
)
