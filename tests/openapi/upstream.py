"""The Iceberg REST OpenAPI document, where it is at hand: `LAKEWARDEN_TEST_ICEBERG_OPENAPI` names the file.

Its mistakes are corrected here, each with a reason, and nowhere else.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.openapi.document import Described

VARIABLE = "LAKEWARDEN_TEST_ICEBERG_OPENAPI"
ENVELOPE = {"$ref": "#/components/schemas/IcebergErrorResponse"}
ALLOWED = {
    ("POST /v1/{prefix}/namespaces", "404"): "the warehouse, or the parent of a nested namespace, does not exist",
    ("GET /v1/{prefix}/namespaces/{namespace}/views/{view}", "304"): "as of tables: the client's copy is current",
}
"""Answers that the document forgot: of an operation (as a capability), a status, and when it is given."""
ANY_OF = {
    "Type": "`variant` is also a text, as every primitive type is",
    "PrimitiveTypeValue": "a number is both an int and a long, a text a string, a uuid and a date",
}
"""Schemas whose choices exclude each other by the document's words (oneOf), which they cannot."""
NULL = {
    ("TableMetadata", "current-snapshot-id"): "null is how format version 3 says that there is none",
}
"""Members that can be null."""


def is_at_hand() -> bool:
    return VARIABLE in os.environ


@cache
def upstream() -> Described:
    """The mended document. Fails with a sentence when it is not at hand."""
    path = os.environ.get(VARIABLE)
    assert path, f"{VARIABLE} must name the Iceberg REST OpenAPI document (rest-catalog-open-api.yaml of Iceberg)"
    assert Path(path).is_file(), f"{VARIABLE} names {path}, which is not a file"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = _with_null(yaml.load(Path(path).read_text(), Loader=loader))  # noqa: S506 both loaders are the safe ones
    _mend(document)
    errors = {"": ENVELOPE["$ref"], "/v1/oauth/tokens": "#/components/schemas/OAuthError"}
    return Described("the Iceberg REST document", document, errors=errors)


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


def _mend(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in ANY_OF:
        schemas[name]["anyOf"] = schemas[name].pop("oneOf")
    for name, member in NULL:
        schemas[name]["properties"][member]["type"] = ["integer", "null"]
    for (capability, status), reason in ALLOWED.items():
        method, template = capability.split(" ")
        answer: dict[str, Any] = {"description": reason}
        if status[0] == "4":
            answer["content"] = {"application/json": {"schema": ENVELOPE}}
        document["paths"][template][method.lower()]["responses"][status] = answer
    # where it names the schema of what is inside the envelope, its example and the reference client have the envelope
    operations = [each for item in document["paths"].values() for each in item.values() if isinstance(each, dict)]
    shared = list(document["components"]["responses"].values())
    for response in [*shared, *(each for operation in operations for each in operation["responses"].values())]:
        for media in response.get("content", {}).values():
            if media["schema"].get("$ref") == "#/components/schemas/ErrorModel":
                media["schema"] = ENVELOPE
