"""The hot reads: loadTable, tableExists and config, without Django and with one query that all concurrent ones share.

The query returns the row's version and the project's authorization epoch together: the body and the decision that this
process knows are used only if they are of exactly that version and epoch. Everything else is Django's (see
`lakewarden.hot.routes`), which also fills what is looked up here.
"""

import re
from functools import lru_cache
from urllib.parse import parse_qs, parse_qsl, unquote_plus
from uuid import UUID

import psycopg

from catalog.api import etags
from catalog.api.config import config_body
from catalog.api.rendering import LOAD_SUFFIX
from catalog.api.shapes import identifiers_body
from catalog.documents import inflated, spliced
from catalog.models.namespace import path_key
from catalog.refs import SEPARATOR
from catalog.services.recent import RECENT
from lakewarden import backends
from lakewarden.authz.actions import Action, NamespaceAction, TableAction, WarehouseAction
from lakewarden.authz.decisions import KNOWN, Epoch
from lakewarden.authz.model import required
from lakewarden.context import PrincipalId
from lakewarden.errors import LakewardenError
from lakewarden.hot.coalescer import Coalescer, Key, Row
from lakewarden.hot.routes import Answer, HotRequest, HotRoute
from lakewarden.http import codings
from lakewarden.http.request import base_uri_of, clean_request_id
from lakewarden.http.responses import COMPRESS_FROM, accepts_gzip
from lakewarden.names import match_key
from lakewarden.paging import Page
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import users

_TABLE = re.compile(rb"/catalog/v1/([0-9a-f-]{36})/namespaces/([^/]+)/tables/([^/]+)")
_TABLES = re.compile(rb"/catalog/v1/([0-9a-f-]{36})/namespaces/([^/]+)/tables")
_CONFIG = b"/catalog/v1/config"
_NAMES_BETWEEN = "\x1f"  # no name holds it

_tables = Coalescer("""
    select k.i, t.id, t.version, p.id, p.authz_epoch
    from unnest(%s::uuid[], %s::text[], %s::text[]) with ordinality as k(warehouse, path, name, i)
    join namespace n on n.warehouse_id = k.warehouse and n.path_key = k.path
    join tabular t on t.namespace_id = n.id and t.name_key = k.name and t.deleted_at is null and t.kind = 'table'
    join warehouse w on w.id = n.warehouse_id
    join project p on p.id = w.project_id
""")
_lists = Coalescer("""
    select k.i, n.id, n.path, p.id, p.authz_epoch, l.names
    from unnest(%s::uuid[], %s::text[], %s::text[], %s::bigint[]) with ordinality as k(warehouse, path, after, most, i)
    join namespace n on n.warehouse_id = k.warehouse and n.path_key = k.path
    join warehouse w on w.id = n.warehouse_id
    join project p on p.id = w.project_id
    cross join lateral (
        select string_agg(t.name, chr(31) order by t.name_key) as names
        from (
            select name, name_key from tabular
            where namespace_id = n.id and kind = 'table' and deleted_at is null and name_key > k.after
            order by name_key limit k.most
        ) t
    ) l
""")
_warehouses = Coalescer("""
    select k.i, w.id, p.id, p.authz_epoch
    from unnest(%s::text[], %s::text[]) with ordinality as k(project, name, i)
    join warehouse w on w.project_id = k.project and w.name_key = k.name
    join project p on p.id = w.project_id
""")


async def table(request: HotRequest) -> Answer | None:
    """`GET` and `HEAD` of a table, all snapshots."""
    key = _table_key(request.path)
    if key is None or request.query not in {b"", b"snapshots=all"}:
        return None
    principal = _principal(request)
    if principal is None:
        return None
    row = await _find(_tables, key)
    if row is None:
        return None
    identifier, version, project, epoch = row
    if not _may(principal, str(identifier), Epoch(project, epoch), TableAction.GET_METADATA):
        return None
    if request.method == "HEAD":
        return 204, [_request_id(request)], b""
    return _table_answer(request, identifier, version)


async def tables(request: HotRequest) -> Answer | None:
    """`GET` of the tables of a namespace."""
    place = _namespace_key(request.path)
    if place is None or request.method != "GET":
        return None
    principal = _principal(request)
    try:
        page = Page.parse(dict(parse_qsl(request.query.decode("latin-1"), keep_blank_values=True)))
    except LakewardenError:
        return None
    if principal is None or "\x00" in (page.after or ""):
        return None
    row = await _find(_lists, (*place, page.after or "", page.limit))
    if row is None:
        return None
    identifier, path, project, epoch, names = row
    if not _may(principal, str(identifier), Epoch(project, epoch), NamespaceAction.LIST_TABLES):
        return None
    found = names.split(_NAMES_BETWEEN) if names else []
    body = identifiers_body(path, *page.cut([(name, match_key(name)) for name in found]))
    headers = [(b"content-type", b"application/json"), _request_id(request)]
    if len(body) >= COMPRESS_FROM:
        headers.append((b"vary", b"Accept-Encoding"))
        coding = codings.preferred(request.headers.get(b"accept-encoding", b"").decode("latin-1"))
        if coding is not None:
            body = codings.packed(body, coding)
            headers.append((b"content-encoding", coding.encode()))
    return 200, [*headers, _length(body)], body


