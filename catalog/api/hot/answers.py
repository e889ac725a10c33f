"""The answers of hot routes, as `http.responses` makes those of Django."""

from catalog.api import etags
from catalog.documents import spliced
from catalog.services.pointer import Stored
from lakewarden.hot.routes import Answer, HotRequest
from lakewarden.http import codings
from lakewarden.http.errors import render_error
from lakewarden.http.request import clean_request_id
from lakewarden.http.responses import COMPRESS_FROM, accepts_gzip, compress

Header = tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")
VARY: Header = (b"vary", etags.VARY.encode())


def nothing(request: HotRequest) -> Answer:
    """The answer to a HEAD."""
    return 204, [request_id(request)], b""


def compressed(request: HotRequest, body: bytes, *, identifier: Header | None = None) -> Answer:
    """JSON, as `responses.compress` packs it; `identifier`: the request's id where it has one already."""
    body, headers = packed(body, codings.preferred(accepted(request)))
    return 200, [JSON, identifier or request_id(request), *headers], body


def packed(body: bytes, coding: str | None) -> tuple[bytes, list[Header]]:
    """A body in the coding that the client prefers, if it is worth that, and the headers that say so."""
    if len(body) < COMPRESS_FROM:
        return body, [length(body)]
    headers: list[Header] = [(b"vary", b"Accept-Encoding")]
    if coding is not None:
        headers.append((b"content-encoding", coding.encode()))
        body = codings.packed(body, coding)
    return body, [*headers, length(body)]


def stored(request: HotRequest, found: Stored, *, suffix: bytes, mark: str = "", identifier: Header) -> Answer:
    """The stored document followed by `suffix`, as `rendering.render_stored` answers a change."""
    tag = etags.of(found.tabular.id, found.tabular.version, mark=mark)
    headers = [(b"etag", tag.encode()), VARY, identifier, JSON]
    if accepts_gzip(accepted(request)):
        body = spliced(found.document, suffix)
        headers.append((b"content-encoding", b"gzip"))
    else:
        body = found.answer + suffix
        if len(body) >= COMPRESS_FROM:
            body = _packed(request, body, headers)
    return 200, [*headers, length(body)], body


def failed(request: HotRequest, error: Exception, identifier: str) -> Answer:
    """As `request_life` answers a request that failed."""
    response = render_error(error, identifier)
    compress(response, accepted(request))
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
    return response.status_code, [*headers, length(response.content)], response.content


def _packed(request: HotRequest, body: bytes, headers: list[Header]) -> bytes:
    """The body in the coding that the client prefers, which is added to the headers."""
    coding = codings.preferred(accepted(request))
    if coding is None:
        return body
    headers.append((b"content-encoding", coding.encode()))
    return codings.packed(body, coding)


def accepted(request: HotRequest) -> str:
    """Which content codings the client accepts."""
    return request.headers.get(b"accept-encoding", b"").decode("latin-1")


def request_id(request: HotRequest) -> Header:
    given = request.headers.get(b"x-request-id", b"").decode("latin-1")
    return b"x-request-id", clean_request_id(given).encode()


def length(body: bytes) -> Header:
    return b"content-length", str(len(body)).encode()
