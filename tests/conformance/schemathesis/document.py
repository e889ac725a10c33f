"""The Iceberg REST OpenAPI document as schemathesis reads it, fitted to one server and one warehouse.

What differs from the document is here, each with its reason, and nowhere else.
"""

import copy
from typing import Any

import schemathesis
from schemathesis import APIOperation, BaseSchema

from tests.integration.catalog import openapi

ENVELOPE = {"$ref": "#/components/schemas/IcebergErrorResponse"}

ALLOWED = {
    ("POST /v1/{prefix}/namespaces", "404"): "the warehouse, or the parent of a nested namespace, does not exist",
}
"""Answers that the document forgot: of an operation (as a capability), a status, and when it is given."""


def fitted(prefix: str) -> BaseSchema:
    """The document with `prefix` as the only value of that path variable."""
    document = copy.deepcopy(openapi._document())
    document["components"]["parameters"]["prefix"]["schema"] = {"const": prefix, "type": "string"}
    document["components"]["parameters"]["prefix"].pop("example", None)
    for (capability, status), reason in ALLOWED.items():
        method, template = capability.split(" ")
        answer = {"description": reason, "content": {"application/json": {"schema": ENVELOPE}}}
        document["paths"][template][method.lower()]["responses"][status] = answer
    _mend_errors(document)
    return schemathesis.openapi.from_dict(document)


def operation(schema: BaseSchema, capability: str) -> APIOperation[Any, Any, Any, Any]:
    """The operation of a capability such as `GET /v1/{prefix}/namespaces`."""
    method, template = capability.split(" ")
    return schema[template][method]


def _mend_errors(document: dict[str, Any]) -> None:
    """Where the document shows an error in its envelope but names the schema of what is inside, the example is right.

    So it is with 404 and 409 of the operations on views; the reference client reads the envelope.
    """
    operations = [each for item in document["paths"].values() for each in item.values() if isinstance(each, dict)]
    for response in [response for each in operations for response in each["responses"].values()]:
        for media in response.get("content", {}).values():
            if media["schema"].get("$ref") == "#/components/schemas/ErrorModel":
                media["schema"] = ENVELOPE
