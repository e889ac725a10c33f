"""What a client can tell of an OpenAPI document: operations with parameters, statuses, and members with their types.

No sentence of the document is kept, so the shapes of another project's document can be stored here. A type is written
as `string`, `object`, `integer[]`, …, with `?` behind it if the member can be missing; a member of a member is written
with a dot between the names.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]
"""A document, or a part of one."""
Members = dict[str, str]
Shapes = dict[str, dict[str, Any]]
"""By `METHOD /path`: `parameters` (by `in name`), `request`, and `answers` (members by status)."""

_METHODS = ("get", "post", "put", "patch", "delete")


def shapes(document: Document) -> Shapes:
    """The shapes of all operations in a document."""
    return {
        f"{method.upper()} {path}": _operation(document, item, item[method])
        for path, item in document["paths"].items()
        for method in _METHODS
        if method in item
    }


def _operation(document: Document, item: Document, operation: Document) -> dict[str, Any]:
    named = [_resolved(document, each) for each in (*item.get("parameters", ()), *operation.get("parameters", ()))]
    return {
        "parameters": {
            f"{each['in']} {each['name']}": _type(document, each.get("schema", {}))
            + ("" if each.get("required") else "?")
            for each in named
            if each["in"] != "path"
        },
        "request": _body(document, operation.get("requestBody", {})),
        "answers": {
            status: _body(document, answer)
            for status, answer in operation["responses"].items()
            if status.startswith("2")
        },
    }


def _body(document: Document, content: Document) -> Members:
    media = _resolved(document, content).get("content", {}).get("application/json", {})
    return dict(sorted(_members(document, media.get("schema", {}))))


def _members(document: Document, schema: Document, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Names and types of all members, also of those below; a schema within itself is left out."""
    if schema.get("$ref") in path:
        return
    path = (*path, schema["$ref"]) if "$ref" in schema else path
    found: dict[str, list[str]] = {}
    always = _always(document, schema)
    for name, member in _properties(document, schema):
        found.setdefault(name, []).append(_type(document, member) + ("" if name in always else "?"))
        for below, kind in _members(document, member, path):
            found.setdefault(f"{name}.{below}", []).append(kind)
    for name, kinds in found.items():
        yield name, _union(kinds)


def _properties(document: Document, schema: Document) -> Iterator[tuple[str, Document]]:
    """The members of an object or of a list's entries; a member of several choices comes several times."""
    resolved = _resolved(document, schema)
    if "items" in resolved:
        yield from _properties(document, resolved["items"])
    for each in (*resolved.get("allOf", ()), *_choices(resolved)):
        yield from _properties(document, each)
    yield from resolved.get("properties", {}).items()


def _always(document: Document, schema: Document) -> set[str]:
    """The members that are never missing."""
    resolved = _resolved(document, schema)
    if "items" in resolved:
        return _always(document, resolved["items"])
    found = set(resolved.get("required", ()))
    for each in resolved.get("allOf", ()):
        found |= _always(document, each)
    choices = [_always(document, each) for each in _choices(resolved)]
    return found | set.intersection(*choices) if choices else found


def _choices(resolved: Document) -> list[Document]:
    return [each for word in ("oneOf", "anyOf") for each in resolved.get(word, ()) if each.get("type") != "null"]


def _type(document: Document, schema: Document) -> str:
    resolved = _resolved(document, schema)
    told = resolved.get("type")
    kinds = {each for each in (told if isinstance(told, list) else [told]) if each not in {None, "null"}}
    for each in (*resolved.get("allOf", ()), *_choices(resolved)):
        kinds |= set(_type(document, each).split("|")) - {"any"}
    if kinds == {"array"}:
        return f"{_type(document, resolved.get('items', {}))}[]"
    return "|".join(sorted(kinds)) or ("object" if "properties" in resolved else "any")


def _union(kinds: list[str]) -> str:
    optional = any(each.endswith("?") for each in kinds)
    return "|".join(sorted({each.rstrip("?") for each in kinds})) + ("?" if optional else "")


def _resolved(document: Document, schema: Document) -> Document:
    while "$ref" in schema:
        target: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        schema = target
    return schema
