"""The life of a request, the same for all APIs: `Endpoint` (catalog) and `ManagementView` use it.

1. request id
2. an attempt: decode the path, authenticate, call the method, which parses, calls `access` and a service, and renders
3. a second attempt, if the first one failed because of an outage and has certainly changed nothing
4. render the error, if there is one
5. add the headers of the API
6. compress
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from lakewarden.database import may_be_repeated
from lakewarden.http.bridge import MEMORY
from lakewarden.http.errors import render_error
from lakewarden.http.request import request_id
from lakewarden.http.responses import compress
from lakewarden.json_log import REQUEST
from lakewarden.memory import held_by_request

Attempt = Callable[[str], HttpResponse]
"""Answers the request with this request id, or raises."""


def answered(request: HttpRequest, attempt: Attempt, *, finish: Callable[[HttpResponse], None]) -> HttpResponse:
    """The answer, also for errors; `finish` may add to it before it is compressed."""
    identifier = request_id(request)
    REQUEST.set(identifier)
    with held_by_request(request.META[MEMORY].caller):
        response = _attempted(attempt, identifier, again=True)
        finish(response)
        response["X-Request-Id"] = identifier
        compress(response, request.headers.get("accept-encoding", ""))
    return response


def _attempted(attempt: Attempt, identifier: str, *, again: bool) -> HttpResponse:
    try:
        return attempt(identifier)
    except Exception as error:  # noqa: BLE001 the only place that turns every error into an answer
        if not (again and may_be_repeated(error)):
            return render_error(error, identifier)
    return _attempted(attempt, identifier, again=False)
