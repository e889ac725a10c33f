"""The mutable state of a view during a commit; `view_updates.py` changes it, `build` builds the new metadata."""

from collections.abc import Hashable
from functools import cached_property
from typing import Final, Literal

import msgspec
from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.entries import NumberedEntries
from catalog.iceberg.properties import is_true, whole_number
from catalog.iceberg.schemas import Schema
from catalog.iceberg.table_draft import stored_schemas
from catalog.iceberg.wire import Int32, Int64, Members, Wire
from lakewarden.errors import InvalidArgument

NEWEST_VIEW_FORMAT: Final = 1
HISTORY_SIZE: Final = "version.history.num-entries"
DROP_DIALECT: Final = "replace.drop-dialect.allowed"
APPEND_DIALECT: Final = "replace.append-dialect.allowed"
_HISTORY_SIZE_DEFAULT: Final = 10


class SqlRepresentation(Wire):
    type: Literal["sql"]
    sql: str
    dialect: str


class ViewVersion(Wire):
    """One version of a view's definition (spec "View Metadata", versions)."""

    version_id: Int32
    timestamp_ms: Int64
    schema_id: Int32
    summary: dict[str, str]
    representations: list[SqlRepresentation]
    default_namespace: list[str]
    default_catalog: str | None = None

    @property
    def dialects(self) -> set[str]:
        return {each.dialect.lower() for each in self.representations}

    @property
    def shape(self) -> Hashable:
        """Equal for versions that are the same except for their ids and times."""
        queries = tuple((each.sql, each.dialect) for each in self.representations)
        summary = frozenset(self.summary.items())
        return self.schema_id, summary, queries, self.default_catalog, tuple(self.default_namespace)


class HistoryEntry(Wire):
    timestamp_ms: int
    version_id: int


_VERSION = wire.decoder(ViewVersion)
_ENTRY = msgspec.json.Decoder(HistoryEntry)
_INT = msgspec.json.Decoder(int)
_TEXT = msgspec.json.Decoder(str)
_TEXTS = msgspec.json.Decoder(dict[str, str])
_LIST = msgspec.json.Decoder(list[Raw])


def read_version(raw: wire.Json, what: str) -> ViewVersion:
    """Read a version. Raises BadRequest if it is malformed or has representations other than SQL."""
    return wire.parse(_VERSION, raw, what)


class ViewDraft:
    """The state of a view during one commit. `changed`: an update had an effect."""

    def __init__(self, members: Members, *, now_ms: int, is_new: bool = False) -> None:
        self.members = dict(members)
        self.now_ms = now_ms
        self.changed = is_new
        self.last_added_version: int | None = None
        self.last_added_schema: int | None = None
        self.added_versions: set[int] = set()
        self.history_entry: HistoryEntry | None = None
        self.previous = None if is_new else self.versions[self.long("current-version-id")]

    def long(self, name: str) -> int:
        return _INT.decode(self.members[name])

    def text(self, name: str) -> str:
        return _TEXT.decode(self.members[name])

    def put(self, name: str, value: object) -> None:
        self.members[name] = wire.dump(value)

    @cached_property
    def properties(self) -> dict[str, str]:
        raw = self.members.get("properties")
        return {} if raw is None else _TEXTS.decode(raw)

    @cached_property
    def schemas(self) -> NumberedEntries[Schema]:
        return stored_schemas(_LIST.decode(self.members["schemas"]))

    @cached_property
    def versions(self) -> NumberedEntries[ViewVersion]:
        def read(raw: Raw) -> ViewVersion:
            return read_version(raw, "stored view version")

        return NumberedEntries(
            _LIST.decode(self.members["versions"]),
            id_of=lambda raw: read(raw).version_id,
            shape_of=lambda raw: read(raw).shape,
            read=read,
        )

    def build(self) -> Members:
        """The members of the new metadata, without expired versions. Raises InvalidArgument if it breaks a rule."""
        current = self.versions[self.long("current-version-id")]
        self._check_dialects(current)
        history = _LIST.decode(self.members["version-log"])
        if self.history_entry is not None:
            history.append(wire.dump(self.history_entry))
        kept = self._kept_versions()
        self.put("versions", [self.versions.raw(version_id) for version_id in self.versions if version_id in kept])
        self.put("version-log", _without_gaps(history, kept))
        self.put("schemas", self.schemas.raws())
        self.put("properties", self.properties)
        return self.members

    def _check_dialects(self, current: ViewVersion) -> None:
        may_drop = self._allows(DROP_DIALECT)
        if may_drop and self._allows(APPEND_DIALECT):
            raise InvalidArgument(f"Cannot set both {DROP_DIALECT} and {APPEND_DIALECT} to true")
        if self.previous is None or may_drop or current.dialects >= self.previous.dialects:
            return
        raise InvalidArgument(
            f"Cannot replace view due to loss of view dialects ({DROP_DIALECT}=false):\n"
            f"Previous dialects: {sorted(self.previous.dialects)}\nNew dialects: {sorted(current.dialects)}",
        )

    def _allows(self, name: str) -> bool:
        return is_true(self.properties.get(name))

    def _kept_versions(self) -> set[int]:
        """The current version and the newest others, as many as the history may have, but at least those just added."""
        text = self.properties.get(HISTORY_SIZE, str(_HISTORY_SIZE_DEFAULT))
        size = whole_number(text) or 0
        if size < 1:
            raise InvalidArgument(f"{HISTORY_SIZE} must be positive but was {text}")
        current = self.long("current-version-id")
        # versions of this commit are never expired by the same commit: its writer may refer to them
        most = max(len(self.added_versions | {current}), size)
        newest = [each for each in sorted(self.versions, reverse=True) if each != current]
        return {current, *newest[: most - 1]}


def _without_gaps(history: list[Raw], kept: set[int]) -> list[Raw]:
    """The log without the entries before a removed version, because a gap would be wrong about the time between."""
    found: list[Raw] = []
    for raw in history:
        if _ENTRY.decode(raw).version_id in kept:
            found.append(raw)
        else:
            found.clear()
    return found
