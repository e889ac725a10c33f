"""What a view of somebody who is signed in receives, and how errors become pages.

A page authenticates its session's access token as the APIs do with theirs, so what takes a right or a user away there
does so here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Final
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.middleware.csrf import REASON_BAD_ORIGIN
from django.shortcuts import render
from django.views.decorators.csrf import csrf_protect

from console import cookies
from console.guard import secured
from console.services import provider, sessions
from console.services.sessions import Session
from lakewarden import __version__, backends
from lakewarden.authz.actions import ACTIONS, Action, ObjectType
from lakewarden.authz.interface import Granted
from lakewarden.context import RequestContext
from lakewarden.database import begin_request
from lakewarden.errors import Forbidden, LakewardenError, MethodNotAllowed, NotAuthorized
from lakewarden.http.bridge import MEMORY
from lakewarden.http.errors import as_lakewarden_error, error_body, log_failure
from lakewarden.http.event_pages import PAGE, EventPage
from lakewarden.http.request import CONTEXT, base_uri, context_of, request_id
from lakewarden.memory import held_by_request
from permissions import granters, privileges
from permissions.granters import Granter
from permissions.privileges import Asked
from tenants import access

LIVE_S: Final = 3.0
"""Between two looks at a part of a page that a browser follows."""
_SERVER_ERROR: Final = 500
_ORIGIN_FAILED: Final = REASON_BAD_ORIGIN.partition(" - ")[0]
_TOKEN: Final = "csrfmiddlewaretoken"  # noqa: S105 the name of a field
SECRET_FIELDS: Final = "credential-"  # noqa: S105 how names begin
"""How the names of fields begin that may hold a secret."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of somebody who is signed in."""

    request: HttpRequest
    context: RequestContext
    session: Session

    @property
    def query(self) -> dict[str, str]:
        return self.request.GET.dict()

    @property
    def project_id(self) -> str:
        return access.project_id_of(self.context)

    @property
    def is_partial(self) -> bool:
        """Whether a part of a page is asked for, once by htmx or by a stream that follows it."""
        return self.request.headers.get("hx-request") == "true" or _followed(self.request) is not None

    def granters(self, granted: Granted[object], action: Action) -> Callable[[], list[Granter]]:
        """Who can grant the right to do it, looked up if the page is to tell that."""
        return partial(granters.of, self.context, granted.chain, action)

    @property
    def base_uri(self) -> str:
        return base_uri(self.request)

    def render(self, template: str, **shown: object) -> HttpResponse:
        caller = self.context.caller
        frame = {"user": caller.name or caller.email or caller.id, "email": caller.email, "release": __version__}
        return render(self.request, f"console/{template}", {**frame, "visit": self, **shown})

    def part(self, template: str, **shown: object) -> HttpResponse:
        """A part of a page; a stream sends it whenever it has changed, and counts for its user in all sessions."""
        response, followed = self.render(template, **shown), _followed(self.request)
        if followed is not None:
            followed.show(response.content, reader=f"console {self.session.principal}", every_s=LIVE_S)
        return response


View = Callable[..., HttpResponseBase]


def page(view: Callable[..., HttpResponse]) -> View:
    """A view for people who are signed in; others are sent to sign in, and back afterwards. GET and HEAD only."""
    return secured(csrf_protect(_visited(view, methods=("GET", "HEAD"))))


def form(view: Callable[..., HttpResponse]) -> View:
    """Like `page`, for POST: with protection against requests from other sites."""
    return secured(csrf_protect(_visited(view, methods=("POST",))))


