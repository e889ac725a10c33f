"""`DELETE` of a table, a view, and an empty namespace."""

from typing import Final
from urllib.parse import parse_qsl

from catalog import hot_access, tabular_types
from catalog.api.hot.call import asked
from catalog.api.hot.write import HotWrite, WriteCall
from catalog.services.change_writer import namespace_drops, tabular_drops
from catalog.services.deletion.drop import DropOptions
from catalog.tabular_types import TabularType
from lakewarden.authz.actions import NamespaceAction
from lakewarden.hot.routes import Answer

_FLAGS: Final = {"true": True, "false": False}
_KNOWN: Final = {"purgeRequested", "force"}


def _dropped(call: WriteCall) -> Answer:
    return 204, [call.identifier], b""


def _drops(kind: TabularType) -> HotWrite:
    async def drop(call: WriteCall) -> Answer | None:
        options = _options(call.request.query)
        if options is None or call.request.body:
            return None
        action = kind.actions.FORCE_DROP if options.force else kind.actions.DROP
        granted = await asked(hot_access.tabular(call.context, *call.key, kind=kind, action=action))
        done = granted is not None and await tabular_drops.drop(granted, options)
        return _dropped(call) if done else None

    return HotWrite(drop, methods=_DELETE, has_query=True)


async def _drop_namespace(call: WriteCall) -> Answer | None:
    options = _options(call.request.query)
    if options is None or call.request.body:
        return None
    action = NamespaceAction.FORCE_DROP if options.force else NamespaceAction.DELETE
    granted = await asked(hot_access.namespace(call.context, *call.key, action=action))
    done = granted is not None and await namespace_drops.drop(granted, options)
    return _dropped(call) if done else None


def _options(query: bytes) -> DropOptions | None:
    """None for a query that is not ordinary."""
    try:
        given = parse_qsl(query.decode("ascii"), keep_blank_values=True, strict_parsing=bool(query), max_num_fields=2)
    except ValueError:
        return None
    flags = {name: _FLAGS.get(value.lower()) for name, value in given}
    if len(flags) < len(given) or not flags.keys() <= _KNOWN or None in flags.values():
        return None
    return DropOptions(purge=flags.get("purgeRequested"), force=flags.get("force") or False)


_DELETE: Final = frozenset({"DELETE"})
TABLE: Final = _drops(tabular_types.TABLE)
VIEW: Final = _drops(tabular_types.VIEW)
NAMESPACE: Final = HotWrite(_drop_namespace, methods=_DELETE, has_query=True)
