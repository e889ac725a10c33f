"""The answers of hot reads, as `http.responses` makes those of Django."""

from lakewarden.hot.routes import Answer, HotRequest
from lakewarden.http import codings
from lakewarden.http.request import clean_request_id
from lakewarden.http.responses import COMPRESS_FROM

Header = tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")


def nothing(request: HotRequest) -> Answer:
    """The answer to a HEAD."""
    return 204, [request_id(request)], b""


def compressed(request: HotRequest, body: bytes) -> Answer:
    """JSON, as `responses.compress` packs it."""
    headers = [JSON, request_id(request)]
    if len(body) >= COMPRESS_FROM:
        headers.append((b"vary", b"Accept-Encoding"))
        coding = codings.preferred(request.headers.get(b"accept-encoding", b"").decode("latin-1"))
        if coding is not None:
            body = codings.packed(body, coding)
            headers.append((b"content-encoding", coding.encode()))
    return 200, [*headers, length(body)], body


def request_id(request: HotRequest) -> Header:
    given = request.headers.get(b"x-request-id", b"").decode("latin-1")
    return b"x-request-id", clean_request_id(given).encode()


def length(body: bytes) -> Header:
    return b"content-length", str(len(body)).encode()
