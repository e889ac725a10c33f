"""Serves an API's OpenAPI document as JSON and YAML, without authentication: it is not secret."""

import json
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import Any, Final, TypeAlias

import yaml
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from lakewarden.errors import MethodNotAllowed
from lakewarden.http.errors import render_error
from lakewarden.http.request import request_id
from lakewarden.http.responses import compress

Document: TypeAlias = dict[str, Any]

_SECONDS_KEPT: Final = 300


class IncompleteDocument(Exception):
    """Descriptions are missing in the code; the message lists them, one in a line."""


def routes(document: Callable[[], Document]) -> list[URLPattern]:
    """Routes for `openapi.json` and `openapi.yaml`; the document is generated at the first request."""
    return [
        path("openapi.json", _serves("application/json", lambda: json.dumps(document()).encode())),
        path("openapi.yaml", _serves("application/yaml", lambda: as_yaml(document()).encode())),
    ]


def as_yaml(document: Document) -> str:
    """The document as YAML, always in the same order."""
    text: str = yaml.dump(document, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110)
    return text


class _Plain(yaml.SafeDumper):
    """Writes no anchors, and texts of several lines as blocks."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 the library's
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Plain.add_representer(str, _text)


def _serves(content_type: str, content: Callable[[], bytes]) -> Callable[[HttpRequest], HttpResponse]:
    @cache
    def made() -> tuple[bytes, str]:
        body = content()
        return body, f'W/"{sha256(body).hexdigest()[:32]}"'

    def view(request: HttpRequest) -> HttpResponse:
        identifier = request_id(request)
        if request.method not in {"GET", "HEAD"}:
            wrong = MethodNotAllowed(f"{request.method} is not allowed here; allowed are GET, HEAD")
            refusal = render_error(wrong, identifier)
            refusal["Allow"] = "GET, HEAD"
            return refusal
        body, tag = made()
        if request.headers.get("if-none-match") == tag:
            response = HttpResponse(status=304)
        else:
            response = HttpResponse(body, content_type=content_type)
            compress(response, request.headers.get("accept-encoding", ""))
        response["ETag"] = tag
        response["Cache-Control"] = f"public, max-age={_SECONDS_KEPT}"
        response["X-Request-Id"] = identifier
        return response

    return view
