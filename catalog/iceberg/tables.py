"""Table metadata: an immutable class, creation, and commits.

For tables, the catalog's services call only this module of the engine.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Raw

from catalog.iceberg import definitions, restoration, table_creation, table_metadata_reader
from catalog.iceberg.definitions import Definition
from catalog.iceberg.metadata_builder import build
from catalog.iceberg.properties import is_true
from catalog.iceberg.requirements import check_table, is_create
from catalog.iceberg.restoration import WayBack
from catalog.iceberg.schemas import read as read_schema
from catalog.iceberg.snapshots import SnapshotHead, Snapshots
from catalog.iceberg.table_draft import TableDraft, current_snapshot_id
from catalog.iceberg.updates import apply_all, first_format_version
from catalog.iceberg.wire import Json, Members, compact

DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"

_PER_MEMBER: Final = 200
_PER_HEAD: Final = 300
_LONGEST_KNOWN: Final = 100

_MEMBERS = msgspec.json.Decoder(Members)
_TEXT = msgspec.json.Decoder(str)
_INT = msgspec.json.Decoder(int)
_TEXTS = msgspec.json.Decoder(dict[str, str])


class _LoggedFile(msgspec.Struct, rename="kebab"):
    metadata_file: str


class _Ref(msgspec.Struct, rename="kebab"):
    snapshot_id: int


_LOGGED_FILES = msgspec.json.Decoder(list[_LoggedFile])
_REFS = msgspec.json.Decoder(dict[str, _Ref])


class TableMetadata:
    """One immutable version of a table's metadata (spec "Table Metadata"); members are decoded when they are used."""

    __slots__ = ("_heads", "_members")

    def __init__(self, members: Members, *, heads: Mapping[int, SnapshotHead] | None = None) -> None:
        """`heads`: its snapshots, if they are known."""
        self._members = members
        self._heads = heads

    @classmethod
    def decode(cls, raw: bytes) -> "TableMetadata":
        """Open metadata that this engine wrote: scans it once, without checks."""
        return cls(_MEMBERS.decode(raw))

    @classmethod
    def read_file(cls, raw: bytes) -> "TableMetadata":
        """Open a metadata file of another writer, gzip or plain. Raises ValidationFailed, which says what is wrong.

        Adds members that older versions of the format omit.
        """
        return cls(table_metadata_reader.table_members(raw))

    def encode(self) -> bytes:
        """The metadata as JSON; members that no commit changed are exactly as they were written."""
        return compact(self._members)

    def sealed(self) -> "tuple[bytes, TableMetadata]":
        """As `encode`, with the metadata as it is in that JSON: without the older documents that its members are in."""
        encoded = compact(self._members)
        whole, members, at = memoryview(encoded), {}, 1
        for name, raw in self._members.items():
            start = at + (_written_name(name) if len(name) <= _LONGEST_KNOWN else len(compact(name)) + 1)
            at = start + len(raw) + 1
            members[name] = Raw(whole[start : at - 1])
        return encoded, TableMetadata(members, heads=self._heads)

    @property
    def weight(self) -> int:
        """Bytes of memory that it takes besides its JSON, roughly."""
        return _PER_MEMBER * len(self._members) + _PER_HEAD * len(self._heads or ())

    @property
    def uuid(self) -> str:
        return _TEXT.decode(self._members["table-uuid"])

    @property
    def location(self) -> str:
        """The table's base location, without a trailing slash."""
        return _TEXT.decode(self._members["location"])

    @property
    def format_version(self) -> int:
        return _INT.decode(self._members["format-version"])

    @property
    def last_updated_ms(self) -> int:
        """When this version was written, in milliseconds since 1970."""
        return _INT.decode(self._members["last-updated-ms"])

    @property
    def current_snapshot_id(self) -> int | None:
        return current_snapshot_id(self._members)

    @property
    def properties(self) -> dict[str, str]:
        """A copy of the table's properties."""
        return _TEXTS.decode(self._members["properties"])

    @property
    def column_ids(self) -> dict[str, int]:
        """The field ids of the current schema's columns, nested ones too, by full name."""
        return self.open(now_ms=0).current_schema().ids_by_name

    @property
    def definition(self) -> Definition:
        """The current schema, properties, partition and sort fields."""
        return definitions.of_table(self.open(now_ms=0))

    def is_defined_as(self, other: "TableMetadata") -> bool:
        """Whether the definitions are certainly equal: both have the same JSON. Reads none of it."""
        return definitions.are_same(self._members, other._members, definitions.TABLE_MEMBERS)  # noqa: SLF001 another of this class

    def find_schema(self, raw: Json) -> int | None:
        """The id of a schema that is equal to `raw`, which is checked."""
        return self.open(now_ms=0).schemas.find_equal(read_schema(raw, "schema").shape)

    @property
    def current_schema(self) -> bytes:
        """The JSON of the current schema."""
        draft = self.open(now_ms=0)
        return bytes(draft.schemas.raw(draft.long("current-schema-id")))

    @property
    def metadata_files(self) -> list[str]:
        """The locations in the metadata log, oldest first."""
        return [each.metadata_file for each in _LOGGED_FILES.decode(self._members["metadata-log"])]

    def with_referenced_snapshots_only(self) -> "TableMetadata":
        """The metadata for `snapshots=refs`: only the snapshots that a branch or tag points to."""
        snapshots = Snapshots(self._members["snapshots"])
        snapshots.retain({each.snapshot_id for each in _REFS.decode(self._members["refs"]).values()})
        return TableMetadata(self._members | {"snapshots": snapshots.encode()})

    def open(self, *, now_ms: int) -> TableDraft:
        """A draft for changing this metadata."""
        return TableDraft(self._members, now_ms=now_ms, heads=self._heads)


