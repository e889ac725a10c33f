"""Builds JSON answers and compresses them if the client accepts it."""

from typing import Any

import msgspec
from django.http import HttpResponse
from django.utils.cache import patch_vary_headers

from lakewarden.http import codings

COMPRESS_FROM = 1400  # bytes: a smaller answer fits into one packet anyway
JSON = "application/json"

_encoder = msgspec.json.Encoder()


def json_response(value: Any, *, status: int = 200) -> HttpResponse:  # noqa: ANN401 anything msgspec encodes
    return HttpResponse(_encoder.encode(value), status=status, content_type=JSON)


def json_bytes(content: bytes, *, status: int = 200) -> HttpResponse:
    return HttpResponse(content, status=status, content_type=JSON)


def no_content(*, status: int = 204) -> HttpResponse:
    response = HttpResponse(status=status)
    del response["Content-Type"]
    return response


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether `Accept-Encoding` allows gzip (RFC 9110, 12.5.3)."""
    return codings.weight(accept_encoding, "gzip") > 0


def compress(response: HttpResponse, accept_encoding: str) -> None:
    """Compress an answer in place, if it is large enough and not compressed yet."""
    if response.has_header("Content-Encoding") or len(response.content) < COMPRESS_FROM:
        return
    patch_vary_headers(response, ["Accept-Encoding"])
    coding = codings.preferred(accept_encoding)
    if coding is not None:
        response.content = codings.packed(response.content, coding)
        response["Content-Encoding"] = coding