@lru_cache(maxsize=10_000)
def _table_key(path: bytes) -> Key | None:
    """(warehouse id, path key, name key) of a table's URL, or None when it is none."""
    found = _TABLE.fullmatch(path)
    place = _place(found.group(1), found.group(2)) if found else None
    name = unquote_plus(found.group(3).decode("latin-1")) if found else ""
    return (*place, match_key(name)) if place and path.isascii() and "\x00" not in name else None


@lru_cache(maxsize=10_000)
def _namespace_key(path: bytes) -> Key | None:
    """(warehouse id, path key) of the URL of a namespace's tables, or None when it is none."""
    found = _TABLES.fullmatch(path)
    return _place(found.group(1), found.group(2)) if found and path.isascii() else None


def _place(prefix: bytes, namespace: bytes) -> Key | None:
    path = unquote_plus(namespace.decode("latin-1"))
    try:
        return None if "\x00" in path else (UUID(prefix.decode()), path_key(path.split(SEPARATOR)))
    except ValueError:
        return None


def _table_answer(request: HotRequest, identifier: UUID, version: int) -> Answer | None:
    tag = etags.of(identifier, version)
    headers = [(b"etag", tag.encode()), (b"vary", b"Accept-Encoding, Authorization"), _request_id(request)]
    document = RECENT.find(identifier, version)
    if document is None:
        return None
    if etags.matches(request.headers.get(b"if-none-match", b"").decode("latin-1"), tag):
        return 304, headers, b""
    headers.append((b"content-type", b"application/json"))
    accepted = request.headers.get(b"accept-encoding", b"").decode("latin-1")
    if accepts_gzip(accepted):
        headers.append((b"content-encoding", b"gzip"))
        body = spliced(document, LOAD_SUFFIX)
    elif "zstd" in accepted:
        return None
    else:
        body = inflated(document) + LOAD_SUFFIX
    return 200, [*headers, _length(body)], body


def config_route(capabilities: list[str]) -> HotRoute:
    """`GET /v1/config` of somebody who has called before."""

    async def config(request: HotRequest) -> Answer | None:
        if request.path != _CONFIG or request.method != "GET" or b"x-project-id" in request.headers:
            return None
        key = _warehouse_key(request.query)
        principal = _principal(request)
        if key is None or principal is None or not users.is_known(principal):
            return None
        row = await _find(_warehouses, key)
        if row is None:
            return None
        identifier, project, epoch = row
        if not _may(principal, str(identifier), Epoch(project, epoch), WarehouseAction.GET_CONFIG):
            return None
        host = request.headers.get(b"host", b"localhost").decode("latin-1")
        body = config_body(identifier, base_uri=base_uri_of(request.scheme, host), capabilities=capabilities)
        return 200, [(b"content-type", b"application/json"), _length(body), _request_id(request)], body

    return config


def _warehouse_key(query: bytes) -> Key | None:
    """(project id, name key) of a query that holds nothing but `warehouse`."""
    asked = parse_qs(query.decode("latin-1"))
    if list(asked) != ["warehouse"] or len(asked["warehouse"]) != 1:
        return None
    project_id, separator, name = asked["warehouse"][0].rpartition("/")
    if not name or "\x00" in project_id or "\x00" in name:
        return None
    return project_id if separator else DEFAULT_PROJECT_ID, match_key(name)


def _principal(request: HotRequest) -> PrincipalId | None:
    """The caller, when his token has been verified before."""
    authorization = request.headers.get(b"authorization")
    if authorization is None:
        return None
    try:
        known = backends.authenticator().find_known(authorization.decode("latin-1"))
    except LakewardenError:
        return None
    return PrincipalId(known.id) if known else None


def _may(principal: PrincipalId, object_id: str, epoch: Epoch, action: Action) -> bool:
    """Whether it is known that he may; an unknown decision is no."""
    held = KNOWN.find(principal, object_id, epoch)
    return held is not None and required(action) in held


async def _find(coalescer: Coalescer, key: Key) -> Row | None:
    try:
        return await coalescer.find(key)
    except psycopg.Error:
        return None  # Django's turn: it tries once more, and knows how to say it


def _request_id(request: HotRequest) -> tuple[bytes, bytes]:
    given = request.headers.get(b"x-request-id", b"").decode("latin-1")
    return b"x-request-id", clean_request_id(given).encode()


def _length(body: bytes) -> tuple[bytes, bytes]:
    return b"content-length", str(len(body)).encode()
