"""Proves that everything that one JSON schema allows is allowed by another.

It walks both schemas side by side and gives the places where it finds no proof: a place may be a false alarm, silence
is none. It knows the words that the two documents use, and refuses a schema with any other.
"""

from collections.abc import Callable, Iterator
from operator import gt, lt
from typing import Any

Schema = dict[str, Any]

SILENT = {
    *("description", "title", "example", "examples", "default", "deprecated", "readOnly", "nullable"),
    *("discriminator", "format", "contentEncoding"),
}
"""Words that allow and forbid nothing."""
KNOWN = {
    *("$ref", "type", "properties", "required", "additionalProperties", "items", "enum", "const", "allOf", "anyOf"),
    *("oneOf", "minimum", "maximum", "minLength", "maxLength", "uniqueItems", "pattern"),
}
_LIMITS: dict[str, Callable[[float, float], bool]] = {
    "minimum": lt,
    "minLength": lt,
    "maximum": gt,
    "maxLength": gt,
}
"""Words that limit a value, and when the inner limit is the wider one."""
_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")


class Containment:
    """Compares schemas of two whole documents, which their references lead into."""

    def __init__(self, inner: dict[str, Any], outer: dict[str, Any]) -> None:
        self._inner, self._outer = inner, outer
        self._known: dict[tuple[str, str], list[str]] = {}

    def problems(self, inner: Schema, outer: Schema, where: str) -> list[str]:
        """The places where `inner` may allow what `outer` forbids."""
        pair = (repr(inner), repr(outer))
        if pair not in self._known:
            self._known[pair] = []  # a schema within itself fits if nothing else is in the way
            self._known[pair] = list(self._compared(inner, outer, ""))
        return [where + each for each in self._known[pair]]

    def _compared(self, inner: Schema, outer: Schema, where: str) -> Iterator[str]:
        inner, outer = resolved(self._inner, inner), resolved(self._outer, outer)
        if unknown := (inner.keys() | outer.keys()) - KNOWN - SILENT:
            raise AssertionError(f"{where}: {sorted(unknown)} is not understood")
        if branches := inner.get("anyOf") or inner.get("oneOf"):
            for each in branches:
                yield from self.problems(each, outer, where)
            return
        for each in outer.get("allOf", []):
            yield from self.problems(inner, each, where)
        yield from self._choice(inner, outer, where)
        yield from self._values(inner, outer, where)
        if "object" in _types(inner):
            yield from self._members(inner, outer, where)
        if "array" in _types(inner) and "items" in outer:
            yield from self.problems(inner.get("items", {}), outer["items"], f"{where}[]")

    def _choice(self, inner: Schema, outer: Schema, where: str) -> Iterator[str]:
        for word in ("anyOf", "oneOf"):
            branches = outer.get(word)
            if branches is None:
                continue
            fitting = [each for each in branches if self._fits(inner, each, where)]
            if not fitting:
                yield f"{where}: fits none of {word}"
            elif word == "oneOf" and not all(self._apart(inner, each) for each in branches if each is not fitting[0]):
                yield f"{where}: may fit more than one of oneOf"

    def _fits(self, inner: Schema, outer: Schema, where: str) -> bool:
        before = dict(self._known)
        fits = not self.problems(inner, outer, where)
        if not fits:
            self._known = before  # what followed from it is not proven
        return fits

    def _apart(self, inner: Schema, outer: Schema) -> bool:
        """Whether no value is allowed by both: their types differ, or a required constant does."""
        outer = resolved(self._outer, outer)
        if not _with_whole(_types(inner)) & _with_whole(_types(outer)):
            return True
        constants = _constants(self._outer, outer)
        return any(
            name in constants and constants[name] != value for name, value in _constants(self._inner, inner).items()
        )

    def _values(self, inner: Schema, outer: Schema, where: str) -> Iterator[str]:
        if wrong := set(_types(inner)) - _with_whole(_types(outer)):
            yield f"{where}: may be {sorted(wrong)}"
        wanted = _values_of(outer)
        if wanted and not (_values_of(inner) and all(each in wanted for each in _values_of(inner))):
            yield f"{where}: may be another value than {wanted}"
        for word, is_wider in _LIMITS.items():
            if word in outer and (word not in inner or is_wider(inner[word], outer[word])) and "const" not in inner:
                yield f"{where}: {word} is {inner.get(word)}, not {outer[word]}"
        if "pattern" in outer and inner.get("pattern") != outer["pattern"]:
            yield f"{where}: pattern {outer['pattern']} is not kept"
        if outer.get("uniqueItems") and not inner.get("uniqueItems"):
            yield f"{where}: entries may be repeated"

    def _members(self, inner: Schema, outer: Schema, where: str) -> Iterator[str]:
        members = inner.get("properties", {})
        if missing := set(outer.get("required", ())) - set(inner.get("required", ())):
            yield f"{where}: {sorted(missing)} may be missing"
        rest = inner.get("additionalProperties", True)
        for name, schema in outer.get("properties", {}).items():
            if name in members:
                yield from self.problems(members[name], schema, f"{where}.{name}")
            elif rest is not False:
                yield from self.problems({} if rest is True else rest, schema, f"{where}.{name}")
        others = outer.get("additionalProperties", True)
        if others is True:
            return
        for name in members.keys() - outer.get("properties", {}).keys():
            if others is False:
                yield f"{where}.{name}: is not allowed"
            else:
                yield from self.problems(members[name], others, f"{where}.{name}")
        if rest is not False:
            if others is False:
                yield f"{where}: may have any other member"
            else:
                yield from self.problems({} if rest is True else rest, others, f"{where}.*")


def resolved(document: dict[str, Any], schema: Schema) -> Schema:
    """What a schema, parameter or answer refers to, with what is said beside the reference."""
    while "$ref" in schema:
        target: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        schema = {**target, **{word: value for word, value in schema.items() if word != "$ref"}}
    return schema


def _types(schema: Schema) -> list[str]:
    told = schema.get("type")
    if told is None:
        values = _values_of(schema)
        return ["string"] if values and all(isinstance(each, str) for each in values) else list(_TYPES)
    return told if isinstance(told, list) else [told]


def _with_whole(types: list[str]) -> set[str]:
    """These types; a number may be a whole one."""
    return {*types, *(["integer"] if "number" in types else [])}


def _values_of(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _constants(document: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Required members of one value."""
    schema = resolved(document, schema)
    members = {name: resolved(document, each) for name, each in schema.get("properties", {}).items()}
    return {name: members[name]["const"] for name in schema.get("required", ()) if "const" in members.get(name, {})}