def pages(view: Callable[..., HttpResponse]) -> View:
    """Like `page`, for anybody: only errors become pages."""

    @wraps(view)
    def answer(request: HttpRequest, **path: str) -> HttpResponse:
        return _answered(request, lambda: view(request, **path))

    return secured(answer)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The page for a form from elsewhere, or whose token is missing or of another browser (`CSRF_FAILURE_VIEW`)."""
    text = "This form was not sent from a page of the console, or that page is too old: load it again, then send it"
    if reason.startswith(_ORIGIN_FAILED):
        text = (
            f"This form was sent from {request.headers.get('origin', '')[:300]}, but this server takes its own address "
            f"for {base_uri(request)}. If the first is where people reach it, its operator sets "
            "LAKEWARDEN__SERVER__BASE_URI to that address, or LAKEWARDEN__SERVER__TRUSTED_PROXIES to the proxy in front"
        )
    return error_page(request, Forbidden(text))


def _visited(view: Callable[..., HttpResponse], *, methods: tuple[str, ...]) -> Callable[..., HttpResponse]:
    @wraps(view)
    def answer(request: HttpRequest, **path: str) -> HttpResponse:
        def visited() -> HttpResponse:
            if request.method not in methods:
                raise MethodNotAllowed(f"{request.method} is not allowed here; allowed are {', '.join(methods)}")
            session = _session(request)
            if session is None:
                return _to_sign_in(request)
            try:
                context = _context(request, session)
            except NotAuthorized:  # the token is not confirmed any more
                return _to_sign_in(request)
            begin_request()  # a token that was renewed, or a new user, does not count as a change of this request
            with held_by_request(request.META[MEMORY].caller):
                try:
                    return view(Visit(request, context, session), **path)
                except Exception as error:  # noqa: BLE001 every error becomes a page
                    return error_page(request, error, session=session, context=context)

        return _answered(request, visited)

    return answer


def _answered(request: HttpRequest, attempt: Callable[[], HttpResponse]) -> HttpResponse:
    try:
        return attempt()
    except Exception as error:  # noqa: BLE001 every error becomes a page
        return error_page(request, error)


def error_page(
    request: HttpRequest, error: Exception, *, session: Session | None = None, context: RequestContext | None = None
) -> HttpResponse:
    """What happened, what to do, who can help, and the request id when the log knows more."""
    known, identifier = as_lakewarden_error(error), request_id(request)
    if known.status >= _SERVER_ERROR:
        log_failure(error, known, identifier)
    if _followed(request) is not None:
        return JsonResponse(error_body(known), status=known.status)
    shown = {
        "title": _title(known),
        "error": known,
        "request_id": identifier if known.status >= _SERVER_ERROR else None,
        "release": __version__,
        "who": session.principal if session and known.status == Forbidden.status else None,
        "granters": partial(_granters, context, known),
        "acts_as_role": session is not None and session.role_id is not None,
    }
    return render(request, "console/error.html", shown, status=known.status)


def _granters(context: RequestContext | None, error: LakewardenError) -> list[Granter]:
    """Who can grant the right whose lack is the error, as the audit of this request notes it."""
    refused = context and context.trail.refused
    if not context or not refused or refused.object_type not in set(ObjectType):
        return []
    kind = ObjectType(refused.object_type)
    if refused.reason != error.message and kind is not ObjectType.SERVER:  # of another object, which may be hidden
        return []
    action = next((each for each in ACTIONS[kind] if each.value == refused.action), None)
    asked = Asked(kind, refused.object_id, warehouse=context.trail.warehouse_id or "")
    found = privileges.find([asked]).get(asked)
    return granters.of(context, found.chain, action) if found and action else []


_TITLES: Final = {
    400: "This request is not valid",
    403: "You are not allowed to do this",
    404: "There is nothing here",
    405: "This page cannot be used like that",
    409: "This conflicts with what is there",
    503: "This cannot be answered now",
}


def _title(error: LakewardenError) -> str:
    return _TITLES.get(error.status, "Something went wrong")


def _session(request: HttpRequest) -> Session | None:
    cookie = cookies.session_of(request)
    followed = _followed(request)
    is_used = followed is None or followed.is_first
    return None if cookie is None else sessions.find(cookie, refresh=provider.refreshed, is_used=is_used)


def _followed(request: HttpRequest) -> EventPage | None:
    found: EventPage | None = request.META.get(PAGE)
    return found


def _context(request: HttpRequest, session: Session) -> RequestContext:
    """Raises NotAuthorized if the session's token is not accepted any more, or is another user's."""
    source = request.META.get("REMOTE_ADDR", "")
    verified = backends.authenticator().authenticate(f"Bearer {session.tokens.access}", source=source)
    if verified.id != session.principal:
        raise NotAuthorized("The session is of another user")
    chosen = {
        "user-agent": request.headers.get("user-agent"),
        "x-project-id": session.project_id,
        "x-assume-role": session.role_id,
    }
    context = context_of(verified, chosen.get, request_id(request))
    request.META[CONTEXT] = context
    return context


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    if _followed(request) is not None:
        raise NotAuthorized("The session has ended: sign in again")
    here = request.get_full_path() if request.method == "GET" else "/console"
    address = f"/console/sign-in?next={quote(here, safe='')}"
    if request.headers.get("hx-request") == "true":  # htmx would put the page of the provider into a part of this one
        response = HttpResponse(status=204)
        response["HX-Redirect"] = address
        return response
    if request.method == "POST":
        return _expired(request, address)
    return HttpResponseRedirect(address)


def _expired(request: HttpRequest, address: str) -> HttpResponse:
    """Keeps what was typed, but for secrets: a page never shows one."""
    sent = [(name, value) for name, value in request.POST.items() if name != _TOKEN]
    shown = {
        "release": __version__,
        "address": address,
        "here": request.get_full_path(),
        "typed": [(name, value) for name, value in sent if not name.startswith(SECRET_FIELDS)],
        "has_secrets": any(name.startswith(SECRET_FIELDS) for name, _ in sent),
    }
    return render(request, "console/expired.html", shown, status=401)
