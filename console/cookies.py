"""The console's cookies: the session's, that of an attempt to sign in, and that of the token in forms.

With https their names begin with `__Host-`, so no other host of the domain can set them (RFC 6265bis section 4.1.3).
"""

import base64
import binascii
from typing import Final

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from console.services.provider import Attempt
from lakewarden import config
from lakewarden.http.request import base_uri

_SESSION: Final = "lakewarden-session"
_ATTEMPT: Final = "lakewarden-sign-in"
_HOST: Final = "__Host-"
_ATTEMPT_S: Final = 600
_LONGEST: Final = 4096  # what browsers keep


def session_of(request: HttpRequest) -> str | None:
    value = request.COOKIES.get(_name(request, _SESSION))
    return value if value and len(value) <= _LONGEST else None


def keep_session(request: HttpRequest, response: HttpResponse, value: str) -> None:
    _set(request, response, _SESSION, value, seconds=config.current().console.max_session_s)


def drop_session(request: HttpRequest, response: HttpResponse) -> None:
    _set(request, response, _SESSION, "", seconds=0)


def attempt_of(request: HttpRequest) -> Attempt | None:
    value = request.COOKIES.get(_name(request, _ATTEMPT), "")
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(value[:_LONGEST]), type=Attempt)
    except (binascii.Error, ValueError):
        return None


def keep_attempt(request: HttpRequest, response: HttpResponse, attempt: Attempt) -> None:
    value = base64.urlsafe_b64encode(msgspec.json.encode(attempt)).decode()
    _set(request, response, _ATTEMPT, value, seconds=_ATTEMPT_S)


def drop_attempt(request: HttpRequest, response: HttpResponse) -> None:
    _set(request, response, _ATTEMPT, "", seconds=0)


def take_form_token(request: HttpRequest) -> None:
    """Before the view: Django looks for its cookie by one name; with https only this host can have set that cookie."""
    if _is_https(request):
        given = request.COOKIES.get(f"{_HOST}{settings.CSRF_COOKIE_NAME}")
        request.COOKIES.pop(settings.CSRF_COOKIE_NAME, None)
        if given is not None:
            request.COOKIES[settings.CSRF_COOKIE_NAME] = given


def give_form_token(request: HttpRequest, response: HttpResponseBase) -> None:
    """After the view."""
    if settings.CSRF_COOKIE_NAME in response.cookies and _is_https(request):
        value = response.cookies.pop(settings.CSRF_COOKIE_NAME).value
        response.set_cookie(
            f"{_HOST}{settings.CSRF_COOKIE_NAME}",
            value,
            max_age=settings.CSRF_COOKIE_AGE,
            path="/",
            secure=True,
            httponly=True,
            samesite="Strict",
        )


def _set(request: HttpRequest, response: HttpResponse, name: str, value: str, *, seconds: int) -> None:
    # not Strict: browsers would not send it on the way back from the identity provider
    response.set_cookie(
        _name(request, name),
        value,
        max_age=seconds,
        path="/",
        secure=_is_https(request),
        httponly=True,
        samesite="Lax",
    )


def _name(request: HttpRequest, name: str) -> str:
    return f"{_HOST}{name}" if _is_https(request) else name


def _is_https(request: HttpRequest) -> bool:
    return base_uri(request).startswith("https://")
