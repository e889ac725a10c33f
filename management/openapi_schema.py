"""Generates operations and schemas from views and bodies; drf-spectacular calls it (SPECTACULAR_SETTINGS)."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from inspect import cleandoc
from typing import Any, Final

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import Direction, OpenApiParameter
from rest_framework import serializers

from catalog.tabular_types import TABULAR_TYPES, word_of
from lakewarden.http.openapi import IncompleteDocument
from management import storage_descriptions, storage_shapes
from management.base_serializers import Body, Shape
from management.idempotent_requests import MUTATING
from management.openapi_components import COMPONENTS, ERROR, PATHS
from management.openapi_descriptions import MEMBERS, MEMBERS_OF, PATH_PARAMETERS

_PREFIX: Final = "/management/v1/"

_NOUNS: Final = {
    "action": "permission",
    "bootstrap": "server",
    "default-project": "project",
    "endpoint-statistics": "project",
    "grants": "permission",
    "info": "server",
    "permissions": "permission",
    "project-list": "project",
    "warehouse-creation-validation": "warehouse",
    "whoami": "user",
}
"""Tags of paths whose first part is not the name of their tag."""

_INNER: Final = {
    "namespace": "namespace",
    "task": "task",
    "task-queue": "task",
    **{each: each for each in TABULAR_TYPES},
}
"""Tags of objects inside a project or warehouse, by the part of the path that names them."""

_KEY: Final = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.UUID,
    OpenApiParameter.HEADER,
    description="A UUID that the client generates. If the same request is sent again within 30 "
    "minutes, the change is not made twice, and the response is that of the first request.",
)

_PROJECT: Final = OpenApiParameter(
    "x-project-id",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The project; without it, the default project, or for a role or tag definition the project that it "
    "belongs to.",
)
_OF_PROJECT: Final = re.compile(
    r"(project(/(?!\{).*)?|role(/(?!\{role_id\}/metadata).*)?|search/.*|user/\{user_id\}/roles.*|grants|warehouse"
    r"|warehouse-creation-validation|endpoint-statistics|audit|events|action/batch-check"
    r"|tag-definition(/(?!\{tag_definition_id\}/actions).*)?|permissions/(check|project/(?!\{).*|role/.*))"
)
"""The paths of operations on what the header `x-project-id` names."""

_VERBS: Final = {"GET": "Read", "POST": "Change", "PUT": "Replace", "DELETE": "Delete"}


_ADDRESSES: Final = {
    "permissions/warehouse/{warehouse_id}/namespace/": "; the path also names the warehouse",
    "permissions/project/{project_id}/": "; the path names the project",
}
"""By the beginning of a path: what differs from another address of the same operation."""


class ManagementSchema(AutoSchema):
    """Names, tags and errors of operations. Members of responses are required unless declared with `required=False`."""

    def get_tags(self) -> list[str]:
        parts = self._parts()
        inner = [_INNER[part] for part in parts[1:] if part in _INNER]
        noun = parts[1] if parts[0] == "search" else parts[0]
        return [inner[-1] if inner else _NOUNS.get(noun, noun)]

    def get_operation_id(self) -> str:
        """Unique, because it consists of method and path, e.g. `postWarehouseByWarehouseIdRename`."""
        words = [self.method.lower()]
        for part in self._parts():
            words += ["by", *part.strip("{}").split("_")] if part.startswith("{") else part.split("-")
        return words[0] + "".join(word.capitalize() for word in words[1:])

    def get_override_parameters(self) -> list[Any]:
        parameters = super().get_override_parameters()
        path = self.path.removeprefix(_PREFIX)
        if _OF_PROJECT.fullmatch(path) and (self.method, path) != ("POST", "project"):
            parameters = [*parameters, _PROJECT]
        return [*parameters, _KEY] if self.method in MUTATING else parameters

    def get_description(self) -> str:  # type: ignore[override]  # the library, too, takes no path
        """The docstring of the method, else of the view, but not of its base class."""
        method = getattr(self.view, self.method.lower())
        text = _paragraphs(method.__doc__ or type(self.view).__dict__.get("__doc__"))
        kind = getattr(self.view, "kind", None)
        # views of several types of objects share one docstring
        return text if kind is None else text.replace("the object", f"the {_word(kind)}")

    def get_summary(self) -> str | None:
        """The first sentence of the description, else words from the path."""
        first = self.get_description().partition("\n\n")[0]
        sentence = re.split(r"(?<=[.:;])\s", first, maxsplit=1)[0].rstrip(".:;")
        words = [part for part in self._parts() if not part.startswith("{")]
        return super().get_summary() or sentence + self._difference() or f"{_VERBS[self.method]} {' '.join(words)}"

    def _difference(self) -> str:
        """What distinguishes the operation from another one with the same view."""
        if getattr(self.view, "transitive", False):
            return ", directly and through other roles"
        paths = "/".join(self._parts())
        return next((words for start, words in _ADDRESSES.items() if paths.startswith(start)), "")

    def get_serializer_name(self, serializer: serializers.Serializer[Any], direction: Direction) -> str:  # noqa: ARG002 the library's
        name = type(serializer).__name__
        if name.endswith("Shape"):
            return name.removesuffix("Shape")
        return f"{name.removesuffix('Body')}Request" if name.endswith("Body") else name

    def _parts(self) -> list[str]:
        return self.path.removeprefix(_PREFIX).split("/")

    def _map_basic_serializer(self, serializer: Any, direction: Direction) -> dict[str, Any]:  # noqa: ANN401 the library's
        schema: dict[str, Any] = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        kind = serializer if isinstance(serializer, type) else type(serializer)
        schema.pop("description", None)
        if description := _paragraphs(kind.__dict__.get("__doc__")):
            schema["description"] = description
        if issubclass(kind, Body):
            schema["additionalProperties"] = False  # `Body.parse` refuses unknown members
        if issubclass(kind, Shape):
            optional = [name for name, field in serializer.fields.items() if field.allow_null]
            _without_null(schema, optional)  # `Shape` omits them
        return schema

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        bodies = super()._get_response_bodies(direction)
        for code, body in bodies.items():
            body["description"] = body["description"] or HTTPStatus(int(code)).phrase
        return {**bodies, "4XX": ERROR, "5XX": ERROR}


def complete(result: dict[str, Any], **_: object) -> dict[str, Any]:
    """Add shared components and further paths; the library calls it at the end."""
    for kind, made in COMPONENTS.items():
        result["components"].setdefault(kind, {}).update(made)
    storage = storage_shapes.components()
    result["components"]["schemas"].update(storage)
    paths = dict(sorted({**result["paths"], **PATHS}.items()))
    _describe_parameters(paths)
    _describe_members(storage, storage_descriptions.MEMBERS)
    _describe_members(result["components"]["schemas"])
    return {**result, "paths": paths, "security": [{"bearer": []}]}


def _describe_parameters(paths: Mapping[str, Mapping[str, dict[str, Any]]]) -> None:
    """Add missing descriptions of path parameters. Raises IncompleteDocument for other parameters without one."""
    for path, operations in paths.items():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                name = parameter["name"]
                if "description" not in parameter:
                    if name not in PATH_PARAMETERS:
                        raise IncompleteDocument(f"{path}: the parameter {name} has no description")
                    parameter["description"] = PATH_PARAMETERS[name]


def _describe_members(schemas: Mapping[str, dict[str, Any]], known: Mapping[str, str] = MEMBERS) -> None:
    """Add descriptions of members that have none of their own. Raises IncompleteDocument if one is missing."""
    for component, schema in schemas.items():
        for name, member in schema.get("properties", {}).items():
            text = MEMBERS_OF.get((component, name)) or known.get(name)
            if "$ref" in member or ("description" in member and (component, name) not in MEMBERS_OF):
                continue
            if text is None:
                raise IncompleteDocument(f"{component}: the member {name} has no description")
            member["description"] = text


def _word(kind: Any) -> str:  # noqa: ANN401 a type of objects, a Grantable or a TabularType
    return word_of(getattr(kind, "type", getattr(kind, "object_type", kind)).value)


def _paragraphs(docstring: str | None) -> str:
    """A docstring with each paragraph joined into one line."""
    return "\n\n".join(" ".join(part.split()) for part in cleandoc(docstring or "").split("\n\n"))


def _without_null(schema: dict[str, Any], optional: list[str]) -> None:
    required = [name for name in schema.get("required", []) if name not in optional]
    schema.pop("required", None)
    if required:
        schema["required"] = required
    for name in optional:
        plain = schema["properties"][name]
        if isinstance(plain.get("type"), list):
            plain["type"] = next(each for each in plain["type"] if each != "null")
        plain.pop("nullable", None)
