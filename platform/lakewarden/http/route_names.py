"""Names the route of a path as the documents do, for measurements: there are as many names as routes, not as paths."""

from collections.abc import Callable, Iterator
from typing import Final

from django.urls import URLPattern, URLResolver, get_resolver

from lakewarden.http.call_recording import template

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_REST: Final = "**"  # the key of a variable that holds slashes
_ONE: Final = "*"
_END: Final = ""

OTHER: Final = "other"
"""Paths that no route has: callers choose their names."""

_Tree = dict[str, "_Tree | str"]


class RouteNames:
    """Built once from Django's routes: the hot routes are among them, because Django answers there, too."""

    def __init__(self) -> None:
        self._tree: _Tree = {}
        for route in _routes(get_resolver().url_patterns, ""):
            self._add(route)

    def name(self, method: str, path: bytes) -> str | None:
        """`GET /catalog/v1/{prefix}/namespaces`, or None; `path` is percent-encoded, without the query."""
        if method not in _METHODS:
            return None
        route = _found(self._tree, path.decode("latin-1").split("/")[1:], 0)
        return None if route is None else template(method, route)

    def _add(self, route: str) -> None:
        node = self._tree
        for part in route.split("/"):
            key = (_REST if part.startswith("<path:") else _ONE) if part.startswith("<") else part
            below = node.setdefault(key, {})
            assert isinstance(below, dict)  # noqa: S101 only _END has a text
            node = below
        node.setdefault(_END, route)


class Labels:
    """Of all requests; `others` names routes that Django does not know."""

    def __init__(self, others: Callable[[str, bytes], str | None]) -> None:
        self._others = others
        self._names: RouteNames | None = None

    def of(self, method: str, path: bytes) -> str:
        if self._names is None:  # Django's routes are complete when the first request comes
            self._names = RouteNames()
        return self._names.name(method, path) or self._others(method, path) or OTHER


def _routes(patterns: list[URLPattern | URLResolver], before: str) -> Iterator[str]:
    for each in patterns:
        route = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from _routes(each.url_patterns, route)
        else:
            yield route


def _found(node: _Tree, parts: list[str], at: int) -> str | None:
    if at == len(parts):
        end = node.get(_END)
        return end if isinstance(end, str) else None
    for key in (parts[at], _ONE) if parts[at] else (parts[at],):
        below = node.get(key)
        if isinstance(below, dict) and (found := _found(below, parts, at + 1)) is not None:
            return found
    rest = node.get(_REST)
    return _found(rest, [], 0) if isinstance(rest, dict) else None
