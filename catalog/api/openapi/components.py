"""Generates the schemas of the OpenAPI document from the wire types (JSON Schema 2020-12)."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import inspect

from catalog.api.openapi import schema_types
from catalog.api.openapi.descriptions import COMPONENTS, MEMBERS
from catalog.iceberg import requirements, updates, view_updates
from lakewarden.http.openapi import IncompleteDocument

Schema = dict[str, Any]

_REFERENCE: Final = "#/components/schemas/"
_MAX_INT: Final = 2**31 - 1


def components() -> dict[str, Any]:
    """The document's components. Raises IncompleteDocument for types that are missing in `schema_types`."""
    _ensure_complete()
    made = {name: _struct(name, kind) for kind, name in schema_types.NAMES.items()}
    made |= {name: _struct(name, *kinds) for name, kinds in schema_types.READ_TWICE.items()}
    made |= _union("TableUpdate", "action", "Update", schema_types.TABLE_UPDATES)
    made |= _union("ViewUpdate", "action", "Update", schema_types.VIEW_UPDATES)
    made |= _union("TableRequirement", "type", "", schema_types.TABLE_REQUIREMENTS)
    made |= _union("ViewRequirement", "type", "", schema_types.VIEW_REQUIREMENTS)
    _describe(made)
    bearer = {"type": "http", "scheme": "bearer", "description": "A token of one of the server's identity providers."}
    return {"schemas": dict(sorted(made.items())), "securitySchemes": {"bearer": bearer}}


def _ensure_complete() -> None:
    """Raises IncompleteDocument unless the tables contain exactly the updates and requirements
    that the server knows.
    """
    pairs: tuple[tuple[str, Iterable[str], Iterable[str]], ...] = (
        ("table update", updates.APPLY, schema_types.TABLE_UPDATES),
        ("view update", view_updates.APPLY, schema_types.VIEW_UPDATES),
        ("requirement", {*requirements.CHECKS, requirements.CREATE}, schema_types.TABLE_REQUIREMENTS),
    )
    missing = [f"{kind} {name}" for kind, known, described in pairs for name in sorted(set(known) ^ set(described))]
    if missing:
        raise IncompleteDocument("\n".join(missing))


def _union(name: str, tag: str, ending: str, kinds: Mapping[str, type]) -> dict[str, Schema]:
    """One component for each of `kinds`, distinguished by the member `tag`, and their union."""
    made: dict[str, Schema] = {}
    mapping = {}
    for value, kind in kinds.items():
        component = "".join(word.capitalize() for word in value.split("-")) + ending
        schema = _struct(value, kind)
        members = {tag: {"type": "string", "const": value}, **schema["properties"]}
        made[component] = {**schema, "properties": members, "required": [tag, *schema.get("required", [])]}
        mapping[value] = _REFERENCE + component
    choice = {"discriminator": {"propertyName": tag, "mapping": mapping}}
    return {**made, name: {"oneOf": [{"$ref": each} for each in mapping.values()], **choice}}


def _struct(name: str, *kinds: type) -> Schema:
    """The schema of an object with the members of these structs; `name` is the component's or the action's."""
    type_infos = [inspect.type_info(kind) for kind in kinds]
    members: dict[str, Schema] = dict(schema_types.MORE.get(name, {}))
    required = [*schema_types.REQUIRED.get(name, ())]
    for struct in type_infos:
        assert isinstance(struct, inspect.StructType)  # noqa: S101 for the type checker
        if struct.tag is not None:
            members[str(struct.tag_field)] = {"type": "string", "const": struct.tag}
            required.append(str(struct.tag_field))
        for field in struct.fields:
            if (name, field.encode_name) in schema_types.HIDDEN:
                continue
            members[field.encode_name] = _member(name, field)
            if field.required:
                required.append(field.encode_name)
    made: Schema = {"type": "object", "properties": members}
    if required:
        made["required"] = [each for each in members if each in required]
    if any(isinstance(struct, inspect.StructType) and struct.forbid_unknown_fields for struct in type_infos):
        made["additionalProperties"] = False
    return made


def _member(name: str, field: inspect.Field) -> Schema:
    key = (name, field.encode_name)
    if key in schema_types.EXACT:
        return schema_types.EXACT[key]
    try:
        made = _type(
            field.type, schema_types.RAW.get(name, {}).get(field.encode_name), is_nullable=key in schema_types.NULLABLE
        )
    except KeyError as error:
        raise IncompleteDocument(f"{name}.{field.encode_name}: {error} is not said") from None
    return {**made, "uniqueItems": True} if key in schema_types.UNIQUE else made


def _type(type_info: inspect.Type, held: str | None, *, is_nullable: bool = False) -> Schema:
    """The schema of a type; a raw member has the component `held`. Raises KeyError if a type is not in the tables."""
    match type_info:
        case inspect.RawType() if held is not None:
            return {"$ref": _REFERENCE + held}
        case inspect.StructType():
            return {"$ref": _REFERENCE + schema_types.NAMES[type_info.cls]}
        case inspect.ListType():
            return {"type": "array", "items": _type(type_info.item_type, held)}
        case inspect.DictType():
            return {"type": "object", "additionalProperties": _type(type_info.value_type, held)}
        case inspect.UnionType():
            return _choice(type_info, held, is_nullable=is_nullable)
        case inspect.LiteralType():
            return {"type": "string", "enum": list(type_info.values)}
        case inspect.IntType():
            return {
                "type": "integer",
                **({"format": "int32" if type_info.le == _MAX_INT else "int64"} if type_info.le else {}),
            }
        case inspect.Metadata():
            return _type(type_info.type, held)
    return dict(_PLAIN[type(type_info)])


_PLAIN: Final[dict[type[inspect.Type], Schema]] = {
    inspect.BoolType: {"type": "boolean"},
    inspect.BytesType: {"type": "string", "contentEncoding": "base64"},
    inspect.StrType: {"type": "string"},
    inspect.UUIDType: {"type": "string", "format": "uuid"},
}


def _choice(type_info: inspect.UnionType, held: str | None, *, is_nullable: bool) -> Schema:
    """The schema of a union. None means that the member may be omitted; null is only allowed if `is_nullable`."""
    kinds = [_type(each, held) for each in type_info.types if not isinstance(each, inspect.NoneType)]
    if not is_nullable:
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return {**kinds[0], "type": [kinds[0]["type"], "null"]}


def _describe(made: dict[str, Schema]) -> None:
    for name, description in COMPONENTS.items():
        made[name]["description"] = description
    for (name, member), description in MEMBERS.items():
        made[name]["properties"][member] = {**made[name]["properties"][member], "description": description}
