"""What one line means: an event as the gateway takes it, or a plain row. Values are never decoded, so stay exact."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from ingest.client.errors import WrongLine
from ingest.client.events import OPERATIONS
from ingest.client.files.lines import Line

Members = dict[str, msgspec.Raw]

_MEMBERS = msgspec.json.Decoder(Members)
_ABSENT = (b"null",)


@dataclass(frozen=True, slots=True)
class Event:
    """One event as JSON, with the line that it came from."""

    line: Line
    content: bytes
    sequence: int


def base(last: int = -1) -> int:
    """What is added to line numbers to become sequences: microseconds since 1970.

    So a file that is sent later has higher sequences than all files before it, and wins in a mirror.
    """
    return max(time.time_ns() // 1000, last)


Reader = Callable[[Line], Event | None]
"""Returns None for a line that changes no row. Raises `WrongLine`."""


def members(line: Line) -> Members:
    """The members of the JSON object in a line, each as the bytes that stand there."""
    try:
        return _MEMBERS.decode(line.content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        fault = str(error).rstrip(".")
        if line.content.lstrip()[:1] == b"[":
            fault = "it holds a JSON array; write each event on a line of its own (jq -c '.[]' does)"
        raise WrongLine(line.number, f"it is not a JSON object: {fault}.") from None


@dataclass(frozen=True, slots=True)
class Events:
    """Lines are events of the gateway's protocol. `table`, `key` and `base` fill in for what a line leaves out."""

    table: str | None
    key: Sequence[str]
    base: int

    def __call__(self, line: Line) -> Event:
        found = members(line)
        operation = self._text(line, found, "operation")
        if operation not in OPERATIONS:
            raise WrongLine(line.number, f"operation is {operation!r}; it must be {', '.join(OPERATIONS)}.")
        if not is_present(found, "table"):
            if self.table is None:
                raise WrongLine(line.number, "table is missing: add it to the line, or give --table.")
            found["table"] = encoded(self.table)
        self._text(line, found, "table")
        for name in ("before", "after", "metadata"):
            require_object(line, found, name)
        if operation != "DELETE" and not is_present(found, "after"):
            raise WrongLine(line.number, f"after is missing: {operation} must carry the row.")
        if not is_present(found, "rowId") and self.key:
            found["rowId"] = encoded(row_id(line, _row(found), self.key))
        self._text(line, found, "rowId")
        found.setdefault("timestamp", now())
        self._integer(line, found, "timestamp")
        found.setdefault("sequence", encoded(self.base + line.number))
        return Event(line, msgspec.json.encode(found), self._integer(line, found, "sequence"))

    def _text(self, line: Line, found: Members, name: str) -> str:
        if name not in found:
            hint = " If the lines are plain rows, use --format rows --key COLUMN." if name == "operation" else ""
            hint = " Add it, or give --key COLUMN." if name == "rowId" else hint
            raise WrongLine(line.number, f"{name} is missing.{hint}")
        try:
            value = msgspec.json.decode(found[name], type=str)
        except msgspec.DecodeError:
            raise WrongLine(line.number, f"{name} is {shown(found[name])}; it must be a string.") from None
        if not value:
            raise WrongLine(line.number, f"{name} is empty.")
        return value

    def _integer(self, line: Line, found: Members, name: str) -> int:
        try:
            value = msgspec.json.decode(found[name], type=int)
        except msgspec.DecodeError:
            value = -1
        if not 0 <= value < 2**63:
            unit = " of milliseconds since 1970" if name == "timestamp" else ""
            raise WrongLine(
                line.number, f"{name} is {shown(found[name])}; it must be a whole number{unit}, from 0 to 2^63-1."
            )
        return value


@dataclass(frozen=True, slots=True)
class Rows:
    """Lines are rows, which become INSERT events of one table."""

    table: str
    key: Sequence[str]
    base: int

    def __call__(self, line: Line) -> Event:
        found = members(line)
        sequence = self.base + line.number
        event: Members = {
            "sequence": encoded(sequence),
            "timestamp": now(),
            "operation": msgspec.Raw(b'"INSERT"'),
            "table": encoded(self.table),
            "rowId": encoded(row_id(line, found, self.key)),
            "after": msgspec.Raw(line.content.strip()),
        }
        return Event(line, msgspec.json.encode(event), sequence)


def row_id(line: Line, row: Members, key: Sequence[str]) -> str:
    """The row's id: the value of its key column as text; for several columns, a JSON array of their values."""
    values = []
    for name in key:
        if not is_present(row, name):
            known = ", ".join(sorted(row)[:10]) or "none"
            raise WrongLine(line.number, f"the key column {name!r} is missing or null; the columns are: {known}.")
        values.append(row[name])
    if len(values) > 1:
        return msgspec.json.encode(values).decode()
    content = bytes(values[0])
    if content[:1] in (b"{", b"["):
        raise WrongLine(line.number, f"the key column {key[0]!r} must be a string or a number, not {shown(values[0])}.")
    return str(msgspec.json.decode(content)) if content[:1] == b'"' else content.decode()


def _row(found: Members) -> Members:
    chosen = found["after"] if is_present(found, "after") else found.get("before")
    return {} if chosen is None else _MEMBERS.decode(chosen)


def is_present(found: Members, name: str) -> bool:
    return name in found and bytes(found[name]) not in _ABSENT


def require_object(line: Line, found: Members, name: str) -> None:
    if is_present(found, name) and bytes(found[name])[:1] != b"{":
        raise WrongLine(line.number, f"{name} is {shown(found[name])}; it must be a JSON object.")


def encoded(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def now() -> msgspec.Raw:
    return encoded(time.time_ns() // 1_000_000)


def shown(content: msgspec.Raw) -> str:
    """The beginning of a value, for a message."""
    text = bytes(content).decode(errors="replace")
    return text if len(text) <= 40 else text[:40] + "…"  # noqa: PLR2004
