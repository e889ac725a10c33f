"""`POST` of a request to S3 that is to be signed, for a table by its name, by its id, or by the file's location."""

from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

import msgspec

from catalog.api.hot.answers import JSON, length, request_id
from catalog.api.hot.call import Found, HotCall, HotRead, counted, find, may
from catalog.api.signing import RemoteSignRequest, cache_control, encoded
from catalog.services import hot_queries, request_signing
from catalog.signing_access import ACTIONS
from lakewarden.authz.actions import ObjectType, TableAction
from lakewarden.authz.decision_cache import Epoch
from lakewarden.errors import LakewardenError
from lakewarden.hot.coalescer import Coalescer, Key
from lakewarden.hot.routes import Answer
from lakewarden.storage.places import around

_LARGEST: Final = 16 * 1024  # bytes of a body, as of hot writes
_DECODER: Final = msgspec.json.Decoder(RemoteSignRequest)

Look = Callable[[HotCall, RemoteSignRequest], Key | None]
_DEEPEST: Final = 32  # folders around a file: more would make the query large


def _signs(tables: Coalescer, look: Look) -> Callable[[HotCall], Awaitable[Answer | None]]:
    async def answer(call: HotCall) -> Answer | None:
        asked = _asked(call)
        key = None if asked is None else look(call, asked)
        row = None if key is None else await find(tables, key)
        if asked is None or row is None:
            return None
        identifier, kind, location, project, number, uuid, version, reference = row
        found, reads = Found(str(identifier), Epoch(project, number), uuid), _READS.get((kind, asked.level))
        if reads is None or not may(call := call._replace(read=reads), found):
            return None
        signer = request_signing.find_ready(call.key[0], version=version, reference=reference)
        if signer is None:
            return None
        try:
            reach = signer.read(asked.content)
        except LakewardenError:
            return None  # refused by Django, which records it
        if reach.level is not asked.level or not reach.is_inside(location):
            return None
        body = encoded(signer.sign(reach))
        control = (b"cache-control", cache_control(asked.method).encode())
        return counted(call, found, call.key[0], (200, [JSON, control, length(body), request_id(call.request)], body))

    return answer


def _asked(call: HotCall) -> RemoteSignRequest | None:
    """None for a body that is not ordinary: reading the keys in the body of a deletion takes a thread."""
    request = call.request
    if b"content-encoding" in request.headers or len(request.body) > _LARGEST:
        return None
    try:
        asked = _DECODER.decode(request.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return asked if asked.body is None and asked.provider in {None, "s3"} else None


def _by_name(call: HotCall, _: RemoteSignRequest) -> Key:
    return call.key


def _by_id(call: HotCall, _: RemoteSignRequest) -> Key | None:
    try:
        return call.key[0], UUID(call.key[1])
    except ValueError:
        return None


def _by_location(call: HotCall, asked: RemoteSignRequest) -> Key | None:
    """The signer that was used last says which file it is; what signs is found, and reads the request again, later."""
    signer = request_signing.find_last(call.key[0])
    if signer is None:
        return None
    try:
        places = around(signer.read(asked.content).locations[0].rstrip("/"))
    except LakewardenError:
        return None
    return (call.key[0], "\x1f".join(places)) if len(places) <= _DEEPEST else None


async def _never(_: HotCall) -> None:
    """These are not routes, but what a request turns out to need."""


_READS: Final = {
    (kind, level): HotRead(_never, action, ObjectType(kind))
    for kind, actions in ACTIONS.items()
    for level, action in actions.items()
}
"""By kind and level."""

BY_NAME: Final = HotRead(
    _signs(hot_queries.SIGNED_BY_NAME, _by_name),
    TableAction.READ_DATA,
    ObjectType.TABLE,
    methods=frozenset({"POST"}),
)
BY_ID: Final = HotRead(
    _signs(hot_queries.SIGNED_BY_ID, _by_id), TableAction.READ_DATA, ObjectType.TABLE, methods=frozenset({"POST"})
)
BY_LOCATION: Final = HotRead(
    _signs(hot_queries.SIGNED_BY_LOCATION, _by_location),
    TableAction.READ_DATA,
    ObjectType.TABLE,
    methods=frozenset({"POST"}),
)
