"""What the server serves below /catalog, /generic (which is /lakekeeper, too), /lakehouse and /management, read off its URL configuration."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.urls import URLPattern, URLResolver

APIS = ("/catalog/", "/lakehouse/", "/management/", "/generic/", "/lakekeeper/")


def served() -> set[str]:
    """`GET /catalog/v1/{prefix}/namespaces`, … of every route and every method that it answers."""
    from lakewarden.urls import urlpatterns  # noqa: PLC0415 it reads the configuration when it is imported

    return {
        f"{method} {path}" for path, view in _walked(urlpatterns) if path.startswith(APIS) for method in _methods(view)
    }


def short_form(route: str) -> str:
    """The older address of a management route."""
    return route.replace(" /management/v1/", " /management/", 1)


def _walked(patterns: Iterable[Any], above: str = "/") -> Iterator[tuple[str, Callable[..., Any]]]:
    for pattern in patterns:
        path = above + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walked(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern):
            yield re.sub(r"<\w+:(\w+)>", r"{\1}", path), pattern.callback


def _methods(view: Callable[..., Any]) -> list[str]:
    if kind := getattr(view, "cls", None):  # Django REST framework
        return [name.upper() for name in kind.http_method_names if hasattr(kind, name)]
    endpoint = inspect.getclosurevars(view).nonlocals.get("endpoint")
    # what is neither is a document that everybody may read
    return list(endpoint.allowed()) or ["POST"] if endpoint is not None else ["GET"]
