"""The reference page of the management API's routes, made from its OpenAPI document; `write_reference` writes it."""

from collections.abc import Mapping
from typing import Any

HEAD = """# The management API

All routes by topic. Parameters, bodies and responses are described in the OpenAPI 3.1 document
[management-api.yaml](management-api.yaml), which a server also returns at `/management/v1/openapi.json`.
[Provision over REST](../how-to/provision-over-rest.md) has examples, [Errors](errors.md) lists the errors.

"""
_METHODS = ("get", "post", "put", "patch", "delete")


def page(document: Mapping[str, Any]) -> str:
    """The whole page, from the document as it is served."""
    sections: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method in _METHODS:
            if operation := operations.get(method):
                row = f"| `{method.upper()}` | `{path}` | {operation['summary']} |"
                sections.setdefault(operation["tags"][0], []).append(row)
    parts = [
        f"## {tag.capitalize()}\n\n| method | path | what it does |\n|---|---|---|\n" + "\n".join(rows) + "\n"
        for tag, rows in sorted(sections.items())
    ]
    return f"{HEAD}{document['info']['description']}\n\n" + "\n".join(parts)
