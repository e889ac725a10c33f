"""`POST` of changes to the properties of a namespace."""

from typing import Final

import msgspec

from catalog import hot_access
from catalog.api.hot.answers import compressed
from catalog.api.hot.call import asked
from catalog.api.hot.write import HotWrite, WriteCall, decoded
from catalog.api.wire_types import UpdateProperties
from catalog.services.change_writer import properties
from lakewarden.authz.actions import NamespaceAction
from lakewarden.hot.routes import Answer

_ATTEMPTS: Final = 3
"""Changes of one namespace that arrive together are made one after the other; then Django waits for its turn."""


async def _update(call: WriteCall) -> Answer | None:
    body = decoded(call, UpdateProperties)
    if body is None:
        return None
    for _ in range(_ATTEMPTS):
        granted = await asked(hot_access.namespace(call.context, *call.key, action=NamespaceAction.UPDATE_PROPERTIES))
        if granted is None:
            return None
        done = await properties.update(granted, removals=body.removals or [], updates=body.updates or {})
        if done is not None:
            return compressed(call.request, msgspec.json.encode(done), identifier=call.identifier)
    return None


PROPERTIES: Final = HotWrite(_update)
