"""A JSON Schema of the `data` of each type of event, made from `types.EVENTS`; `dataschema` of an event names it.

Consumers rely on those of the last release (`tests/unit/events/released_schemas.json`): members may be added, but one
that is always present stays, and each keeps its type. A test compares both.
"""

from typing import Any, Final

from lakewarden.events.types import EVENTS, EventType

VERSION: Final = 1
"""A change that consumers could not read would be made under the next one, beside this one."""

_Schema = dict[str, Any]
_TEXT: Final[_Schema] = {"type": "string"}
_TEXT_OR_NONE: Final[_Schema] = {"type": ["string", "null"]}
_FLAG: Final[_Schema] = {"type": "boolean"}
_NUMBER: Final[_Schema] = {"type": "integer"}
_NUMBER_OR_NONE: Final[_Schema] = {"type": ["integer", "null"]}
_TEXTS: Final[_Schema] = {"type": "array", "items": _TEXT}
_ID: Final[_Schema] = {"type": "string", "format": "uuid"}
_TIME: Final[_Schema] = {"type": "string", "format": "date-time"}
_GRANTS: Final[_Schema] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"privilege": _TEXT, "principal": _TEXT},
        "required": ["privilege", "principal"],
    },
}
_PROTECTION: Final[_Schema] = {
    "type": ["object", "null"],
    "properties": {"by": _TEXT, "at": _TIME, "reason": _TEXT_OR_NONE},
    "required": ["by", "at", "reason"],
}
_MEMBERS: Final[dict[str, _Schema]] = {
    "action": _TEXT,
    "added": _TEXTS,
    "admin": _TEXT,
    "allowed-format-versions": {"type": "array", "items": _NUMBER},
    "allowed-values": {"type": ["array", "null"], "items": _TEXT},
    "attempts": _NUMBER,
    "before": _TEXT_OR_NONE,
    "column": _TEXT_OR_NONE,
    "contract": {"type": "object"},
    "contract-version": _NUMBER_OR_NONE,
    "count": _NUMBER,
    "credential-type": _TEXT_OR_NONE,
    "default-format-version": _NUMBER_OR_NONE,
    "delete-profile": {"type": "object"},
    "deletion-id": _ID,
    "description": _TEXT_OR_NONE,
    "entity-id": _TEXT,
    "entity-type": _TEXT,
    "events": _NUMBER,
    "expires-at": _TIME,
    "field-id": _NUMBER,
    "fields": _TEXTS,
    "force": _FLAG,
    "format": _TEXT,
    "location": _TEXT,
    "managed": _FLAG,
    "managed-by": _TEXT,
    "max-seconds-since-last-heartbeat": _NUMBER_OR_NONE,
    "metadata-location": _TEXT,
    "moved": _NUMBER,
    "name": _TEXT,
    "namespace": _TEXTS,
    "namespaces-below": _NUMBER,
    "outcome": _TEXT,
    "path": _TEXTS,
    "previous-metadata-location": _TEXT,
    "privilege": _TEXT,
    "protected": _FLAG,
    "provider-id": _TEXT_OR_NONE,
    "purge": _FLAG,
    "queue-config": {"type": "object"},
    "queue-name": _TEXT,
    "reason": _TEXT_OR_NONE,
    "recursive": _FLAG,
    "removed": _TEXTS,
    "replaced-by": _ID,
    "scheduled-for": _TIME,
    "scope": _TEXTS,
    "since": _TIME,
    "soft": _FLAG,
    "source-id": _TEXT_OR_NONE,
    "tables-and-views": _NUMBER,
    "tag": _TEXT,
    "tag-definition-id": _ID,
    "type": _TEXT,
    "updated": _TEXTS,
    "value": _TEXT_OR_NONE,
    "value-kind": _TEXT,
    "version": _NUMBER,
    "warehouse-id": _ID,
    "was": _TEXT,
    "was-deleted": _FLAG,
    "writes": _GRANTS,
    "deletes": _GRANTS,
}


def uri(event: str) -> str:
    """The `dataschema` of events of a type."""
    return f"urn:lakewarden:event:{event}:{VERSION}"


def all_schemas() -> dict[str, _Schema]:
    """Of all types, by their names."""
    return {name: _schema(name, event) for name, event in EVENTS.items()}


def _schema(name: str, event: EventType) -> _Schema:
    members = (*event.data, *event.sometimes)
    return {
        "$id": uri(name),
        "description": event.meaning,
        "type": "object",
        "properties": {member: _member(name, member) for member in members},
        "required": list(event.data),
    }


def _member(event: str, member: str) -> _Schema:
    if member == "before":
        if event.endswith("DataContract"):
            return {"type": ["object", "null"]}
        if event.endswith("Protection"):
            return _PROTECTION
        if event == "moveNamespace":
            return _TEXTS
    return _MEMBERS[member]
