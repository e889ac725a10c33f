"""The catalog's OpenAPI document allows nothing that the Iceberg REST document forbids, except for what is listed here."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.openapi.catalog import ours
from tests.openapi.containment import Containment, resolved
from tests.openapi.upstream import upstream

_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_TABLE, _VIEW = f"{_NAMESPACE}/tables/{{table}}", f"{_NAMESPACE}/views/{{view}}"
_LISTS = ("/v1/{prefix}/namespaces", f"{_NAMESPACE}/tables", f"{_NAMESPACE}/views")

EXTENSIONS = {
    f"DELETE {_TABLE} answers 409": "it is protected",
    f"DELETE {_VIEW} answers 409": "it is protected",
    f"POST {_TABLE}/unregister answers 409": "it is protected",
    "GET /v1/config takes X-Project-Id": "warehouses lie in projects",
    **{f"GET {each} takes {name}": "details" for each in _LISTS for name in ("returnUuids", "returnProtectionStatus")},
    f"GET {_NAMESPACE} takes returnUuid": "details",
    **{
        f"DELETE {_NAMESPACE} takes {name}": "deletion of what is below, protected or set aside"
        for name in ("recursive", "force", "purgeRequested", "purge")
    },
    f"DELETE {_TABLE} takes force": "deletion of what is protected or set aside",
    f"DELETE {_VIEW} takes force": "deletion of what is protected or set aside",
    f"DELETE {_VIEW} takes purgeRequested": "as of tables",
    f"POST {_NAMESPACE}/views takes Idempotency-Key": "as every other change",
    f"GET {_VIEW} takes If-None-Match": "as of tables",
    "POST /v1/oauth/tokens request: fits none of anyOf": "it is refused whatever it says",
    f"POST {_TABLE}/metrics request: fits none of anyOf": "reports are kept, whatever they hold",
    f"POST {_TABLE}/sign answers 404": "the table does not exist",
    f"POST {_TABLE}/sign request.method: may be another value than "
    "['PUT', 'GET', 'HEAD', 'POST', 'DELETE', 'PATCH', 'OPTIONS']": "any other is refused (400)",
    **{
        f"POST {_TABLE}/sign request.properties{member}: may be ['array', 'boolean', 'integer', 'null', 'number', "
        f"'{last}']": "they are ignored, whatever they hold"
        for member, last in (("", "string"), (".*", "object"))
    },
}
"""Where this catalog adds something, or is less strict, and why."""
RANGE = "4XX"
"""Any operation may be refused with any 4xx status, in the common form of errors."""


def _of_iceberg() -> list[tuple[str, str, dict[str, Any]]]:
    """Our operations without those of generic tables and our own signers, which the Iceberg document does not know."""
    return [
        each
        for each in ours().operations()
        if "generic tables" not in each[2]["tags"] and not each[1].endswith("/v1/aws/s3/sign")
    ]


def _operations() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each operation of our document as a capability, and its counterpart with the parameters of its path."""
    for method, template, operation in _of_iceberg():
        item = upstream().document["paths"][template]
        shared = item.get("parameters", [])
        theirs = item[method.lower()]
        yield (
            f"{method} {template}",
            operation,
            {**theirs, "parameters": [*shared, *theirs.get("parameters", [])]},
        )


def _problems() -> Iterator[str]:
    containment = Containment(ours().document, upstream().document)
    for name, our, their in _operations():
        yield from _parameters(containment, name, our, their)
        if body := our.get("requestBody"):
            for kind, media in body["content"].items():
                outer = their["requestBody"]["content"][kind]["schema"]
                yield from containment.problems(media["schema"], outer, f"{name} request")
        for status, answer in our["responses"].items():
            known = their["responses"].get(status)
            if known is None:
                if status != RANGE:
                    yield f"{name} answers {status}"
            elif not name.startswith("HEAD "):
                yield from _bodies(containment, f"{name} {status}", answer, resolved(upstream().document, known))


def _bodies(containment: Containment, where: str, our: dict[str, Any], their: dict[str, Any]) -> Iterator[str]:
    if our.get("content", {}).keys() != their.get("content", {}).keys():
        yield f"{where} has another kind of body"
    for kind, media in our.get("content", {}).items():
        yield from containment.problems(media["schema"], their["content"][kind]["schema"], where)


def _parameters(containment: Containment, name: str, our: dict[str, Any], their: dict[str, Any]) -> Iterator[str]:
    known = {each["name"]: each for each in (resolved(upstream().document, each) for each in their["parameters"])}
    named = {each["name"]: each for each in our["parameters"]}
    yield from (f"{name} takes no {each}" for each in known.keys() - named.keys())
    for each, parameter in named.items():
        if each not in known:
            yield f"{name} takes {each}"
            continue
        assert (parameter["in"], parameter.get("required", False)) == (
            known[each]["in"],
            known[each].get("required", False),
        )
        yield from containment.problems(parameter["schema"], known[each]["schema"], f"{name} {each}")


def test_ours_allows_nothing_that_upstream_forbids() -> None:
    assert sorted(_problems()) == sorted(EXTENSIONS)


def test_each_of_our_operations_is_one_of_upstream() -> None:
    known = {(method, template) for method, template, _ in upstream().operations()}
    assert {(method, template) for method, template, _ in _of_iceberg()} <= known


@pytest.mark.parametrize(
    ("component", "member", "changed"),
    [
        ("TableMetadata", "location", {"type": "integer"}),
        ("NamespaceList", "namespaces", {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        ("Snapshot", "summary", {"type": "object", "additionalProperties": {"type": "string"}}),
        ("ErrorModel", "code", {"type": "integer"}),
        ("ListType", "element", {"type": "number"}),
        ("SetSnapshotRefUpdate", "type", {"type": "string"}),
    ],
)
def test_a_member_that_allows_more_is_found(
    component: str, member: str, changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ours().document["components"]["schemas"][component]["properties"], member, changed)
    assert set(_problems()) != set(EXTENSIONS)
