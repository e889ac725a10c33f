"""The mutable state of a table during a commit: members stay raw JSON until an update needs them.

`updates.py` applies the updates of a commit to a draft, `metadata_builder.py` builds the new metadata from it.
"""

from collections.abc import MutableMapping
from functools import cached_property
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.partition_specs import PartitionSpec
from catalog.iceberg.partition_specs import read as read_spec
from catalog.iceberg.schemas import Schema
from catalog.iceberg.schemas import read as read_schema
from catalog.iceberg.snapshots import Snapshots
from catalog.iceberg.sort_orders import SortOrder
from catalog.iceberg.sort_orders import read as read_order
from catalog.iceberg.wire import Members, Wire
from lakewarden.errors import InvalidArgument, ValidationFailed

T = TypeVar("T")

LAST_ADDED: Final = -1
"""In updates that name a schema, spec, order or view version: the last one that this commit added."""
NO_SNAPSHOT: Final = -1
MAIN: Final = "main"
NEWEST_FORMAT: Final = 3
ROW_LINEAGE_SINCE: Final = 3

_INT = msgspec.json.Decoder(int)
_TEXT = msgspec.json.Decoder(str)
_OPTIONAL_INT = msgspec.json.Decoder(int | None)
_TEXTS = msgspec.json.Decoder(dict[str, str])
_LIST = msgspec.json.Decoder(list[Raw])
_MEMBERS = msgspec.json.Decoder(Members)


class SnapshotRef(Wire, omit_defaults=True):
    """A branch or a tag with its retention; ages are in milliseconds."""

    snapshot_id: wire.Int64
    type: str
    min_snapshots_to_keep: wire.Int32 | None = None
    max_snapshot_age_ms: wire.Int64 | None = None
    max_ref_age_ms: wire.Int64 | None = None


_REF = wire.decoder(SnapshotRef)


def or_last_added(identifier: int, last_added: int | None, what: str) -> int:
    """The id that an update means. Raises ValidationFailed for LAST_ADDED when this commit has added none."""
    if identifier != LAST_ADDED:
        return identifier
    if last_added is None:
        raise ValidationFailed(f"Cannot set last added {what}: no {what} has been added")
    return last_added


class TableDraft:
    """The state of a table during one commit. `changed`: an update had an effect."""

    def __init__(self, members: Members, *, now_ms: int, is_new: bool = False) -> None:
        self.members = dict(members)
        # clocks of replicas may differ, but `last-updated-ms` must not decrease
        self.updated_ms = max(now_ms, self.long("last-updated-ms"))
        self.is_new = is_new
        self.changed = is_new
        self.layout_changed = is_new
        self.last_added_schema: int | None = None
        self.last_added_spec: int | None = None
        self.last_added_order: int | None = None
        self.added_schemas: set[int] = set()
        self.added_specs: set[int] = set()
        self.added_orders: set[int] = set()
        self.became_main: set[int] = set()
        self._lists: dict[str, list[Raw]] = {}

    def long(self, name: str) -> int:
        """An integer member; 0 if it is absent, which is the initial value of all optional ones."""
        raw = self.members.get(name)
        return 0 if raw is None else _INT.decode(raw)

    def put(self, name: str, value: object) -> None:
        """Set a member."""
        self.members[name] = wire.dump(value)

    def text(self, name: str) -> str:
        return _TEXT.decode(self.members[name])

    @property
    def format_version(self) -> int:
        return self.long("format-version")

    @property
    def current_snapshot_id(self) -> int | None:
        return current_snapshot_id(self.members)

    @current_snapshot_id.setter
    def current_snapshot_id(self, snapshot_id: int | None) -> None:
        self.put("current-snapshot-id", NO_SNAPSHOT if snapshot_id is None else snapshot_id)

    def entries(self, name: str) -> list[Raw]:
        """An array member as a list of raw values; changes to the list are written back at the end."""
        found = self._lists.get(name)
        if found is None:
            raw = self.members.get(name)
            found = self._lists[name] = [] if raw is None else _LIST.decode(raw)
        return found

    def remove(self, name: str, known: MutableMapping[int, T], removed: set[int]) -> None:
        """Remove the entries with these ids from an array member; `known` is what was read of it, in its order."""
        entries = zip(known, list(self.entries(name)), strict=True)
        self.entries(name)[:] = [raw for identifier, raw in entries if identifier not in removed]
        for identifier in removed:
            known.pop(identifier, None)
        self.changed = True

    def is_opened(self, name: str) -> bool:
        """Whether `entries` was called for this member."""
        return name in self._lists

    @cached_property
    def properties(self) -> dict[str, str]:
        raw = self.members.get("properties")
        return {} if raw is None else _TEXTS.decode(raw)

    @cached_property
    def refs(self) -> dict[str, Raw]:
        """Branches and tags by name, as raw JSON; `ref` decodes one."""
        raw = self.members.get("refs")
        return {} if raw is None else _MEMBERS.decode(raw)

    @cached_property
    def snapshots(self) -> Snapshots:
        return Snapshots(self.members.get("snapshots"))

    @cached_property
    def schemas(self) -> dict[int, Schema]:
        """All schemas by id, in the order of the document."""
        found = (read_schema(raw, "stored schema") for raw in self.entries("schemas"))
        return {each.schema_id or 0: each for each in found}

    @cached_property
    def specs(self) -> dict[int, PartitionSpec]:
        found = (read_spec(raw, "stored partition spec") for raw in self.entries("partition-specs"))
        return {each.spec_id or 0: each for each in found}

    @cached_property
    def orders(self) -> dict[int, SortOrder]:
        found = (read_order(raw, "stored sort order") for raw in self.entries("sort-orders"))
        return {each.order_id or 0: each for each in found}

    def ref(self, name: str) -> SnapshotRef | None:
        """The branch or tag with this name, or None."""
        raw = self.refs.get(name)
        return None if raw is None else _REF.decode(raw)

    def current_schema(self) -> Schema:
        """The current schema, to which specs and orders are bound. Raises InvalidArgument if there is none yet."""
        schema = self.schemas.get(self.long("current-schema-id"))
        if schema is None:
            raise InvalidArgument(
                f"Cannot find current schema with id {self.long('current-schema-id')}: add a schema first"
            )
        return schema

    def write_back(self) -> None:
        """Write all decoded members back to `members`."""
        for name, found in self._lists.items():
            # an empty list that was only read must not become a member
            if found or name in self.members:
                self.put(name, found)
        for name in ("properties", "refs"):
            if name in self.__dict__:
                self.put(name, self.__dict__[name])
        if "snapshots" in self.__dict__:
            self.members["snapshots"] = self.snapshots.encode()


def current_snapshot_id(members: Members) -> int | None:
    """The current snapshot's id, or None; formats 1 and 2 write -1 for none."""
    raw = members.get("current-snapshot-id")
    found = None if raw is None else _OPTIONAL_INT.decode(raw)
    return None if found == NO_SNAPSHOT else found
