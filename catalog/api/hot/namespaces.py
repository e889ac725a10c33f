"""`GET` and `HEAD` of a namespace."""

from typing import Final

from catalog.api.hot.answers import compressed, nothing
from catalog.api.hot.call import Found, HotCall, HotRead, Seen, answered, looked_up, may
from catalog.api.wire_types import namespace_body
from catalog.services import hot_queries
from lakewarden.authz.actions import NamespaceAction, ObjectType
from lakewarden.authz.decision_cache import Epoch
from lakewarden.hot.routes import Answer


async def _load(call: HotCall) -> Answer | None:
    if call.request.query:
        return None
    row = await looked_up(call, call.key)
    if row is None:
        return None
    identifier, path, properties, project, number = row
    found = Found(str(identifier), Epoch(project, number))
    if not may(call, found):
        return None
    if call.request.method == "HEAD":
        answer = nothing(call.request)
    elif properties is None:
        return None  # large ones are fetched, decoded and encoded by a thread
    else:
        answer = compressed(call.request, namespace_body(path, properties))
    return answered(call, Seen(call.key, row, found, call.key[0]), answer)


NAMESPACE: Final = HotRead(_load, NamespaceAction.GET_METADATA, ObjectType.NAMESPACE, look_up=hot_queries.NAMESPACES)
