"""Builds the OpenAPI document from the routes of `catalog.api.urls`, their `operations` and `components`."""

from functools import cache
from typing import Any

from django.urls import URLPattern

from catalog.api.openapi.components import components
from catalog.api.openapi.operations import ADMISSION, OPERATIONS, Operation
from catalog.api.openapi.parameters import PARAMETERS, PATH_PARAMETERS
from lakewarden import __version__
from lakewarden.http import openapi
from lakewarden.http.openapi import Document, IncompleteDocument
from lakewarden.http.repeatable import RepeatableEndpoint

_INTRODUCTION = (
    "The Iceberg REST API of a Lakewarden server, below `/catalog`, and its API of generic tables. A client starts "
    "with `GET /v1/config`, which names the warehouse's `prefix`. Members that this document does not name may be sent "
    "and are stored where the Iceberg format allows them. The response repeats the request's header `X-Request-Id`, or "
    "has a generated one. With `X-Assume-Role` the caller acts with the privileges of one of their roles. An object "
    "that the caller may not see is answered like one that does not exist."
)
_REFUSED = "The request was refused."
_FAILED = "The server failed or is currently not available."
_TAGS = {
    "configuration": "The configuration that clients load first.",
    "namespaces": "Namespaces and their properties.",
    "tables": "Tables: their metadata, commits and files.",
    "views": "Views and their versions.",
    "generic tables": "Tables of other formats than Iceberg. These routes are below `/generic`, and below "
    "`/lakekeeper` for clients of that API.",
}


@cache
def document() -> Document:
    """The whole document. Raises IncompleteDocument if a route has no description, or a description no route."""
    from catalog.api.generic_tables import urls as generic  # noqa: PLC0415 as the next
    from catalog.api.urls import CAPABILITIES, ROUTES, SIGNING_CAPABILITIES  # noqa: PLC0415 it imports this module

    beside = [capability for route in generic.ROUTES for capability in route.capabilities]
    served = [*ADMISSION, *CAPABILITIES, *SIGNING_CAPABILITIES, *beside]
    repeatable = {
        route.template for route in (*ROUTES, *generic.ROUTES) if issubclass(route.endpoint, RepeatableEndpoint)
    }
    if differing := set(served) ^ OPERATIONS.keys():
        raise IncompleteDocument("\n".join(f"either not served or not described: {each}" for each in sorted(differing)))
    paths: dict[str, dict[str, Any]] = {}
    for capability in served:
        method, template = capability.split(" ")
        is_repeatable = method in {"POST", "DELETE"} and template in repeatable
        more = ["Idempotency-Key"] if is_repeatable else []
        paths.setdefault(template, {})[method.lower()] = _operation(OPERATIONS[capability], method, template, more)
    for capability in beside:
        method, template = capability.split(" ")
        paths[template][method.lower()]["servers"] = [{"url": mount} for mount in generic.MOUNTS]
    return {
        "openapi": "3.1.1",
        "info": {"title": "Lakewarden catalog API", "version": __version__, "description": _INTRODUCTION},
        "servers": [{"url": "/catalog"}],
        "tags": [{"name": name, "description": description} for name, description in _TAGS.items()],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": components(),
    }


def _operation(operation: Operation, method: str, template: str, more: list[str]) -> dict[str, Any]:
    names = [*(name for name in PATH_PARAMETERS if f"{{{name}}}" in template), *operation.parameters, *more]
    made: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        "parameters": [PATH_PARAMETERS.get(name) or PARAMETERS[name] for name in names],
    }
    if operation.body is not None:
        made["requestBody"] = {
            "required": True,
            "content": {operation.body_type: {"schema": _reference(operation.body)}},
        }
    made["responses"] = {str(answer.status): _answer(answer.description, answer.body) for answer in operation.answers}
    if operation.is_open:
        return {**made, "security": []}
    refusals = {str(status): reason for status, reason in operation.refusals.items()} | {
        "4XX": _REFUSED,
        "5XX": _FAILED,
    }
    error = None if method == "HEAD" else "Error"
    return {
        **made,
        "responses": made["responses"] | {status: _answer(reason, error) for status, reason in refusals.items()},
    }


def _answer(description: str, body: str | None) -> dict[str, Any]:
    if body is None:
        return {"description": description}
    return {"description": description, "content": {"application/json": {"schema": _reference(body)}}}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


routes: list[URLPattern] = openapi.routes(document)
