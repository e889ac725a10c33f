"""The console's pages. There is no login, so they describe the server and show nothing that is stored in it."""

from functools import cache
from hashlib import sha256
from importlib.resources import files

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.snippets import Snippet, snippets
from lakewarden import __version__
from lakewarden.http.health import database_answers
from lakewarden.http.request import base_uri

_POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The start page: the server's version, whether the database answers, and settings for engines."""
    address = base_uri(request)
    shown: dict[str, str | bool | list[Snippet]] = {
        "version": __version__,
        "is_up": database_answers(),
        "base_uri": address,
        "snippets": snippets(address),
        "style_version": _style()[1],
    }
    return _guarded(render(request, "console/home.html", shown))


@require_safe
def style(request: HttpRequest) -> HttpResponse:
    """The style sheet; its URL contains its version, so browsers may cache it."""
    content, version = _style()
    tag = f'"{version}"'
    if request.headers.get("if-none-match") == tag:
        response: HttpResponse = HttpResponseNotModified()
    else:
        response = HttpResponse(content, content_type="text/css; charset=utf-8")
    response["ETag"] = tag
    response["Cache-Control"] = "public, max-age=86400"
    return _guarded(response)


@cache
def _style() -> tuple[bytes, str]:
    content = files("console").joinpath("style.css").read_bytes()
    return content, sha256(content).hexdigest()[:12]


def _guarded(response: HttpResponse) -> HttpResponse:
    """What a browser must not do with our pages."""
    response["Content-Security-Policy"] = _POLICY
    response["X-Content-Type-Options"] = "nosniff"
    response["X-Frame-Options"] = "DENY"
    response["Referrer-Policy"] = "same-origin"
    response.setdefault("Cache-Control", "no-store")
    return response
