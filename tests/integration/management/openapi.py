"""Checks every answer of the management API against the OpenAPI document that is generated from its code."""

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from management import openapi_document
from tests.servers.asgi_client import Answer, AsgiClient

SHORT = re.compile(r"^/management/(?!v1/)")
ERROR = "#/components/schemas/Error"
SUCCESSES = range(200, 300)


class CheckedClient(AsgiClient):
    """Calls the application like its base, and fails the test when an answer is not what the document says."""

    def call(self, method: str, path: str, **options: Any) -> Answer:
        answer = super().call(method, path, **options)
        if path.startswith("/management/") and "/openapi." not in path:
            check(method, SHORT.sub("/management/v1/", path.partition("?")[0]), answer)
        return answer

    def as_user(self, token: str) -> "CheckedClient":
        return CheckedClient(super().as_user(token).headers)


def check(method: str, path: str, answer: Answer) -> None:
    """AssertionError when status, headers or body of an answer break the document."""
    assert "x-request-id" in answer.headers
    if answer.status in SUCCESSES:
        assert "vary" in answer.headers or "public" in answer.headers["cache-control"]
    if method == "HEAD" or answer.status == 304:
        assert answer.body == b""
        return
    schema = ERROR if answer.status not in SUCCESSES else _schema(method, path, answer.status)
    if schema is None:
        assert answer.body == b"", f"{method} {path}: no body is documented"
        return
    assert answer.headers["content-type"] == "application/json"
    if "content-encoding" in answer.headers:
        return
    problem = best_match(validator(schema).iter_errors(json.loads(answer.body)))
    assert problem is None, f"{method} {path} → {answer.status}: {problem.message} at {problem.json_path}"


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path template and operation of all that is documented."""
    return [
        (method.upper(), template, operation)
        for template, item in openapi_document.document()["paths"].items()
        for method, operation in item.items()
    ]


def _schema(method: str, path: str, status: int) -> str | None:
    """The pointer to what the answer's body must be; None when it has none."""
    template = next((each.template for each in _routes() if each.pattern.fullmatch(path)), None)
    assert template, f"{method} {path} answers {status}, but is not documented"
    responses = openapi_document.document()["paths"][template][method.lower()]["responses"]
    assert str(status) in responses, f"{method} {template} never answers {status}: {sorted(responses)}"
    if "content" not in responses[str(status)]:
        return None
    escaped = template.replace("/", "~1").replace("{", "%7B").replace("}", "%7D")
    return f"#/paths/{escaped}/{method.lower()}/responses/{status}/content/application~1json/schema"


@dataclass(frozen=True)
class _Route:
    template: str
    pattern: re.Pattern[str]


@cache
def _routes() -> list[_Route]:
    """Templates with fewer variables first: a literal segment goes before a variable one."""
    ordered = sorted(openapi_document.document()["paths"], key=lambda template: template.count("{"))
    return [_Route(each, re.compile(re.sub(r"\{[^}]*\}", "[^/]+", each))) for each in ordered]


@cache
def validator(pointer: str) -> Draft202012Validator:
    resource = Resource.from_contents(openapi_document.document(), default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("urn:management", resource)
    return Draft202012Validator(
        {"$ref": f"urn:management{pointer}"}, registry=registry, format_checker=Draft202012Validator.FORMAT_CHECKER
    )
