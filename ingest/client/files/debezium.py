"""Debezium's change events (its JSON converter, with or without the schema envelope) as events of the gateway.

Documented in docs/reference/debezium.md; the source is Debezium's documentation of its connectors' change events.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ingest.client.errors import WrongLine
from ingest.client.files import debezium_types
from ingest.client.files.debezium_types import Field
from ingest.client.files.formats import (
    Event,
    Members,
    encoded,
    is_present,
    members,
    now,
    require_object,
    row_id,
    shown,
)
from ingest.client.files.lines import Line

UNAVAILABLE = b'"__debezium_unavailable_value"'
"""Stands for a large value that an update did not change, and that the database therefore did not log."""

_OPERATIONS = {"c": "INSERT", "r": "INSERT", "u": "UPDATE", "d": "DELETE"}
_MEMBERS = msgspec.json.Decoder(Members)
_NOTED = ("connector", "db", "schema", "table", "snapshot", "ts_ms", "lsn", "txId", "file", "pos", "gtid")
"""Members of `source` that become metadata, as far as the connector gives them."""


@dataclass(frozen=True, slots=True)
class Debezium:
    """Reads a record's value, or `{"key": …, "value": …}`, or what `kcat -J` prints.

    `table` replaces the name `<schema or database>.<table>` of the source. `key` names the columns of the row's id
    where a line does not bring the record's key. `skips_truncates`: pass over TRUNCATE instead of refusing it.
    """

    table: str | None
    key: Sequence[str]
    base: int
    skips_truncates: bool = False

    def __call__(self, line: Line) -> Event | None:
        if line.content.strip() == b"null":
            return None  # a tombstone: it is for Kafka's compaction, and follows a delete
        key, value = _record(line)
        if value is None:
            return None
        fields, payload = _opened(line, value)
        if not is_present(payload, "op"):
            if _is_no_change(payload):
                return None
            raise WrongLine(
                line.number,
                "op is missing: it is not a Debezium change event. Messages that an ExtractNewRecordState "
                "transformation has flattened are plain rows: use --format rows --key COLUMN.",
            )
        match msgspec.json.decode(payload["op"]):
            case "t" if not self.skips_truncates:
                raise WrongLine(
                    line.number,
                    "a TRUNCATE cannot be sent: the gateway takes changes of rows only. Empty the target table "
                    "yourself and use --skip-truncates, or keep Debezium from sending it (skipped.operations=t).",
                )
            case "t":
                return None
            case "m":
                return None  # a logical message of PostgreSQL: it belongs to no table
            case "c" | "r" | "u" | "d" as op:
                return self._change(line, op, key=key, fields=fields, payload=payload)
        raise WrongLine(line.number, f"op is {shown(payload['op'])}; it must be c, u, d, r, t or m.")

    def _change(
        self, line: Line, op: str, *, key: msgspec.Raw | None, fields: dict[str, Field], payload: Members
    ) -> Event:
        require_object(line, payload, "source")
        require_object(line, payload, "before")
        require_object(line, payload, "after")
        source = _MEMBERS.decode(payload["source"]) if is_present(payload, "source") else {}
        before = _row(line, payload, "before", fields)
        after = None if op == "d" else _row(line, payload, "after", fields)
        if op != "d" and after is None:
            raise WrongLine(line.number, f"after is missing: an event with op {op} must carry the row.")
        if before is None and op == "d" and not self.key and key is None:
            raise WrongLine(line.number, "before is missing, and the line has no record key: the row is unknown.")
        event: Members = {
            "sequence": encoded(self.base + line.number),
            "timestamp": _time(source, payload),
            "operation": encoded(_OPERATIONS[op]),
            "table": encoded(self.table or _table(line, source)),
            "rowId": encoded(self._row_id(line, key, after or before or {})),
        }
        if after is not None:
            event["after"] = encoded(_completed(after, before or {}))
        if before is not None:
            event["before"] = encoded(before)
        noted = {name: source[name] for name in _NOTED if is_present(source, name)}
        event["metadata"] = encoded({"op": op, **{name: _as_text(value) for name, value in noted.items()}})
        return Event(line, msgspec.json.encode(event), self.base + line.number)

    def _row_id(self, line: Line, key: msgspec.Raw | None, row: Members) -> str:
        if self.key:
            return row_id(line, row, self.key)
        if key is None:
            raise WrongLine(
                line.number,
                "the row's id is unknown: the line has no record key. Give --key COLUMN, or lines of the form "
                '{"key": …, "value": …}.',
            )
        found = _object(line, key, "key")
        if is_present(found, "payload") and "schema" in found:
            fields = debezium_types.fields(_object(line, found["schema"], "the key's schema"))
            found = debezium_types.converted(line, _object(line, found["payload"], "the key's payload"), fields)
        if not found:
            raise WrongLine(line.number, "the record's key has no columns: give --key COLUMN.")
        return row_id(line, found, list(found))


def _record(line: Line) -> tuple[msgspec.Raw | None, Members | None]:
    """The key and the value of a Kafka record; the value is None for a tombstone."""
    found = members(line)
    if "offset" in found and "topic" in found and "payload" in found:  # kcat -J: both are texts of JSON
        found = {"key": _text(line, found.get("key")), "value": _text(line, found["payload"])}
    if "value" not in found or "op" in found or "before" in found or "after" in found:
        return None, found
    key = found["key"] if is_present(found, "key") else None
    return key, _object(line, found["value"], "value") if is_present(found, "value") else None


def _text(line: Line, content: msgspec.Raw | None) -> msgspec.Raw:
    value = None if content is None else msgspec.json.decode(content)
    if not (value is None or isinstance(value, str)):
        raise WrongLine(line.number, "its key and payload must be texts of JSON, as `kcat -J` prints them.")
    return msgspec.Raw((value or "null").encode())


def _opened(line: Line, value: Members) -> tuple[dict[str, Field], Members]:
    """The columns with a logical type, and the payload: the value itself if the converter wrote no schemas."""
    if "payload" not in value or "op" in value:
        return {}, value
    payload = _object(line, value["payload"], "payload") if is_present(value, "payload") else {}
    schema = _object(line, value["schema"], "schema") if is_present(value, "schema") else {}
    return debezium_types.row_fields(schema), payload


def _row(line: Line, payload: Members, name: str, fields: dict[str, Field]) -> Members | None:
    if not is_present(payload, name):
        return None
    return debezium_types.converted(line, _MEMBERS.decode(payload[name]), fields)


def _completed(after: Members, before: Members) -> Members:
    """With the values that an update left out, as far as the row before it has them (REPLICA IDENTITY FULL)."""
    return {
        name: before[name] if bytes(value) == UNAVAILABLE and name in before else value for name, value in after.items()
    }


def _is_no_change(payload: Members) -> bool:
    """Heartbeats, borders of transactions and changes of schemas: topics of Debezium that hold no rows."""
    names = set(payload)
    return names == {"ts_ms"} or {"status", "id"} <= names or "ddl" in names or "tableChanges" in names


def _table(line: Line, source: Members) -> str:
    names = [_plain(source.get(name)) for name in ("schema", "db", "table")]
    place, table = names[0] or names[1], names[2]
    if not table:
        raise WrongLine(line.number, "source.table is missing: give --table.")
    return f"{place}.{table}" if place else table


def _time(source: Members, payload: Members) -> msgspec.Raw:
    """When the row changed in the database; else when Debezium read it."""
    for each in (source.get("ts_ms"), payload.get("ts_ms")):
        if each is not None and bytes(each).isdigit() and each != b"0":
            return each
    return now()


def _plain(content: msgspec.Raw | None) -> str:
    value = None if content is None else msgspec.json.decode(content)
    return value if isinstance(value, str) else ""


def _as_text(content: msgspec.Raw) -> str:
    return _plain(content) or bytes(content).decode()


def _object(line: Line, content: msgspec.Raw, name: str) -> Members:
    try:
        return _MEMBERS.decode(content)
    except msgspec.DecodeError:
        raise WrongLine(line.number, f"{name} is {shown(content)}; it must be a JSON object.") from None
