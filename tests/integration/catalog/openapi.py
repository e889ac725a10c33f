"""Holds every answer of the catalog against the Iceberg REST OpenAPI document, which lies beside the checkout."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tests.servers.asgi_client import Answer, AsgiClient

DOCUMENT = Path(__file__).parents[4] / "shared" / "spec" / "iceberg-rest-catalog-open-api.yaml"
MOUNT = "/catalog"
ERROR = "#/components/schemas/IcebergErrorResponse"
OAUTH_ERROR = "#/components/schemas/OAuthError"
_FAILED = 400


class CheckedClient(AsgiClient):
    """Calls the application like its base, and fails the test when an answer is not what the document allows."""

    def call(self, method: str, path: str, **options: Any) -> Answer:
        answer = super().call(method, path, **options)
        if path.startswith(MOUNT + "/"):
            check(method, path.partition("?")[0].removeprefix(MOUNT), answer)
        return answer

    def as_user(self, token: str) -> "CheckedClient":
        return CheckedClient(super().as_user(token).headers)


def check(method: str, path: str, answer: Answer) -> None:
    """AssertionError when status, headers or body of an answer break the document."""
    assert "x-request-id" in answer.headers
    if answer.status in {204, 304} or method == "HEAD":
        assert answer.body == b""
        assert answer.status != 200, "HEAD answers 204"
        return
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.body)
    schema = _schema(method, path, answer.status)
    if "content-encoding" in answer.headers:
        return  # what it unpacks to is compared with the plain answer by the tests that ask for it
    problem = best_match(_validator(schema).iter_errors(json.loads(answer.body)))
    assert problem is None, f"{method} {path} → {answer.status}: {problem.message} at {problem.json_path}"


def templates() -> list[str]:
    """The path templates of the document, as it writes them."""
    return list(_document()["paths"])


def _schema(method: str, path: str, status: int) -> str:
    if status >= _FAILED:
        return OAUTH_ERROR if path == "/v1/oauth/tokens" else ERROR
    template = next(each for each in _routes() if each.pattern.fullmatch(path)).template
    responses = _document()["paths"][template][method.lower()]["responses"]
    assert str(status) in responses, f"{method} {template} never answers {status}: {sorted(responses)}"
    response, pointer = responses[str(status)], f"#/paths/{_escape(template)}/{method.lower()}/responses/{status}"
    if "$ref" in response:
        pointer = response["$ref"]
        response = _document()["components"]["responses"][pointer.rpartition("/")[2]]
    assert "application/json" in response["content"]
    return f"{pointer}/content/application~1json/schema"


@dataclass(frozen=True)
class _Route:
    template: str
    pattern: re.Pattern[str]


@cache
def _routes() -> list[_Route]:
    """Templates with fewer variables first: a literal segment goes before a variable one."""
    ordered = sorted(templates(), key=lambda template: template.count("{"))
    return [_Route(each, re.compile(re.sub(r"\{[^}]*\}", "[^/]+", each))) for each in ordered]


@cache
def _document() -> Any:
    assert DOCUMENT.is_file(), "The OpenAPI document is not beside this checkout: shared/spec"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return _with_null(yaml.load(DOCUMENT.read_text(), Loader=loader))  # noqa: S506 both loaders are the safe ones


def _with_null(node: Any) -> Any:
    """Writes `nullable: true`, which the document's own version of OpenAPI no longer knows, as a type."""
    if isinstance(node, list):
        return [_with_null(each) for each in node]
    if not isinstance(node, dict):
        return node
    plain = {str(key): _with_null(value) for key, value in node.items()}  # statuses are numbers in YAML
    if plain.get("nullable") is True and isinstance(plain.get("type"), str):
        plain["type"] = [plain["type"], "null"]
    return plain


@cache
def _validator(pointer: str) -> Draft202012Validator:
    resource = Resource.from_contents(_document(), default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("urn:iceberg", resource)
    return Draft202012Validator({"$ref": f"urn:iceberg{pointer}"}, registry=registry)


def _escape(template: str) -> str:
    return template.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")
