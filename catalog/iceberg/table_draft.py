"""The mutable state of a table during a commit: members stay raw JSON until an update needs them.

`updates.py` applies the updates of a commit to a draft, `metadata_builder.py` builds the new metadata from it.
"""

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from catalog.iceberg import schemas, wire
from catalog.iceberg.entries import KeyedEntries, NumberedEntries
from catalog.iceberg.partition_specs import FieldIds, PartitionSpec
from catalog.iceberg.partition_specs import read as read_spec
from catalog.iceberg.refs import Refs
from catalog.iceberg.schemas import Schema
from catalog.iceberg.snapshot_log import SnapshotLog
from catalog.iceberg.snapshots import SnapshotHead, Snapshots
from catalog.iceberg.sort_orders import SortOrder
from catalog.iceberg.sort_orders import read as read_order
from catalog.iceberg.wire import Members
from lakewarden.errors import InvalidArgument, ValidationFailed

T = TypeVar("T")

LAST_ADDED: Final = -1
"""In updates that name a schema, spec, order or view version: the last one that this commit added."""
NO_SNAPSHOT: Final = -1
MAIN: Final = "main"
NEWEST_FORMAT: Final = 3
ROW_LINEAGE_SINCE: Final = 3
SCHEMAS: Final = "schemas"
SPECS: Final = "partition-specs"
ORDERS: Final = "sort-orders"

_INT = msgspec.json.Decoder(int)
_TEXT = msgspec.json.Decoder(str)
_OPTIONAL_INT = msgspec.json.Decoder(int | None)
_TEXTS = msgspec.json.Decoder(dict[str, str])
_LIST = msgspec.json.Decoder(list[Raw])


def or_last_added(identifier: int, last_added: int | None, what: str) -> int:
    """The id that an update means. Raises ValidationFailed for LAST_ADDED when this commit has added none."""
    if identifier != LAST_ADDED:
        return identifier
    if last_added is None:
        raise ValidationFailed(f"Cannot set last added {what}: no {what} has been added")
    return last_added


class TableDraft:
    """The state of a table during one commit. `changed`: an update had an effect."""

    def __init__(
        self,
        members: Members,
        *,
        now_ms: int,
        is_new: bool = False,
        heads: Mapping[int, SnapshotHead] | None = None,
    ) -> None:
        """`heads`: the snapshots in the members, if they are known."""
        self.members = dict(members)
        self._heads = heads
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
        self._keyed: dict[str, KeyedEntries] = {}

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
            found = self._lists[name] = self._stored(name)
        return found

    def keyed(self, name: str, key: Callable[[Raw], Hashable]) -> KeyedEntries:
        """An array member by the key of its entries; changes are written back at the end."""
        found = self._keyed.get(name)
        if found is None:
            found = self._keyed[name] = KeyedEntries(self._stored(name), key)
        return found

    def _stored(self, name: str) -> list[Raw]:
        raw = self.members.get(name)
        return [] if raw is None else _LIST.decode(raw)

    @cached_property
    def properties(self) -> dict[str, str]:
        raw = self.members.get("properties")
        return {} if raw is None else _TEXTS.decode(raw)

    @cached_property
    def refs(self) -> Refs:
        return Refs(self.members.get("refs"))

    @cached_property
    def snapshots(self) -> Snapshots:
        return Snapshots(self.members.get("snapshots"), self._heads)

    @property
    def snapshot_heads(self) -> Mapping[int, SnapshotHead] | None:
        """The snapshots, if they are known; not to be changed."""
        return self.snapshots.heads if "snapshots" in self.__dict__ else self._heads

    @cached_property
    def snapshot_log(self) -> SnapshotLog:
        return SnapshotLog(self.members.get("snapshot-log"))

    @cached_property
    def schemas(self) -> NumberedEntries[Schema]:
        return stored_schemas(self._stored(SCHEMAS))

    @cached_property
    def specs(self) -> NumberedEntries[PartitionSpec]:
        def read(raw: Raw) -> PartitionSpec:
            return read_spec(raw, "stored partition spec")

        return NumberedEntries(
            self._stored(SPECS),
            id_of=lambda raw: read(raw).spec_id or 0,
            shape_of=lambda raw: read(raw).shape,
            read=read,
        )

    @cached_property
    def partition_field_ids(self) -> FieldIds:
        return FieldIds(self.specs.values())

    @cached_property
    def orders(self) -> NumberedEntries[SortOrder]:
        def read(raw: Raw) -> SortOrder:
            return read_order(raw, "stored sort order")

        return NumberedEntries(
            self._stored(ORDERS),
            id_of=lambda raw: read(raw).order_id or 0,
            shape_of=lambda raw: read(raw).fields,
            read=read,
        )

    def current_schema(self) -> Schema:
        """The current schema, to which specs and orders are bound. Raises InvalidArgument if there is none yet."""
        return self.schemas[self.current_schema_id()]

    def current_schema_id(self) -> int:
        """The id of `current_schema`, which need not be read for it; raises as that."""
        schema_id = self.long("current-schema-id")
        if schema_id not in self.schemas:
            raise InvalidArgument(f"Cannot find current schema with id {schema_id}: add a schema first")
        return schema_id

    def write_back(self) -> None:
        """Write all decoded members back to `members`."""
        arrays = self._lists | {name: keyed.raws() for name, keyed in self._keyed.items()}
        for name, member in (("schemas", SCHEMAS), ("specs", SPECS), ("orders", ORDERS)):
            if name in self.__dict__:
                arrays[member] = self.__dict__[name].raws()
        for name, found in arrays.items():
            # an empty list that was only read must not become a member
            if found or name in self.members:
                self.put(name, found)
        if "properties" in self.__dict__:
            self.put("properties", self.properties)
        for name, member in (("refs", "refs"), ("snapshots", "snapshots"), ("snapshot_log", "snapshot-log")):
            if name in self.__dict__:
                self.members[member] = self.__dict__[name].encode()


def stored_schemas(raws: list[Raw]) -> NumberedEntries[Schema]:
    """The schemas of a table or view by id; those that are not needed are not read: there may be thousands."""
    return NumberedEntries(
        raws,
        id_of=schemas.stored_id,
        shape_of=schemas.stored_shape,
        read=lambda raw: schemas.read(raw, "stored schema"),
    )


def current_snapshot_id(members: Members) -> int | None:
    """The current snapshot's id, or None; formats 1 and 2 write -1 for none."""
    raw = members.get("current-snapshot-id")
    found = None if raw is None else _OPTIONAL_INT.decode(raw)
    return None if found == NO_SNAPSHOT else found
