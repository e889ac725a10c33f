"""Renders the errors of all APIs in the Iceberg error model: `{"error": {message, type, code}}`."""

import logging
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse

from lakewarden.database import is_outage, may_have_changed, refusal
from lakewarden.errors import (
    BadRequest,
    CommitStateUnknown,
    InternalError,
    LakewardenError,
    NoSuchRoute,
    NotAuthorized,
    Unavailable,
)
from lakewarden.http.request import request_id
from lakewarden.http.responses import JSON, json_response

logger = logging.getLogger(__name__)

_SERVER_ERROR = 500
_MAX_MESSAGE = 8192  # characters: enough to name a namespace of the greatest length in full


class RenderedError(HttpResponse):
    """The answer to a failed request; `error` is the error that the caller sees."""

    error: LakewardenError


def as_lakewarden_error(error: Exception) -> LakewardenError:
    """The error that the caller sees for any exception; for a defect it reveals nothing about the cause."""
    if isinstance(error, Unavailable) and may_have_changed():
        return CommitStateUnknown(f"A part of the change may have been applied: {error.message}")
    if isinstance(error, LakewardenError):
        return error
    if is_outage(error):
        return refusal(error)
    if isinstance(error, SuspiciousOperation):
        return BadRequest(f"The request is malformed: {error}")
    return InternalError("An internal error occurred. The server's log has its cause under this request id")


def error_body(error: LakewardenError, message: str | None = None) -> dict[str, Any]:
    """The Iceberg error model of an error. A very long message is shortened in the middle."""
    text = message or error.message
    if len(text) > _MAX_MESSAGE:
        text = f"{text[: _MAX_MESSAGE // 2]} … {text[-_MAX_MESSAGE // 4 :]}"
    return {"error": {"message": text, "type": error.wire_type, "code": error.status}}


def log_failure(error: Exception, known: LakewardenError, identifier: str) -> None:
    """Log a server error, `known` to the caller. An outage affects every request, so its entry has no traceback."""
    exc_info = None if isinstance(known, Unavailable) else error
    logger.log(
        logging.WARNING if exc_info is None else logging.ERROR,
        "request %s failed: %s",
        identifier,
        error.__cause__ or error if exc_info is None else error,
        exc_info=exc_info,
        extra={"request_id": identifier},
    )


def render_error(error: Exception, identifier: str) -> HttpResponse:
    """Turn any exception of a request into its answer; server errors are logged."""
    known = as_lakewarden_error(error)
    message = known.message
    if known.status >= _SERVER_ERROR:
        log_failure(error, known, identifier)
        message = f"{message} (request id {identifier})"
    body = json_response(error_body(known, message)).content
    response = RenderedError(body, status=known.status, content_type=JSON)
    response.error = known
    if isinstance(known, NotAuthorized):
        response["WWW-Authenticate"] = 'Bearer realm="lakewarden"'
    if isinstance(known, Unavailable):
        response["Retry-After"] = str(known.retry_after_s)
    response["X-Request-Id"] = identifier
    return response


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:  # noqa: ARG001 Django's signature
    error = NoSuchRoute(f"{request.method} {request.path} does not exist")
    return render_error(error, request_id(request))


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:  # noqa: ARG001 Django's signature
    return render_error(BadRequest("The request is malformed"), request_id(request))


def server_error(request: HttpRequest) -> HttpResponse:
    return render_error(InternalError("An internal error occurred"), request_id(request))
