"""Answers of the table and view routes."""

from django.http import HttpResponse

from catalog.documents import inflated, spliced
from catalog.services.pointer import Stored
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import accepts_gzip, json_bytes

LOAD_SUFFIX = b',"config":{}}'
COMMIT_SUFFIX = b"}"


def render_stored(request: ApiRequest, stored: Stored, *, suffix: bytes) -> HttpResponse:
    """The stored document followed by `suffix`, as gzip where the client accepts it."""
    if accepts_gzip(request.headers.get("accept-encoding", "")):
        response = json_bytes(spliced(stored.document, suffix))
        response["Content-Encoding"] = "gzip"
    else:
        response = json_bytes(inflated(stored.document) + suffix)
    response["Vary"] = "Accept-Encoding"
    return response
