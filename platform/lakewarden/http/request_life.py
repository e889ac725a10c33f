"""A request's life, the same for every API: `Endpoint` (the catalog's) and `ManagementView` live it.

Request id → one attempt (the path's parts decoded, authentication, the method, which parses, asks `access`, calls a
service verb and renders) → a second attempt when nothing was changed by no fault of the request's → an error
rendered → what the API adds to all its answers → compression.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from lakewarden.database import may_be_repeated
from lakewarden.http.bridge import MEMORY
from lakewarden.http.errors import render_error
from lakewarden.http.request import request_id
from lakewarden.http.responses import compress
from lakewarden.memory import held_by_request

Attempt = Callable[[str], HttpResponse]
"""Answers a request of this id, or raises."""


def answered(request: HttpRequest, attempt: Attempt, *, finish: Callable[[HttpResponse], None]) -> HttpResponse:
    """The answer, whatever happens; `finish` may still change it, before it is compressed."""
    identifier = request_id(request)
    with held_by_request(request.META[MEMORY].caller):
        response = _attempted(attempt, identifier, again=True)
        finish(response)
        response["X-Request-Id"] = identifier
        compress(response, request.headers.get("accept-encoding", ""))
    return response


def _attempted(attempt: Attempt, identifier: str, *, again: bool) -> HttpResponse:
    try:
        return attempt(identifier)
    except Exception as error:  # noqa: BLE001 the one place where every error becomes an answer
        if not (again and may_be_repeated(error)):
            return render_error(error, identifier)
    return _attempted(attempt, identifier, again=False)
