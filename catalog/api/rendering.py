"""Responses of the table and view routes."""

from django.http import HttpResponse

from catalog.api import etags
from catalog.documents import loaded, spliced
from catalog.services.pointer import Stored
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import accepts_gzip, json_bytes, no_content

COMMIT_SUFFIX = b"}"


def render_stored(request: ApiRequest, stored: Stored, *, suffix: bytes, mark: str = "") -> HttpResponse:
    """The stored document followed by `suffix`, as gzip if the client accepts it; 304 if the
    client's copy is current. `mark` is that of the `Addition` to which the suffix belongs.
    """
    tag = etags.of(stored.tabular.id, stored.tabular.version, mark=mark)
    if request.method == "GET" and etags.matches(request.headers.get("if-none-match"), tag):
        return tagged(no_content(status=304), tag)
    if accepts_gzip(request.headers.get("accept-encoding", "")):
        response = json_bytes(spliced(stored.document, suffix))
        response["Content-Encoding"] = "gzip"
    else:
        response = json_bytes(loaded(stored.document, suffix))
    return tagged(response, tag)


def tagged(response: HttpResponse, tag: str) -> HttpResponse:
    response["ETag"] = tag
    response["Vary"] = etags.VARY
    return response