@lru_cache(maxsize=1000)
def _written_name(name: str) -> int:
    """Bytes that a member takes besides its value."""
    return len(compact(name)) + 1


def create(
    request: bytes,
    *,
    uuid: str,
    location: str,
    now_ms: int,
    default_version: int = table_creation.DEFAULT_FORMAT_VERSION,
) -> TableMetadata:
    """Build the first metadata of a table from the body of a createTable request.

    Field ids are assigned anew from 1, partition field ids from 1000. `location` is where the caller puts the
    table, `now_ms` is in milliseconds since 1970, `default_version` the format of a table that asks for none.
    BadRequest, InvalidArgument, ValidationFailed as the request errs.
    """
    draft = table_creation.new_table(
        request, uuid=uuid, location=location, now_ms=now_ms, default_version=default_version
    )
    return TableMetadata(build(draft, base_location=None))


def requirement_is_create(requirements: Sequence[Json]) -> bool:
    """Whether a commit creates its table (assert-create). Raises InvalidArgument if it has other requirements, too."""
    return is_create(requirements)


def commit(
    base: TableMetadata | None,
    requirements: Sequence[Json],
    updates: Sequence[Json],
    *,
    base_location: str | None,
    now_ms: int,
    new_uuid: str,
    default_version: int = table_creation.DEFAULT_FORMAT_VERSION,
) -> TableMetadata:
    """Check requirements, then apply updates; returns `base` itself if they change nothing.

    `base` None creates a table from its updates, as `new_uuid` unless they assign one, and in the format
    `default_version` unless they ask for another. `base_location` is the
    metadata file of `base`, which goes into the metadata log. Errors: CommitFailed for a requirement, StaleUpdate
    for a snapshot that came too late, BadRequest for shape, InvalidArgument and ValidationFailed for rules.
    """
    if base is None:
        check_table(None, requirements)
        version = first_format_version(updates)
        empty = table_creation.empty_table(default_version if version is None else version, uuid=new_uuid)
        draft = TableDraft(empty, now_ms=now_ms, is_new=True)
    else:
        draft = base.open(now_ms=now_ms)
        check_table(draft, requirements)
    apply_all(draft, updates)
    # the caller recognizes the same object, and writes no metadata file
    if base is not None and not draft.changed:
        return base
    return TableMetadata(build(draft, base_location=base_location), heads=draft.snapshot_heads)


def way_back(now: TableMetadata, then: TableMetadata) -> WayBack:
    """The updates that lead from a table's metadata back to the state in an earlier version of it."""
    return restoration.way_back(now.open(now_ms=0), then.open(now_ms=0))


def removed_metadata_files(base: TableMetadata, new: TableMetadata) -> list[str]:
    """The files that left the metadata log and are to be deleted by the table's properties, oldest first."""
    if not is_true(new.properties.get(DELETE_AFTER_COMMIT)):
        return []
    kept = set(new.metadata_files)
    return [each for each in base.metadata_files if each not in kept]
