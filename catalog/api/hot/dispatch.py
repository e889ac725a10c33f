"""Finds the hot read that a request is for: its route is matched once, its caller authenticated once."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_plus
from uuid import UUID

from catalog.api.hot.call import HotCall, HotRead
from catalog.identifiers import SEPARATOR
from catalog.models.namespace import path_key
from lakewarden import backends
from lakewarden.context import CallerKey, PrincipalId
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


class _Match(NamedTuple):
    read: HotRead
    labels: Mapping[str, str]
    key: Key


def dispatch(reads: Mapping[str, HotRead]) -> HotRoute:
    """Answers what the reads, by their full path templates, can answer."""
    routes = [
        (_pattern(template), read, {method: f"{method} {template}" for method in read.methods})
        for template, read in reads.items()
    ]

    def match(path: bytes) -> _Match | None:
        for pattern, read, labels in routes:
            found = pattern.fullmatch(path)
            if found is not None:
                key = _key(found.groupdict())
                return None if key is None else _Match(read, labels, key)
        return None

    remembered = lru_cache(_REMEMBERED)(match)

    async def route(request: HotRequest) -> Answer | None:
        path = request.path
        matched = (remembered if len(path) <= _LONGEST_REMEMBERED else match)(path)
        if matched is None or request.method not in matched.labels:
            return None
        caller = _caller(request)
        if caller is None:
            return None
        read, labels, key = matched
        return await read.answer(HotCall(request, caller, key, read, labels[request.method]))

    return route


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


def _caller(request: HotRequest) -> CallerKey | None:
    """The caller, when their token has been verified before."""
    authorization = request.headers.get(b"authorization")
    if authorization is None:
        return None
    try:
        known = backends.authenticator().find_known(authorization.decode("latin-1"))
        assumed = assumed_role(request.header("x-assume-role"))
    except LakewardenError:
        return None
    return (PrincipalId(known.id), known.token_roles, assumed) if known else None
