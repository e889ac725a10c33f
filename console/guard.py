"""What a browser must not do with the console's pages: worn by their views alone, so no API request pays for it."""

from collections.abc import Callable
from functools import wraps
from typing import Final
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponseBase
from django.middleware.security import SecurityMiddleware
from django.utils.decorators import decorator_from_middleware
from django.views.decorators.clickjacking import xframe_options_deny
from django.views.decorators.http import require_safe

from console import cookies
from lakewarden.http.request import base_uri

_POLICY: Final = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

View = Callable[..., HttpResponseBase]

# the stubs allow a decorator of decorators
_secured: Final[Callable[[View], View]] = decorator_from_middleware(SecurityMiddleware)  # type: ignore[assignment]


def secured(view: View) -> View:
    """Never in a frame, nothing from elsewhere; kept by nobody unless the view says otherwise."""

    @wraps(view)
    def answer(request: HttpRequest, **path: str) -> HttpResponseBase:
        _know_public_address(request)
        cookies.take_form_token(request)
        response = view(request, **path)
        cookies.give_form_token(request, response)
        response["Content-Security-Policy"] = _POLICY
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return xframe_options_deny(_secured(answer))


def _know_public_address(request: HttpRequest) -> None:
    """Django compares the origin of a form with these; a proxy that is not trusted cannot tell another address."""
    if "x-forwarded-host" in request.headers:
        address = urlsplit(base_uri(request))
        request.META |= {"HTTP_HOST": address.netloc, "wsgi.url_scheme": address.scheme}


def guarded(view: View) -> View:
    """`secured`, and for reading only."""
    return require_safe(secured(view))
