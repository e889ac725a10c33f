"""The console's URLs; `/` redirects to it."""

from typing import Final

from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import path
from django.views.generic import RedirectView
from whitenoise.middleware import WhiteNoiseMiddleware

from console import pages
from console.guard import guarded

app_name = "console"


def _no_file(request: HttpRequest) -> HttpResponseBase:
    raise Http404(f"There is no file {request.path}")


_FILES: Final = WhiteNoiseMiddleware(_no_file)


def _file(request: HttpRequest, **_: str) -> HttpResponseBase:
    found: HttpResponseBase = _FILES(request)
    return found


urlpatterns = [
    path("", RedirectView.as_view(pattern_name="console:home"), name="root"),
    path("console", guarded(pages.home), name="home"),
    path("console/static/<path:name>", guarded(_file)),
]
