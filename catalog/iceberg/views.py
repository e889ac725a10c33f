"""View metadata: an immutable class, creation, and commits.

For views, the catalog's services call only this module of the engine.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from catalog.iceberg import definitions, wire
from catalog.iceberg.definitions import Definition
from catalog.iceberg.metadata_file_decoding import open_file
from catalog.iceberg.requirements import check_view
from catalog.iceberg.schemas import read as read_schema
from catalog.iceberg.table_updates import check_uuid, clean_location
from catalog.iceberg.view_draft import NEWEST_VIEW_FORMAT, ViewDraft, ViewVersion, read_version
from catalog.iceberg.view_updates import (
    AddViewVersion,
    SetCurrentViewVersion,
    add_schema_document,
    add_view_version,
    apply_all,
    set_current_view_version,
)
from catalog.iceberg.wire import Int32, Int64, Json, Members, Wire
from lakewarden.errors import ValidationFailed

_FIRST_VERSION: Final = 1
_NO_VERSION: Final = -1

_MEMBERS = msgspec.json.Decoder(Members)
_TEXT = msgspec.json.Decoder(str)
_INT = msgspec.json.Decoder(int)
_TEXTS = msgspec.json.Decoder(dict[str, str])


class CreateView(Wire):
    schema: Raw
    view_version: Raw
    properties: dict[str, str] | None = None


class HistoryDocument(Wire):
    timestamp_ms: Int64
    version_id: Int32


class ViewDocument(Wire):
    view_uuid: str
    format_version: Int32
    location: str
    current_version_id: Int32
    versions: list[Raw]
    version_log: list[HistoryDocument]
    schemas: list[Raw]
    properties: dict[str, str] | None = None


_REQUEST = wire.decoder(CreateView)
_DOCUMENT = wire.decoder(ViewDocument)


class ViewMetadata:
    """One immutable version of a view's metadata (spec "View Metadata"); members are decoded when they are used."""

    __slots__ = ("_members",)

    def __init__(self, members: Members) -> None:
        self._members = members

    @classmethod
    def decode(cls, raw: bytes) -> "ViewMetadata":
        """Open metadata that this engine wrote: scans it once, without checks."""
        return cls(_MEMBERS.decode(raw))

    @classmethod
    def read_file(cls, raw: bytes) -> "ViewMetadata":
        """Open a metadata file of another writer, gzip or plain. Raises ValidationFailed, which says what is wrong."""
        return cls(open_file(raw, _checked, "view"))

    def encode(self) -> bytes:
        """The metadata as JSON; members that no commit changed are exactly as they were written."""
        return wire.compact(self._members)

    @property
    def uuid(self) -> str:
        return _TEXT.decode(self._members["view-uuid"])

    @property
    def location(self) -> str:
        """The view's base location, without a trailing slash."""
        return _TEXT.decode(self._members["location"])

    @property
    def format_version(self) -> int:
        return _INT.decode(self._members["format-version"])

    @property
    def properties(self) -> dict[str, str]:
        """A copy of the view's properties."""
        return _TEXTS.decode(self._members["properties"])

    @property
    def definition(self) -> Definition:
        """The current version's schema, and the properties."""
        return definitions.of_view(self.open(now_ms=0))

    def is_defined_as(self, other: "ViewMetadata") -> bool:
        """As `TableMetadata.is_defined_as`."""
        return definitions.are_same(self._members, other._members, definitions.VIEW_MEMBERS)  # noqa: SLF001 another of this class

    def find_schema(self, raw: Json) -> int | None:
        """The id of a schema that is equal to `raw`, which is checked."""
        return self.open(now_ms=0).schemas.find_equal(read_schema(raw, "schema").shape)

    @property
    def current_schema(self) -> bytes:
        """The JSON of the current version's schema."""
        draft = self.open(now_ms=0)
        return bytes(draft.schemas.raw(draft.versions[draft.long("current-version-id")].schema_id))

    @property
    def current_version(self) -> Members:
        """The members of the current version."""
        draft = self.open(now_ms=0)
        return wire.members(draft.versions.raw(draft.long("current-version-id")), "version")

    def open(self, *, now_ms: int) -> ViewDraft:
        """A draft for changing this metadata."""
        return ViewDraft(self._members, now_ms=now_ms)


