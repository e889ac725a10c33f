"""Signing in at the identity provider, coming back, and signing out."""

import re
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST, require_safe

from console import cookies
from console.guard import secured
from console.services import provider, sessions
from console.visits import pages
from lakewarden import __version__, backends
from lakewarden.context import PrincipalId
from lakewarden.errors import BadRequest, Forbidden, NotAuthorized
from lakewarden.http.request import base_uri, context_of, request_id
from tenants.models import User
from tenants.services import users

HOME: Final = "/console"
_OWN_PAGE: Final = re.compile(r"/console(?:[/?][^\\\s]*)?")
_LONGEST: Final = 1500


@require_safe
@pages
def sign_in(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider; `next` is the page to come back to."""
    departure = provider.depart(redirect_uri=_redirect_uri(request), next_page=_next_page(request))
    response = HttpResponseRedirect(departure.address)
    cookies.keep_attempt(request, response, departure.attempt)
    return response


@require_safe
@pages
def callback(request: HttpRequest) -> HttpResponse:
    """Where the provider sends the browser back: begin the session, and register a user who is new."""
    attempt = cookies.attempt_of(request)
    if attempt is None:
        raise BadRequest("The attempt to sign in took too long, or was begun in another browser: sign in again")
    tokens = provider.arrive(request.GET.dict(), attempt, redirect_uri=_redirect_uri(request))
    try:
        verified = backends.authenticator().authenticate(
            f"Bearer {tokens.access}", source=request.META.get("REMOTE_ADDR", "")
        )
    except NotAuthorized as error:
        raise Forbidden(
            f"You are signed in at the identity provider, but this server does not accept its access token: "
            f"{error.message}. An administrator can correct console.scope or the provider's audience"
        ) from error
    context = context_of(verified, lambda _: None, request_id(request))
    users.ensure_not_deleted(users.provision(context, seen_by=User.UpdatedWith.CREATE_ENDPOINT))
    response = HttpResponseRedirect(_own_page(attempt.next_page))  # the cookie is not signed
    cookies.keep_session(request, response, sessions.begin(PrincipalId(verified.id), tokens))
    cookies.drop_attempt(request, response)
    return response


def _sign_out(request: HttpRequest) -> HttpResponse:
    cookie = cookies.session_of(request)
    ended = None if cookie is None else sessions.end(cookie)
    # a link, because browsers do not follow redirects of forms to other sites (Content-Security-Policy, form-action)
    elsewhere = ended and provider.sign_out_address(ended.tokens, back=base_uri(request) + HOME)
    response = render(request, "console/signed_out.html", {"release": __version__, "elsewhere": elsewhere})
    cookies.drop_session(request, response)
    return response


sign_out = require_POST(secured(csrf_protect(_sign_out)))


def _redirect_uri(request: HttpRequest) -> str:
    return f"{base_uri(request)}/console/callback"


def _next_page(request: HttpRequest) -> str:
    return _own_page(request.GET.get("next", ""))


def _own_page(asked: str) -> str:
    """Only a page of the console, so that nobody can be sent elsewhere."""
    return asked if len(asked) <= _LONGEST and _OWN_PAGE.fullmatch(asked) else HOME
