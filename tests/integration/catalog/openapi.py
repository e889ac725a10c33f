"""Checks every answer of the catalog against its own OpenAPI document, and the upstream one where it is available."""

from typing import Any
from urllib.parse import parse_qsl

from catalog.api.generic_tables import urls as generic
from tests.openapi.catalog import ours
from tests.openapi.upstream import is_at_hand, upstream
from tests.servers.asgi_client import Answer, AsgiClient

MOUNTS = ("/catalog", *generic.MOUNTS)


class CheckedClient(AsgiClient):
    """Calls the application like its base, and fails the test when an answer is not what the documents allow."""

    def call(self, method: str, path: str, **options: Any) -> Answer:
        answer = super().call(method, path, **options)
        plain, _, query = path.partition("?")
        mount = next((each for each in MOUNTS if path.startswith(each + "/")), None)
        if mount is not None and "/openapi." not in plain:
            check(method, plain.removeprefix(mount), answer, query=query)
        return answer

    def as_user(self, token: str) -> "CheckedClient":
        return CheckedClient(super().as_user(token).headers)


def check(method: str, path: str, answer: Answer, *, query: str = "") -> None:
    """AssertionError when status, headers or body of an answer break a document, or a parameter is in none."""
    assert "x-request-id" in answer.headers
    assert (method, answer.status) != ("HEAD", 200), "HEAD answers 204"
    if answer.body:
        assert int(answer.headers["content-length"]) == len(answer.body)
    is_ours_alone = "/generic-tables" in path or path.endswith("/v1/aws/s3/sign")
    for document in [ours(), upstream()] if is_at_hand() and not is_ours_alone else [ours()]:
        document.check(method, path, answer)
    if answer.status < 400:
        _check_parameters(method, path, {name for name, _ in parse_qsl(query, keep_blank_values=True)})


def _check_parameters(method: str, path: str, sent: set[str]) -> None:
    operation = ours().document["paths"][ours().template(path)][method.lower()]
    known = {each["name"] for each in operation["parameters"] if each["in"] == "query"}
    assert sent <= known, f"{method} {path}: parameters {sent - known} are not documented"
