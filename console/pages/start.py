"""The start page: for people who are signed in their warehouses, for others the server's state and how to connect."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console import cookies
from console.services import provider
from console.snippets import Connection, Snippet, snippets
from console.visits import pages
from lakewarden import __version__
from lakewarden.http.health import database_answers
from lakewarden.http.request import base_uri


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
