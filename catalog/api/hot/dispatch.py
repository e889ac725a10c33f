"""Finds the hot handler that a request is for: its route is matched once, its caller authenticated once."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_plus
from uuid import UUID

from catalog.api.hot import repeats
from catalog.api.hot.call import Handler, HotRead, KnownCaller
from catalog.api.hot.write import HotWrite
from catalog.identifiers import SEPARATOR
from catalog.models.namespace import path_key
from lakewarden import backends
from lakewarden.context import PrincipalId
from lakewarden.errors import LakewardenError
from lakewarden.hot.coalescer import Key
from lakewarden.hot.routes import Answer, HotRequest, HotRoute
from lakewarden.http.request import assumed_role
from lakewarden.names import match_key

_REMEMBERED: Final = 10_000  # paths
_LONGEST_REMEMBERED: Final = 1024  # bytes of one
_VARIABLE: Final = re.compile(r"{(\w+)}")
_PARTS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "prefix": ("[0-9a-f-]{36}", UUID),
    "namespace": ("[^/]+", lambda names: path_key(names.split(SEPARATOR))),
}
"""How a variable looks in a path, and what it is in a key; any other is a name."""


Hot = HotRead | HotWrite


class _Match(NamedTuple):
    handlers: Mapping[str, Handler]
    key: Key


def dispatch(hot: Mapping[str, Sequence[Hot]]) -> HotRoute:
    """Answers what those of each full path template can answer."""
    routes = [
        (
            _pattern(template),
            {method: _handler(each, f"{method} {template}") for each in served for method in each.methods},
        )
        for template, served in hot.items()
    ]

    def match(path: bytes) -> _Match | None:
        for pattern, handlers in routes:
            found = pattern.fullmatch(path)
            if found is not None:
                key = _key(found.groupdict())
                return None if key is None else _Match(handlers, key)
        return None

    remembered = lru_cache(_REMEMBERED)(match)

    async def route(request: HotRequest) -> Answer | None:
        path = request.path
        matched = (remembered if len(path) <= _LONGEST_REMEMBERED else match)(path)
        handle = matched.handlers.get(request.method) if matched is not None else None
        if matched is None or handle is None:
            return None
        caller = _caller(request)
        return None if caller is None else await handle(request, caller, matched.key)

    return route


def _handler(hot: Hot, label: str) -> Handler:
    return repeats.handler(hot, label) if isinstance(hot, HotRead) else hot.handler(label)


def _pattern(template: str) -> re.Pattern[bytes]:
    def group(variable: re.Match[str]) -> str:
        looks, _ = _PARTS.get(variable[1], ("[^/]+", str))
        return f"(?P<{variable[1]}>{looks})"

    return re.compile(_VARIABLE.sub(group, template).encode())


def _key(parts: Mapping[str, bytes]) -> Key | None:
    """The variables as the database compares them; None for what Django refuses."""
    try:
        texts = {name: unquote_plus(part.decode("ascii")) for name, part in parts.items()}
        if any("\x00" in text for text in texts.values()):
            return None
        return tuple(_PARTS[name][1](text) if name in _PARTS else match_key(text) for name, text in texts.items())
    except ValueError:
        return None


def _caller(request: HotRequest) -> KnownCaller | None:
    """The caller, when their token has been verified before."""
    authorization = request.headers.get(b"authorization")
    if authorization is None:
        return None
    try:
        known = backends.authenticator().find_known(authorization.decode("latin-1"))
        assumed = assumed_role(request.header("x-assume-role"))
    except LakewardenError:
        return None
    return KnownCaller(known, (PrincipalId(known.id), known.token_roles, assumed)) if known else None
