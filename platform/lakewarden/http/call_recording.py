"""Django middleware that counts each API call and notes its decisions for the audit."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from lakewarden import config
from lakewarden.audit import decision_buffer
from lakewarden.audit.decision_buffer import DECISIONS, Group
from lakewarden.audit.entries import MAX_TEXT, MAX_USER_AGENT
from lakewarden.audit.refusals import ANONYMOUS, PENDING, Refusal
from lakewarden.context import Refused, RequestContext
from lakewarden.errors import Forbidden, LakewardenError, NotAuthorized, NotFound
from lakewarden.http.errors import RenderedError
from lakewarden.http.event_pages import PAGE, EventPage
from lakewarden.http.request import CONTEXT, clean_request_id
from lakewarden.networks import network_of
from lakewarden.usage.call_counter import COUNTS

_APIS: Final = ("catalog/", "management/", "lakehouse/", "generic/", "lakekeeper/")
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})
_VARIABLE: Final = re.compile(r"<(?:\w+:)?(\w+)>")

View = Callable[[HttpRequest], HttpResponse]


def observed(get_response: View) -> View:
    """The middleware's factory."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        match = request.resolver_match
        if match is not None and match.route.startswith(_APIS) and request.method in _METHODS:
            _observe(request, response, template(request.method, match.route))
        return response

    return answer


@lru_cache(maxsize=1000)
def template(method: str, route: str) -> str:
    """A route in the form of the API documents; a management path without `/v1` counts as the one with it."""
    path = _VARIABLE.sub(r"{\1}", route)
    if path.startswith("management/") and not path.startswith("management/v1/"):
        path = path.replace("management/", "management/v1/", 1)
    return f"{method} /{path}"


def _observe(request: HttpRequest, response: HttpResponse, route: str) -> None:
    context: RequestContext | None = request.META.get(CONTEXT)
    page: EventPage | None = request.META.get(PAGE)
    if context is not None and (page is None or page.is_first):  # a stream is one call, however many pages it reads
        note_call(context, route, response.status_code)
    if isinstance(response, RenderedError) and config.current().audit.decisions != "none":
        refusal = _refusal(request, response, context, route)
        if refusal is not None:
            PENDING.add(refusal)


def note_call(context: RequestContext, route: str, status: int) -> None:
    """Count a call of a caller who is known, and note what it was allowed."""
    trail = context.trail
    if trail.project_id is not None:
        warehouse = UUID(trail.warehouse_id) if trail.warehouse_id else None
        COUNTS.add(route, status, project_id=trail.project_id, warehouse_id=warehouse)
    if decision_buffer.are_recorded():
        _note_allowed(context)


def _note_allowed(context: RequestContext) -> None:
    caller = context.caller
    for allowed in context.trail.allowed:
        about = (allowed.action, allowed.object_type, allowed.object_id)
        key = (caller.id, caller.assumed_role, *about)
        if not DECISIONS.again(key):
            DECISIONS.add(key, Group(allowed, context.request_id, context.user_agent[:MAX_USER_AGENT]))


def note_unauthenticated(scope: Mapping[str, Any], headers: Mapping[bytes, bytes], error: NotAuthorized) -> None:
    """Note a request for the audit that was refused before it reached Django."""
    if config.current().audit.decisions == "none":
        return
    path = scope["path"][:MAX_TEXT]
    asked = f"{scope['method']} {path}"
    PENDING.add(
        Refusal(
            outcome="unauthenticated",
            actor=ANONYMOUS,
            action=asked[:MAX_TEXT],
            object_type="request",
            object_id=path,
            project_id=None,
            reason=error.message,
            request_id=clean_request_id(headers.get(b"x-request-id", b"").decode("latin-1")),
            user_agent=headers.get(b"user-agent", b"").decode("latin-1")[:MAX_USER_AGENT],
            asked=asked,
            source=network_of((scope.get("client") or ("", 0))[0]),
        )
    )


def note_refused(context: RequestContext, route: str, error: LakewardenError, *, address: str) -> None:
    """Count a call that was refused outside of Django, and note for the audit what it was refused."""
    note_call(context, route, error.status)
    note_denial(context, asked=route, source=address)


def note_denial(context: RequestContext, *, asked: str, source: str = "") -> None:
    """Note for the audit what the trail says was refused, of a request that did not reach Django."""
    decision = context.trail.refused
    if decision is None or config.current().audit.decisions == "none":
        return
    PENDING.add(
        Refusal(
            outcome="denied",
            actor=context.caller.id,
            action=decision.action,
            object_type=decision.object_type,
            object_id=decision.object_id,
            project_id=decision.project_id,
            reason=decision.reason,
            request_id=context.request_id,
            user_agent=context.user_agent[:MAX_USER_AGENT],
            asked=asked[:MAX_TEXT],
            assumed_role=context.caller.assumed_role or "",
            source=source,
        )
    )


def _refusal(
    request: HttpRequest, response: RenderedError, context: RequestContext | None, route: str
) -> Refusal | None:
    """The audit's entry for a failed request: a 401, a 403 or a 404 that hides an object; None for any other."""
    if isinstance(response.error, NotAuthorized) and context is None:
        refused = None
    elif context is None or not (isinstance(response.error, Forbidden | NotFound) or context.trail.refused):
        return None
    else:
        refused = context.trail.refused
        if refused is None and isinstance(response.error, NotFound):
            return None
    path = request.path[:MAX_TEXT]
    project_id = context.trail.project_id if context else None
    decision = refused or Refused(route, "request", path, project_id, response.error.message)
    return Refusal(
        outcome="denied" if context else "unauthenticated",
        actor=context.caller.id if context else ANONYMOUS,
        action=decision.action,
        object_type=decision.object_type,
        object_id=decision.object_id,
        project_id=decision.project_id,
        reason=decision.reason,
        request_id=response["X-Request-Id"],
        user_agent=request.headers.get("user-agent", "")[:MAX_USER_AGENT],
        asked=f"{request.method} {path}",
        assumed_role=(context.caller.assumed_role or "") if context else "",
        source=network_of(request.META.get("REMOTE_ADDR", "")),
    )
