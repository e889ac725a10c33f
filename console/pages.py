"""The console's pages. There is no login, so they describe the server and show nothing that is stored in it."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.snippets import Snippet, snippets
from lakewarden import __version__
from lakewarden.http.health import database_answers
from lakewarden.http.request import base_uri


def home(request: HttpRequest) -> HttpResponse:
    """The start page: the server's version, whether the database answers, and settings for engines."""
    address = base_uri(request)
    shown: dict[str, str | bool | list[Snippet]] = {
        "version": __version__,
        "is_up": database_answers(),
        "base_uri": address,
        "snippets": snippets(address),
    }
    return render(request, "console/home.html", shown)
