"""The OpenAPI document of this API: `GET /openapi.json` and `/openapi.yaml`, to everybody: it is no secret."""

import json
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import Any, Final

import yaml
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, include, path
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator

from lakewarden.errors import MethodNotAllowed
from lakewarden.http.errors import render_error
from lakewarden.http.request import request_id
from lakewarden.http.responses import compress

_SECONDS_KEPT: Final = 300


class IncompleteDocument(Exception):
    """The code does not say enough about itself; the message lists what is missing, one a line."""


@cache
def document() -> dict[str, Any]:
    """The whole document. Raises IncompleteDocument instead of guessing."""
    from management.urls import routes  # noqa: PLC0415 this module's own route is among them

    generator = SchemaGenerator(patterns=[path("management/v1/", include(list(routes)))])  # type: ignore[no-untyped-call]
    with GENERATOR_STATS.silence():
        made: dict[str, Any] = generator.get_schema(public=True)  # type: ignore[no-untyped-call]
    problems = [*GENERATOR_STATS._error_cache, *GENERATOR_STATS._warn_cache]  # noqa: SLF001 it only prints them
    if problems:
        raise IncompleteDocument("\n".join(problems))
    return made


def as_yaml() -> str:
    """The document as a text that is the same each time."""
    text: str = yaml.dump(document(), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110)
    return text


class _Plain(yaml.SafeDumper):
    """Writes everything in full, without anchors, and paragraphs as they read."""

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
            refusal = render_error(MethodNotAllowed(f"{request.method} is not allowed here: GET, HEAD"), identifier)
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


routes: list[URLPattern] = [
    path("openapi.json", _serves("application/json", lambda: json.dumps(document()).encode())),
    path("openapi.yaml", _serves("application/yaml", lambda: as_yaml().encode())),
]
