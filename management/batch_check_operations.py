"""Parses the operation of a permission check (`POST /action/batch-check`), and describes it in OpenAPI."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from lakewarden.authz.actions import ACTIONS, TABULAR_TYPES, Action, ObjectType
from lakewarden.errors import BadRequest
from permissions.privileges import Asked

_SHOWN = 80
_ID = {"type": "string", "format": "uuid"}
_PATH = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_TABULAR: dict[str, Any] = {
    "warehouse-id": _ID,
    "table-id": _ID,
    "view-id": _ID,
    "generic-table-id": _ID,
    "namespace": _PATH,
    "table": {"type": "string"},
    "view": {"type": "string"},
    "generic-table": {"type": "string"},
}
_MEMBERS: dict[ObjectType, dict[str, Any]] = {
    ObjectType.SERVER: {},
    ObjectType.PROJECT: {"project-id": {"type": "string"}},
    ObjectType.TAG_DEFINITION: {"tag-definition-id": _ID},
    ObjectType.WAREHOUSE: {"warehouse-id": _ID},
    ObjectType.NAMESPACE: {"warehouse-id": _ID, "namespace-id": _ID, "namespace": _PATH},
    **dict.fromkeys(TABULAR_TYPES, _TABULAR),
}
"""The members of an operation besides `action`, for each type of object; `_asked` checks their combination."""
_KNOWN = {kind: {action.value: action for action in ACTIONS[kind]} for kind in _MEMBERS}


def _operation_schema(kind: ObjectType) -> dict[str, Any]:
    name = {"type": "string", "enum": sorted(_KNOWN[kind])}
    within = {"type": "object", "properties": {"action": name}, "required": ["action"], "additionalProperties": True}
    return {
        "type": "object",
        "properties": {"action": {"oneOf": [name, within]}, **_MEMBERS[kind]},
        "required": ["action"],
        "additionalProperties": False,
    }


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {kind.value: _operation_schema(kind) for kind in _MEMBERS},
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}


def parse(value: object, *, where: str, project_id: str) -> tuple[Action, Asked]:
    """The action and the object that `value` names; `project_id` is used if it names no project.

    Further members of an action are accepted but not used, because rights do not depend on them. Raises BadRequest,
    which names the invalid member.
    """
    if not isinstance(value, dict) or len(value) != 1:
        raise BadRequest(f"{where}: an object with one member is expected, one of {', '.join(_MEMBERS)}")
    name, about = next(iter(value.items()))
    kind = next((kind for kind in _MEMBERS if kind.value == name), None)
    if kind is None:
        raise BadRequest(f"{where}: {shown(name)} is not known: one of {', '.join(_MEMBERS)} is expected")
    where = f"{where}.{name}"
    if not isinstance(about, dict):
        raise BadRequest(f"{where}: an object is expected")
    ensure_members(about, {"action", *_MEMBERS[kind]}, where=where)
    return _action(about.get("action"), kind, f"{where}.action"), _asked(kind, about, where, project_id)


def _action(value: object, kind: ObjectType, where: str) -> Action:
    """Parse an action, given as its name or as `{"action": name, …}`."""
    name = value.get("action") if isinstance(value, dict) else value
    known = _KNOWN[kind]
    if not isinstance(name, str) or name not in known:
        raise BadRequest(
            f"{where}: {shown(name)} is not a valid action on a {kind.value}: one of {', '.join(sorted(known))}"
        )
    return known[name]


def _asked(kind: ObjectType, about: Mapping[str, Any], where: str, project_id: str) -> Asked:
    if kind is ObjectType.SERVER:
        return Asked(kind)
    if kind is ObjectType.PROJECT:
        return Asked(kind, _text(about, "project-id", where) or project_id)
    if kind is ObjectType.TAG_DEFINITION:
        return Asked(kind, _needed(about, "tag-definition-id", where))
    warehouse = _needed(about, "warehouse-id", where)
    if kind is ObjectType.WAREHOUSE:
        return Asked(kind, warehouse)
    path = _path(about.get("namespace"), f"{where}.namespace")
    if kind is ObjectType.NAMESPACE:
        asked = Asked(kind, _id(about, "namespace-id", where), warehouse, path)
    else:
        # clients may use the members of a table for a view, and vice versa
        identifier = _only([_id(about, f"{each}-id", where) for each in TABULAR_TYPES], where=where)
        name = _only([_text(about, each.value, where) for each in TABULAR_TYPES], where=where)
        asked = Asked(kind, identifier, warehouse, path, name)
    return _ensure_one_way(asked, where=where)


def _ensure_one_way(asked: Asked, *, where: str) -> Asked:
    """Raises BadRequest unless `asked` names the object either by its id or by all of its names."""
    is_tabular = asked.type is not ObjectType.NAMESPACE
    is_named = bool(asked.path) and (bool(asked.name) or not is_tabular)
    if bool(asked.id) == bool(asked.path or asked.name) or not (asked.id or is_named):
        names = f"namespace and {asked.type.value}" if is_tabular else "namespace"
        raise BadRequest(f"{where}: either {asked.type.value}-id or {names} is expected")
    return asked


def _only(given: list[str], *, where: str) -> str:
    named = [each for each in given if each]
    if len(named) > 1:
        raise BadRequest(f"{where}: several objects are named (table, view or generic-table): one is expected")
    return named[0] if named else ""


def _path(value: object, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        raise BadRequest(f"{where}: {shown(value)} is not a valid path: a list of names, outermost first, is expected")
    return tuple(value)


def _id(about: Mapping[str, Any], name: str, where: str) -> str:
    """Empty when it is not given."""
    value = _text(about, name, where)
    try:
        return str(UUID(value)) if value else ""
    except ValueError:
        raise BadRequest(f"{where}.{name}: {shown(value)} is not a valid id: a UUID is expected") from None


def _needed(about: Mapping[str, Any], name: str, where: str) -> str:
    found = _id(about, name, where)
    if not found:
        raise BadRequest(f"{where}: {name} is missing")
    return found


def _text(about: Mapping[str, Any], name: str, where: str) -> str:
    """Empty when it is not given."""
    value = about.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise BadRequest(f"{where}.{name}: {shown(value)} must be a non-empty string")
    return value or ""


def ensure_members(value: Mapping[str, Any], known: set[str], *, where: str) -> None:
    """Raises BadRequest for a member that is not in `known`."""
    if unknown := value.keys() - known:
        raise BadRequest(f"{where}: unknown member {shown(min(unknown))}; known are {', '.join(sorted(known))}")


def shown(value: object) -> str:
    """The beginning of an invalid value, for a message."""
    return repr(value)[:_SHOWN]
