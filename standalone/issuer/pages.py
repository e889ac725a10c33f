"""The issuer's pages for users: sign in, confirm a device, sign out; routed by site.py."""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from authlib.oauth2.rfc6749 import OAuth2Error
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from joserfc import jwt
from joserfc.errors import JoseError

from standalone.issuer.provider import Provider
from standalone.issuer.users import DevUser

TEMPLATES: Final = Path(__file__).parent / "templates"
_STYLE: Final = (TEMPLATES / "style.css").read_text(encoding="utf-8")
_STYLE_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode()
# browsers apply form-action to the redirect after a form, too, and that goes to the client
_SECURITY_POLICY: Final = (
    f"default-src 'none'; img-src data:; style-src 'sha256-{_STYLE_HASH}'; frame-ancestors 'none';"
    " base-uri 'none'; form-action 'self' http://127.0.0.1:* http://localhost:*"
)
_RESPONSE_TYPE: Final = re.compile(r"[a-z_ ]{0,60}")
_WRONG_PASSWORD: Final = "The user name or the password is wrong."  # noqa: S105 - a message


class Pages:
    """Views that show or process pages. The session contains the subject who signed in."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def home(self, request: HttpRequest) -> HttpResponse:
        user = self._signed_in(request)
        return _page(request, "home.html", {"user": user, "issuer": self._provider.issuer})

    def authorize(self, request: HttpRequest) -> HttpResponse:
        """RFC 6749 section 4.1.1: sign in if necessary, then redirect to the client with a code."""
        if not _RESPONSE_TYPE.fullmatch(request.GET.get("response_type", "")):
            return _message(request, "This sign-in link is not valid", "response_type must be 'code'.", status=400)
        user = self._signed_in(request)
        try:
            grant = self._provider.get_consent_grant(request, end_user=user)
        except OAuth2Error as error:
            return self._refuse(request, error)
        if request.method == "POST":
            user = self._sign_in(request)
            if user is None:
                return self._login_form(request, grant.client.client_id, error=_WRONG_PASSWORD)
        elif user is None or grant.prompt == "login":
            return self._login_form(request, grant.client.client_id)
        response: HttpResponse = self._provider.create_authorization_response(
            grant.request, grant_user=user, grant=grant
        )
        return response

    def device(self, request: HttpRequest) -> HttpResponse:
        """RFC 8628 section 3.3: the user enters the code that the device shows, and decides."""
        code = (request.POST if request.method == "POST" else request.GET).get("user_code", "")
        user = self._signed_in(request)
        if request.method != "POST":
            return _page(request, "device.html", {"user": user, "user_code": code})
        device = self._provider.device_of(code)
        if device is None or device.is_approved is not None:
            return self._device_form(request, code, "This code is unknown or has expired: compare it with your device.")
        user = user or self._sign_in(request)
        if user is None:
            return self._device_form(request, code, _WRONG_PASSWORD)
        device.subject, device.is_approved = user.subject, request.POST.get("decision") == "approve"
        if device.is_approved:
            return _message(request, "Your device is signed in", "You can close this page and go back to it.")
        return _message(request, "Your device was refused", "It did not get access. You can close this page.")

    def logout(self, request: HttpRequest) -> HttpResponse:
        """OpenID Connect RP-Initiated Logout 1.0, section 2."""
        asked = request.POST if request.method == "POST" else request.GET
        hinted_client = self._client_of_hint(asked.get("id_token_hint", ""))
        client = self._provider.query_client(hinted_client or asked.get("client_id", ""))
        request.session.flush()
        target = asked.get("post_logout_redirect_uri", "")
        if client is None or not client.check_redirect_uri(target):
            return _message(request, "You are signed out", "You can close this page.")
        if asked.get("state"):
            target += ("&" if "?" in target else "?") + urlencode({"state": asked["state"]})
        return HttpResponseRedirect(target)

    def _signed_in(self, request: HttpRequest) -> DevUser | None:
        subject = request.session.get("subject")
        return None if subject is None else self._provider.users.find(subject)

    def _sign_in(self, request: HttpRequest) -> DevUser | None:
        user = self._provider.users.check_password(request.POST.get("username", ""), request.POST.get("password", ""))
        if user is not None:
            request.session.cycle_key()
            request.session["subject"] = user.subject
        return user

    def _client_of_hint(self, id_token: str) -> str | None:
        """Return the client that one of this issuer's id_tokens was made for; it may have expired since."""
        try:
            claims = jwt.decode(id_token, self._provider.keys, algorithms=["RS256"]).claims
        except (JoseError, ValueError, RecursionError):
            return None
        audience = claims.get("aud")
        return audience[0] if isinstance(audience, list) and audience else None

    def _refuse(self, request: HttpRequest, error: OAuth2Error) -> HttpResponse:
        """Report an error to the client by redirect if its address is valid, otherwise to the user."""
        if error.redirect_uri:
            response: HttpResponse = self._provider.handle_error_response(request, error)
            return response
        return _message(request, "This sign-in link is not valid", error.get_error_description(), status=400)

    @staticmethod
    def _login_form(request: HttpRequest, client_id: str, *, error: str | None = None) -> HttpResponse:
        context = {"client_id": client_id, "error": error, "username": request.POST.get("username", "")}
        return _page(request, "login.html", context, status=401 if error else 200)

    def _device_form(self, request: HttpRequest, code: str, error: str) -> HttpResponse:
        context = {
            "user": self._signed_in(request),
            "user_code": code,
            "error": error,
            "username": request.POST.get("username", ""),
        }
        return _page(request, "device.html", context, status=400)


def expired_form(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - Django's call
    """The answer to a form without a valid CSRF token; named in Django's settings."""
    return _message(request, "This page is too old", "Go back, reload it and try again.", status=403)


def _message(request: HttpRequest, title: str, text: str, *, status: int = 200) -> HttpResponse:
    return _page(request, "message.html", {"title": title, "text": text}, status=status)


def _page(request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    response = render(request, template, context | {"style": _STYLE}, status=status)
    response.headers["Content-Security-Policy"] = _SECURITY_POLICY
    response.headers["Cache-Control"] = "no-store"
    return response
