"""The start page: for people who are signed in their warehouses, for others the server's state and how to connect."""

from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from console import cookies, drawings
from console.services import provider
from console.snippets import Connection, Snippet, snippets
from console.visits import Visit, page, pages
from lakewarden import __version__
from lakewarden.http.health import database_answers
from lakewarden.http.request import base_uri

_COLOURS: Final = {
    "ground": "behind everything",
    "surface": "panels, tables and cards",
    "ink": "text",
    "quiet": "what is less important",
    "line": "borders",
    "accent": "links, buttons and what is chosen",
    "wash": "behind what is chosen",
    "good": "done, allowed, added",
    "bad": "failed, refused, removed, destructive",
    "warn": "changed, attention",
    "code": "behind code",
}


@require_safe
@pages
def home(request: HttpRequest) -> HttpResponse:
    """Shows nothing that is stored in the server to people who are not signed in."""
    if cookies.session_of(request) is not None:
        return HttpResponseRedirect("/console/warehouses")
    address = base_uri(request)
    shown: dict[str, str | bool | list[Snippet]] = {
        "release": __version__,
        "is_up": database_answers(),
        "base_uri": address,
        "snippets": snippets(Connection(address)),
        "can_sign_in": provider.is_on(),
    }
    return render(request, "console/home.html", shown)


@page
def design(visit: Visit) -> HttpResponse:
    """The design system: tokens and components, as all pages use them."""
    points = [(float(x), float((x * 7) % 11), f"point {x}") for x in range(12)]
    return visit.render(
        "design.html",
        colours=_COLOURS,
        now=timezone.now(),
        charts=[drawings.chart("A chart", points, top="10 units", first="first", last="last")],
        nesting=drawings.neighbours([("above", "#nesting")], "this one", [("one", "#nesting"), ("two", "#nesting")]),
    )
