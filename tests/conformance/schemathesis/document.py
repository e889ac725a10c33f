"""The Iceberg REST OpenAPI document as schemathesis reads it, fitted to one server and one warehouse.

Its free variables are what a client learns from `GET /v1/config` and from what is there: without that, random names
would be answered by 404 and nothing else would be tried.
"""

import copy
from collections.abc import Mapping
from typing import Any

import schemathesis
from schemathesis import APIOperation
from schemathesis import BaseSchema

from tests.integration.catalog import openapi

METHODS = ("get", "head", "post", "put", "delete", "patch")


def fitted(uri: str, known: Mapping[str, str]) -> BaseSchema:
    """The document with `uri` as its only server.

    `known` are values of path variables: `prefix` is always this one, the others are so every second time.
    """
    document = copy.deepcopy(openapi._document())
    document["servers"] = [{"url": uri}]
    for parameter in document["components"]["parameters"].values():
        if parameter["in"] == "path" and parameter["name"] in known:
            _offer(parameter, known[parameter["name"]], only=parameter["name"] == "prefix")
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
    operations = [item[method] for item in document["paths"].values() for method in METHODS if method in item]
    for response in [response for each in operations for response in each["responses"].values()]:
        for media in response.get("content", {}).values():
            if media["schema"].get("$ref") == "#/components/schemas/ErrorModel":
                media["schema"] = {"$ref": "#/components/schemas/IcebergErrorResponse"}


def _offer(parameter: dict[str, Any], value: str, *, only: bool) -> None:
    given = parameter["schema"]
    parameter["schema"] = {"const": value, "type": "string"} if only else {"anyOf": [{"const": value}, given]}
    parameter.pop("example", None)
    parameter.pop("examples", None)
