"""The hot reads: of tables, views, namespaces, lists and config, without Django, by a query that concurrent ones share.

The query returns the row's version and the project's authorization epoch together: the body and the decision that this
process knows are used only if they are of exactly that version and epoch. Everything else is Django's (see
`lakewarden.hot.routes`), which also fills what is looked up here.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qs, parse_qsl, unquote_plus
from uuid import UUID

import psycopg

from catalog.api import etags
from catalog.api.config import config_body
from catalog.api.rendering import LOAD_SUFFIX
from catalog.api.wire_types import identifiers_body, namespace_body, namespaces_body
from catalog.documents import loaded, spliced
from catalog.identifiers import SEPARATOR
from catalog.models.namespace import path_key
from catalog.services import hot_queries
from catalog.services.document_cache import DOCUMENT_CACHE
from lakewarden import backends, config
from lakewarden.audit import decision_buffer
from lakewarden.audit.decision_buffer import DECISIONS, Group
from lakewarden.audit.entries import MAX_USER_AGENT
from lakewarden.authz.actions import Action, NamespaceAction, ObjectType, TableAction, ViewAction, WarehouseAction
from lakewarden.authz.authorize import deciding
from lakewarden.authz.decision_cache import HELD_PRIVILEGES, Epoch
from lakewarden.authz.model import is_allowed
from lakewarden.context import Allowed, CallerKey, PrincipalId
from lakewarden.errors import LakewardenError, Unavailable
from lakewarden.hot.coalescer import Coalescer, Key, Row
from lakewarden.hot.file_checks import FILES
from lakewarden.hot.routes import Answer, HotRequest, HotRoute
from lakewarden.http import codings
from lakewarden.http.request import assumed_role, base_uri_of, clean_request_id
from lakewarden.http.responses import COMPRESS_FROM, accepts_gzip
from lakewarden.memory import off_loop
from lakewarden.names import match_key
from lakewarden.paging import Page
from lakewarden.postgres.bounded import SILENCE
from lakewarden.usage.call_counter import COUNTS
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import users

_PREFIX = rb"/catalog/v1/([0-9a-f-]{36})/namespaces"
_TABULAR = re.compile(_PREFIX + rb"/([^/]+)/(tables|views)/([^/]+)")
_TABLES = re.compile(_PREFIX + rb"/([^/]+)/tables")
_NAMESPACE = re.compile(_PREFIX + rb"/([^/]+)")
_NAMESPACES = re.compile(_PREFIX)
_CONFIG = b"/catalog/v1/config"
_NAMESPACE_PATH = "/catalog/v1/{prefix}/namespaces/{namespace}"
_PATHS = {
    "table": _NAMESPACE_PATH + "/tables/{table}",
    "view": _NAMESPACE_PATH + "/views/{view}",
    "tables": _NAMESPACE_PATH + "/tables",
    "namespace": _NAMESPACE_PATH,
    "namespaces": "/catalog/v1/{prefix}/namespaces",
    "config": "/catalog/v1/config",
}
_LABELS = {(kind, method): f"{method} {path}" for kind, path in _PATHS.items() for method in ("GET", "HEAD")}
_ACTIONS: dict[str, Action] = {
    "table": TableAction.GET_METADATA,
    "view": ViewAction.GET_METADATA,
    "tables": NamespaceAction.LIST_EVERYTHING,
    "namespace": NamespaceAction.GET_METADATA,
    "namespaces": WarehouseAction.LIST_EVERYTHING,
    "config": WarehouseAction.GET_CONFIG,
}
_TYPES = {
    "table": ObjectType.TABLE,
    "view": ObjectType.VIEW,
    "tables": ObjectType.NAMESPACE,
    "namespace": ObjectType.NAMESPACE,
}
_NOTED = _ACTIONS | {"tables": NamespaceAction.LIST_TABLES, "namespaces": WarehouseAction.LIST_NAMESPACES}
"""What the audit is told: what Django asks for first, and gets with less."""
_WORDS = {kind: (action.value, _TYPES.get(kind, ObjectType.WAREHOUSE).value) for kind, action in _NOTED.items()}
_PROJECT_HEADERS = {b"x-project-id", b"x-project-ident"}
_NAMES_BETWEEN = "\x1f"  # no name holds it
_LONG_LIST = 64 * 1024  # characters of names: a list that takes the loop longer than some milliseconds
_PER_CHARACTER = 16  # bytes that a list takes at most, while it is built, for each character of its names
_LARGE = 512 * 1024  # bytes of an answer: inflating or copying more is a thread's work
_MOST_PLACES = 10_000
_PLACES: dict[tuple[str, Key], tuple[UUID, Epoch]] = {}
"""Id and epoch that what is listed was last found with: a decision may be known under these."""


class _Asking(NamedTuple):
    """Who asks for what: `kind` is one of `_ACTIONS`, the epoch was read with the object."""

    caller: CallerKey
    object_id: str
    kind: str
    epoch: Epoch


async def tabular(request: HotRequest) -> Answer | None:
    """`GET` and `HEAD` of a table or view, all snapshots."""
    asked = _tabular_key(request.path)
    caller = _caller(request)
    if asked is None or caller is None or request.query not in {b"", b"snapshots=all"}:
        return None
    kind, key = asked
    row = await _find(hot_queries.TABULARS, key)
    if row is None or row[1] != kind:
        return None
    identifier, _, version, project, number = row
    asking = _Asking(caller, str(identifier), kind, Epoch(project, number))
    if not _may(asking):
        return None
    if request.method == "HEAD":
        answer: Answer | None = (204, [_request_id(request)], b"")
    else:
        answer = await _table_answer(request, caller, identifier, version)
    return _counted(answer, request, asking, key[0])


async def namespace(request: HotRequest) -> Answer | None:
    """`GET` and `HEAD` of a namespace."""
    key = _namespace_key(_NAMESPACE, request.path)
    caller = _caller(request)
    if key is None or caller is None or request.query:
        return None
    row = await _find(hot_queries.NAMESPACES, key)
    if row is None:
        return None
    identifier, path, properties, project, number = row
    asking = _Asking(caller, str(identifier), "namespace", Epoch(project, number))
    if not _may(asking):
        return None
    if request.method == "HEAD":
        answer: Answer = (204, [_request_id(request)], b"")
    elif properties is None:
        return None  # large ones are fetched, decoded and encoded by a thread
    else:
        answer = _compressed(request, namespace_body(path, properties))
    return _counted(answer, request, asking, key[0])


async def tables(request: HotRequest) -> Answer | None:
    """`GET` of the tables of a namespace."""
    key = _namespace_key(_TABLES, request.path)
    page, caller = _page(request), _caller(request)
    if key is None or page is None or caller is None:
        return None
    found = await _names(hot_queries.TABLE_NAMES, key, page, caller, "tables")
    if found is None:
        return None
    asking, path, names = found
    answer = await _list_answer(request, page, caller, names, lambda shown, last: identifiers_body(path, shown, last))
    return _counted(answer, request, asking, key[0])


async def namespaces(request: HotRequest) -> Answer | None:
    """`GET` of the top namespaces of a warehouse."""
    found = _NAMESPACES.fullmatch(request.path)
    page, caller = _page(request), _caller(request)
    if found is None or page is None or caller is None:
        return None
    try:
        warehouse_id = UUID(found.group(1).decode())
    except ValueError:
        return None
    listed = await _names(hot_queries.TOP_NAMESPACE_NAMES, (warehouse_id,), page, caller, "namespaces")
    if listed is None:
        return None
    asking, _, names = listed
    answer = await _list_answer(
        request, page, caller, names, lambda shown, last: namespaces_body([[name] for name in shown], last)
    )
    return _counted(answer, request, asking, warehouse_id)


async def _names(
    coalescer: Coalescer, key: Key, page: Page, caller: CallerKey, kind: str
) -> tuple[_Asking, list[str], str | None] | None:
    """What lists a place: its path and its names, which are fetched only for a caller known to be allowed them.

    One query, which compares the id and the epoch of the decision; the first one under an epoch is asked again.
    """
    about = (kind, key)
    for _ in range(2):
        place = _PLACES.get(about)
        known = place if place and _may(_Asking(caller, str(place[0]), kind, place[1])) else None
        expected = (known[0], known[1].number) if known else (None, None)
        row = await _find(coalescer, (*key, page.after or "", page.limit, *expected))
        if row is None:
            return None
        identifier, path, project, number, is_told, names = row
        asking = _Asking(caller, str(identifier), kind, Epoch(project, number))
        if is_told:
            return asking, path, names
        if len(_PLACES) >= _MOST_PLACES:
            _PLACES.clear()
        _PLACES[about] = identifier, asking.epoch
        if not _may(asking):
            return None
    return None


async def _list_answer(
    request: HotRequest,
    page: Page,
    caller: CallerKey,
    names: str | None,
    body: Callable[[list[str], str | None], bytes],
) -> Answer | None:
    def build() -> Answer:
        return _compressed(request, body(*_cut(page, names)))

    try:
        if names is None or len(names) < _LONG_LIST:
            return build()
        return await off_loop(build, size=_PER_CHARACTER * len(names), caller=caller[0])
    except LakewardenError:
        return None  # too long, or too much at once: Django's turn to say it


def _counted(answer: Answer | None, request: HotRequest, asking: _Asking, warehouse_id: UUID) -> Answer | None:
    """Count the call, and its decision, as `http.observation` does those of Django; None will be one of those."""
    if answer is not None:
        label, project = _LABELS[asking.kind, request.method], asking.epoch.project_id
        COUNTS.add(label, answer[0], project_id=project, warehouse_id=warehouse_id)
        if decision_buffer.are_recorded():
            _note_allowed(asking, request, answer)
    return answer


def _note_allowed(asking: _Asking, request: HotRequest, answer: Answer) -> None:
    (actor, _, role), (action, object_type) = asking.caller, _WORDS[asking.kind]
    key = (actor, role, action, object_type, asking.object_id)
    if not DECISIONS.again(key):
        held = HELD_PRIVILEGES.find(asking.caller, asking.object_id, asking.epoch) or frozenset()
        privileges = deciding(_NOTED[asking.kind], held)
        allowed = Allowed(action, object_type, asking.object_id, asking.epoch.project_id, privileges)
        user_agent = (request.header("user-agent") or "")[:MAX_USER_AGENT]
        DECISIONS.add(key, Group(allowed, dict(answer[1])[b"x-request-id"].decode(), user_agent))


def _page(request: HotRequest) -> Page | None:
    """What a list asks for; None unless the query holds nothing else, or it is no list."""
    query = dict(parse_qsl(request.query.decode("latin-1"), keep_blank_values=True))
    if request.method != "GET" or not query.keys() <= {"pageToken", "pageSize"}:
        return None
    try:
        page = Page.parse(query)
    except LakewardenError:
        return None
    return None if "\x00" in (page.after or "") else page


def _cut(page: Page, names: str | None) -> tuple[list[str], str | None]:
    shown, last = page.cut([(name, name) for name in (names.split(_NAMES_BETWEEN) if names else [])])
    return shown, None if last is None else match_key(last)


def _compressed(request: HotRequest, body: bytes) -> Answer:
    """As `responses.compress` does it."""
    headers = [(b"content-type", b"application/json"), _request_id(request)]
    if len(body) >= COMPRESS_FROM:
        headers.append((b"vary", b"Accept-Encoding"))
        coding = codings.preferred(request.headers.get(b"accept-encoding", b"").decode("latin-1"))
        if coding is not None:
            body = codings.packed(body, coding)
            headers.append((b"content-encoding", coding.encode()))
    return 200, [*headers, _length(body)], body


@lru_cache(maxsize=10_000)
def _tabular_key(path: bytes) -> tuple[str, tuple[UUID, str, str]] | None:
    """Kind, and (warehouse id, path key, name key), of a table's or view's URL; None when it is none."""
    found = _TABULAR.fullmatch(path)
    place = _place(found.group(1), found.group(2)) if found else None
    if found is None or place is None or not path.isascii():
        return None
    name = unquote_plus(found.group(4).decode())
    return (found.group(3).decode().removesuffix("s"), (*place, match_key(name))) if "\x00" not in name else None


@lru_cache(maxsize=10_000)
def _namespace_key(route: re.Pattern[bytes], path: bytes) -> tuple[UUID, str] | None:
    """(warehouse id, path key) of a URL that is one of `route`, or None when it is none."""
    found = route.fullmatch(path)
    return _place(found.group(1), found.group(2)) if found and path.isascii() else None


def _place(prefix: bytes, names: bytes) -> tuple[UUID, str] | None:
    path = unquote_plus(names.decode("latin-1"))
    try:
        return None if "\x00" in path else (UUID(prefix.decode()), path_key(path.split(SEPARATOR)))
    except ValueError:
        return None


async def _table_answer(request: HotRequest, caller: CallerKey, identifier: UUID, version: int) -> Answer | None:
    tag = etags.of(identifier, version)
    headers = [(b"etag", tag.encode()), (b"vary", b"Accept-Encoding, Authorization"), _request_id(request)]
    kept = DOCUMENT_CACHE.find(identifier, version)
    if kept is None:
        return None
    document, is_missing = kept
    if await FILES.is_missing(is_missing):
        return None
    if etags.matches(request.headers.get(b"if-none-match", b"").decode("latin-1"), tag):
        return 304, headers, b""
    headers.append((b"content-type", b"application/json"))
    accepted = request.headers.get(b"accept-encoding", b"").decode("latin-1")
    if accepts_gzip(accepted):
        headers.append((b"content-encoding", b"gzip"))
        build, size = spliced, len(document.content)
    elif "zstd" in accepted:
        return None
    else:
        build, size = loaded, document.length
    if size < _LARGE:
        body = build(document, LOAD_SUFFIX)
    else:
        try:
            body = await off_loop(lambda: build(document, LOAD_SUFFIX), size=2 * size, caller=caller[0])
        except LakewardenError:
            return None
    return 200, [*headers, _length(body)], body


def config_route(capabilities: list[str]) -> HotRoute:
    """`GET /v1/config` of somebody who has called before."""

    async def config(request: HotRequest) -> Answer | None:
        if request.path != _CONFIG or request.method != "GET" or _PROJECT_HEADERS & request.headers.keys():
            return None
        key = _warehouse_key(request.query)
        caller = _caller(request)
        if key is None or caller is None or not users.is_known(caller[0]):
            return None
        row = await _find(hot_queries.WAREHOUSES, key)
        if row is None:
            return None
        identifier, project, number = row
        asking = _Asking(caller, str(identifier), "config", Epoch(project, number))
        if not _may(asking):
            return None
        try:
            base_uri = base_uri_of(request.scheme, request.header)
        except LakewardenError:
            return None
        body = config_body(identifier, base_uri=base_uri, capabilities=capabilities)
        answer = 200, [(b"content-type", b"application/json"), _length(body), _request_id(request)], body
        return _counted(answer, request, asking, identifier)

    return config


def _warehouse_key(query: bytes) -> Key | None:
    """(project id, name key) of a query that holds nothing but `warehouse`."""
    asked = parse_qs(query.decode("latin-1"))
    if list(asked) != ["warehouse"] or len(asked["warehouse"]) != 1:
        return None
    project_id, separator, name = asked["warehouse"][0].rpartition("/")
    if not name or "\x00" in project_id or "\x00" in name:
        return None
    if separator:
        return project_id, match_key(name)
    return (DEFAULT_PROJECT_ID, match_key(name)) if config.current().server.enable_default_project else None


def _caller(request: HotRequest) -> CallerKey | None:
    """The caller, when his token has been verified before."""
    authorization = request.headers.get(b"authorization")
    if authorization is None:
        return None
    try:
        known = backends.authenticator().find_known(authorization.decode("latin-1"))
        assumed = assumed_role(request.header("x-assume-role"))
    except LakewardenError:
        return None
    return (PrincipalId(known.id), known.token_roles, assumed) if known else None


def _may(asking: _Asking) -> bool:
    """Whether it is known that he may; an unknown decision is no."""
    held = HELD_PRIVILEGES.find(asking.caller, asking.object_id, asking.epoch)
    return held is not None and is_allowed(_ACTIONS[asking.kind], held)


async def _find(coalescer: Coalescer, key: Key) -> Row | None:
    try:
        return await coalescer.find(key)
    except SILENCE as error:
        raise Unavailable("The database does not answer. Try again shortly") from error  # Django would wait once more
    except (psycopg.Error, ValueError):
        return None  # Django's turn: it tries once more, and knows how to say it


def _request_id(request: HotRequest) -> tuple[bytes, bytes]:
    given = request.headers.get(b"x-request-id", b"").decode("latin-1")
    return b"x-request-id", clean_request_id(given).encode()


def _length(body: bytes) -> tuple[bytes, bytes]:
    return b"content-length", str(len(body)).encode()
