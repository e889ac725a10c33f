"""Errors that asgi.py and the connection answer themselves, before Django, in the same error model."""

import logging
from http import HTTPStatus

import msgspec

from lakewarden.errors import LakewardenError, NotAuthorized, TooManyRequests, Unavailable
from lakewarden.hot.routes import Answer
from lakewarden.http.errors import error_body
from lakewarden.ids import new_id_text

logger = logging.getLogger(__name__)

CLOSE = (b"connection", b"close")


def refusal(error: LakewardenError, identifier: str) -> Answer:
    """The answer to a request that is refused before it is dispatched."""
    message = error.message
    if isinstance(error, Unavailable):
        logger.info("request %s was refused: %s", identifier, message, extra={"request_id": identifier})
        message = f"{message} (request id {identifier})"
    content = msgspec.json.encode(error_body(error, message))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"x-request-id", identifier.encode()),
    ]
    if isinstance(error, NotAuthorized):
        headers.append((b"www-authenticate", b'Bearer realm="lakewarden"'))
    if isinstance(error, Unavailable | TooManyRequests):
        headers.append((b"retry-after", str(error.retry_after_s).encode()))
    return error.status, headers, content


def last_words(error: LakewardenError) -> bytes:
    """The whole answer as bytes of HTTP/1.1, for a connection that is closed afterwards."""
    status, headers, content = refusal(error, new_id_text())
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
    lines += [name + b": " + value for name, value in [*headers, CLOSE]]
    return b"\r\n".join([*lines, b"", content])
