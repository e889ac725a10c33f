"""The OpenAPI document as schemathesis reads it, fitted to one server and one warehouse.

The Iceberg REST document where it is at hand, else the catalog's own.
"""

import copy
from collections.abc import Iterator
from typing import Any

import schemathesis
from schemathesis import APIOperation, BaseSchema

from tests.openapi.catalog import ours
from tests.openapi.upstream import is_at_hand, upstream


def fitted(prefix: str) -> BaseSchema:
    """The document with `prefix` as the only value of that path variable."""
    document = copy.deepcopy((upstream() if is_at_hand() else ours()).document)
    for parameter in _parameters(document):
        if parameter.get("name") == "prefix":
            parameter["schema"] = {"const": prefix, "type": "string"}
            parameter.pop("example", None)
    return schemathesis.openapi.from_dict(document)


def operation(schema: BaseSchema, capability: str) -> APIOperation[Any, Any, Any, Any]:
    """The operation of a capability such as `GET /v1/{prefix}/namespaces`."""
    method, template = capability.split(" ")
    return schema[template][method]


def _parameters(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from document["components"].get("parameters", {}).values()
    for item in document["paths"].values():
        for operation in item.values():
            yield from operation.get("parameters", ()) if isinstance(operation, dict) else ()
