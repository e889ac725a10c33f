"""`GET` of the tables of a namespace, and of the top namespaces of a warehouse, by those who may see all of them."""

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qsl
from uuid import UUID

from catalog.api.hot.answers import compressed
from catalog.api.hot.call import Found, HotCall, HotRead, counted, find, may
from catalog.api.wire_types import identifiers_body, namespaces_body
from catalog.services import hot_queries
from lakewarden.authz.actions import NamespaceAction, ObjectType, WarehouseAction
from lakewarden.authz.decision_cache import Epoch
from lakewarden.errors import LakewardenError
from lakewarden.hot.coalescer import Coalescer, Key
from lakewarden.hot.routes import Answer, HotRequest
from lakewarden.memory import off_loop
from lakewarden.names import match_key
from lakewarden.paging import Page

_NAMES_BETWEEN: Final = "\x1f"  # no name holds it
_LONG_LIST: Final = 64 * 1024  # characters of names: a list that takes the loop longer than some milliseconds
_PER_CHARACTER: Final = 16  # bytes that a list takes at most, while it is built, for each character of its names
_MOST_PLACES: Final = 10_000
_PLACES: dict[tuple[ObjectType, Key], Found] = {}
"""What is listed, as it was last found: a decision may be known under this id and epoch."""

Body = Callable[[list[str], list[str], str | None], bytes]
"""Of a path, the names below it, and the last of them where there are more."""


def _lists(names: Coalescer, body: Body) -> Callable[[HotCall], Awaitable[Answer | None]]:
    async def answer(call: HotCall) -> Answer | None:
        page = _page(call.request)
        listed = None if page is None else await _names(names, call, page)
        if page is None or listed is None:
            return None
        found, path, told = listed
        made = await _answer(call, page, told, lambda shown, last: body(path, shown, last))
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
            return found, path, names
        if len(_PLACES) >= _MOST_PLACES:
            _PLACES.clear()
        _PLACES[about] = found
        if not may(call, found):
            return None
    return None


async def _answer(
    call: HotCall, page: Page, names: str | None, body: Callable[[list[str], str | None], bytes]
) -> Answer | None:
    def build() -> Answer:
        return compressed(call.request, body(*_cut(page, names)))

    try:
        if names is None or len(names) < _LONG_LIST:
            return build()
        return await off_loop(build, size=_PER_CHARACTER * len(names), caller=call.caller[0])
    except LakewardenError:
        return None  # too long, or too much at once: Django's turn to say it


def _page(request: HotRequest) -> Page | None:
    """What a list asks for; None unless the query holds nothing else."""
    query = dict(parse_qsl(request.query.decode("latin-1"), keep_blank_values=True))
    if not query.keys() <= {"pageToken", "pageSize"}:
        return None
    try:
        page = Page.parse(query)
    except LakewardenError:
        return None
    return None if "\x00" in (page.after or "") else page


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