def create(request: bytes, *, uuid: str, location: str, now_ms: int) -> ViewMetadata:
    """Build the first metadata of a view from the body of a createView request.

    Its version gets the id 1 and the schema the id 0, whatever the request says. `now_ms` is in milliseconds
    since 1970. BadRequest and InvalidArgument as the request errs.
    """
    wire.check_text(request, "request")
    wanted = wire.parse(_REQUEST, request, "request")
    check_uuid(uuid)
    empty: dict[str, object] = {
        "view-uuid": uuid,
        "format-version": NEWEST_VIEW_FORMAT,
        "location": clean_location(location),
        "current-version-id": _NO_VERSION,
        "versions": [],
        "version-log": [],
        "schemas": [],
        "properties": wanted.properties or {},
    }
    draft = ViewDraft({name: wire.dump(each) for name, each in empty.items()}, now_ms=now_ms, is_new=True)
    schema_id = add_schema_document(draft, wanted.schema)
    version = wire.members(wanted.view_version, "view-version")
    # the client chose its ids without knowing the catalog's, and a first version always has the same
    version |= {"version-id": wire.dump(_FIRST_VERSION), "schema-id": wire.dump(schema_id)}
    add_view_version(draft, AddViewVersion(wire.dump(version)))
    set_current_view_version(draft, SetCurrentViewVersion(_FIRST_VERSION))
    return ViewMetadata(draft.build())


def commit(
    base: ViewMetadata,
    requirements: Sequence[Json],
    updates: Sequence[Json],
    *,
    now_ms: int,
) -> ViewMetadata:
    """Check requirements, then apply updates; returns `base` itself if they change nothing.

    Errors: CommitFailed for a requirement, BadRequest for shape, InvalidArgument and ValidationFailed for rules.
    """
    check_view(base.uuid, requirements)
    draft = base.open(now_ms=now_ms)
    apply_all(draft, updates)
    return ViewMetadata(draft.build()) if draft.changed else base


def _checked(found: Members) -> Members:
    document = wire.parse(_DOCUMENT, wire.dump(found), "it")
    if not 1 <= document.format_version <= NEWEST_VIEW_FORMAT:
        raise ValidationFailed(
            f"Unsupported format version: {document.format_version} (supported: {NEWEST_VIEW_FORMAT})"
        )
    check_uuid(document.view_uuid)
    versions = _checked_versions(document)
    if document.current_version_id not in versions:
        raise ValidationFailed(
            f"Cannot find current version {document.current_version_id} in view versions: {sorted(versions)}",
        )
    present = {name: each for name, each in found.items() if not wire.is_null(each)}
    present["location"] = wire.dump(clean_location(document.location))
    return present | ({} if "properties" in present else {"properties": Raw(b"{}")})


def _checked_versions(document: ViewDocument) -> dict[int, ViewVersion]:
    schema_ids = [read_schema(raw, "schemas").schema_id for raw in document.schemas]
    read = [read_version(raw, f"versions[{position}]") for position, raw in enumerate(document.versions)]
    versions = {each.version_id: each for each in read}
    for name, ids in (("schemas", schema_ids), ("versions", [each.version_id for each in read])):
        if None in ids or len(set(ids)) != len(ids):
            raise ValidationFailed(f"Every one of {name} must have an id of its own, got {ids}")
    for each in read:
        if each.schema_id not in schema_ids:
            raise ValidationFailed(f"Cannot find schema {each.schema_id} of version {each.version_id} in schemas")
    return versions
