"""`GET` and `HEAD` of a table or view, all snapshots."""

from functools import partial
from typing import Final
from uuid import UUID

from catalog.api import etags
from catalog.api.delegation import HEADER, wanted_in
from catalog.api.hot.answers import JSON, VARY, length, nothing, request_id
from catalog.api.hot.call import Found, HotCall, HotRead, Seen, answered, counted, looked_up, may
from catalog.documents import loaded, spliced
from catalog.services import hot_queries
from catalog.services.client_access import Addition, level_held
from catalog.services.document_cache import DOCUMENT_CACHE, Kept
from catalog.services.kept_additions import ADDITIONS, Loaded
from lakewarden.authz.actions import ObjectType, TableAction, ViewAction
from lakewarden.authz.decision_cache import HELD_PRIVILEGES, Epoch
from lakewarden.errors import LakewardenError
from lakewarden.hot.file_checks import FILES
from lakewarden.hot.routes import Answer
from lakewarden.hot.shared_builds import SharedBuilds
from lakewarden.http.request import base_uri_of
from lakewarden.http.responses import accepts_gzip
from lakewarden.memory import off_loop

_LARGE: Final = 512 * 1024  # bytes of an answer: inflating or copying more is a thread's work


_BUILDS: Final[SharedBuilds[bytes]] = SharedBuilds()


async def _load(call: HotCall) -> Answer | None:
    if call.request.query not in {b"", b"snapshots=all"}:
        return None
    row = await looked_up(call, call.key)
    if row is None or row[1] != call.read.object_type:
        return None
    identifier, _, version, project, number, uuid = row
    found = Found(str(identifier), Epoch(project, number), uuid)
    if not may(call, found):
        return None
    seen = Seen(call.key, row, found, call.key[0])
    if call.request.method == "HEAD":
        return answered(call, seen, nothing(call.request))
    kept = DOCUMENT_CACHE.find(identifier, version)
    answer = None if kept is None else await _document(call, found, identifier, kept)
    if answer is None or kept is None:
        return None
    if kept.suffix is None:  # credentials in it become old
        return counted(call, found, call.key[0], answer)
    return answered(call, seen._replace(is_current=partial(_is_current, identifier, kept)), answer)


def _is_current(identifier: UUID, kept: Kept) -> bool:
    """Whether the document is still that of its version, and its file was there a moment ago."""
    is_known = DOCUMENT_CACHE.find(identifier, kept.version) is kept
    return is_known and (kept.is_missing is None or FILES.is_trusted(kept.is_missing))


async def _document(call: HotCall, found: Found, identifier: UUID, kept: Kept) -> Answer | None:
    request = call.request
    version, document, is_missing, suffix = kept
    mark = ""
    if suffix is None:
        added = _addition(call, found, identifier, version)
        if added is None:
            return None
        suffix, mark = added.suffix, added.mark
    if is_missing is not None and await FILES.is_missing(is_missing):
        return None
    tag = etags.of(identifier, version, mark=mark)
    headers = [(b"etag", tag.encode()), VARY, request_id(request)]
    if etags.matches(request.headers.get(b"if-none-match", b"").decode("latin-1"), tag):
        return 304, headers, b""
    headers.append(JSON)
    accepted = request.headers.get(b"accept-encoding", b"").decode("latin-1")
    if accepts_gzip(accepted):
        headers.append((b"content-encoding", b"gzip"))
        build, size = spliced, len(document.content)
    elif "zstd" in accepted:
        return None
    else:
        build, size = loaded, document.length
    if size < _LARGE:
        body = build(document, suffix)
    else:
        try:
            key = (identifier, version, suffix, build is loaded, call.caller[0])
            body = await _BUILDS.share(
                key, lambda: off_loop(lambda: build(document, suffix), size=2 * size, caller=call.caller[0])
            )
        except LakewardenError:
            return None
    return 200, [*headers, length(body)], body


def _addition(call: HotCall, found: Found, identifier: UUID, version: int) -> Addition | None:
    """What a caller with these rights has received before for the same table; None if that is not known any more."""
    held = HELD_PRIVILEGES.find(call.caller, found.object_id, found.epoch)
    request = call.request
    try:
        base_uri = base_uri_of(request.scheme, request.header)
    except LakewardenError:
        return None
    level, wanted = level_held(held or frozenset()), wanted_in(request.header(HEADER) or "")
    return ADDITIONS.find(Loaded(identifier, version, found.epoch, call.key, level, wanted, base_uri))


TABLE: Final = HotRead(_load, TableAction.GET_METADATA, ObjectType.TABLE, look_up=hot_queries.TABULARS)
VIEW: Final = HotRead(_load, ViewAction.GET_METADATA, ObjectType.VIEW, look_up=hot_queries.TABULARS)
