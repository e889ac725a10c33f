"""Reads the updates of a view commit and applies them to a draft in order (spec schema ViewUpdate)."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from msgspec import Raw

from catalog.iceberg import schemas, table_updates, updates, wire
from catalog.iceberg.schema_updates import AddSchema
from catalog.iceberg.table_draft import or_last_added
from catalog.iceberg.view_draft import NEWEST_VIEW_FORMAT, HistoryEntry, ViewDraft, ViewVersion, read_version
from catalog.iceberg.wire import Int32, Json, Wire
from lakewarden.errors import BadRequest, InvalidArgument

U = TypeVar("U")
Apply = Callable[[ViewDraft, Json], None]


class AddViewVersion(Wire):
    view_version: Raw


class SetCurrentViewVersion(Wire):
    view_version_id: Int32


def assign_uuid(draft: ViewDraft, update: table_updates.AssignUuid) -> None:
    """A view's uuid never changes: only the same one may be assigned again."""
    if update.uuid.lower() != draft.text("view-uuid").lower():
        raise InvalidArgument(f"Cannot reassign uuid: it is {draft.text('view-uuid')}")


def upgrade_format_version(draft: ViewDraft, update: table_updates.UpgradeFormatVersion) -> None:
    version, current = update.format_version, draft.long("format-version")
    if version < current:
        raise InvalidArgument(f"Cannot downgrade v{current} view to v{version}")
    if version > NEWEST_VIEW_FORMAT:
        raise InvalidArgument(f"Unsupported format version: {version} (supported: {NEWEST_VIEW_FORMAT})")


def set_location(draft: ViewDraft, update: table_updates.SetLocation) -> None:
    location = table_updates.clean_location(update.location)
    if location != draft.text("location"):
        draft.put("location", location)
        draft.changed = True


def set_properties(draft: ViewDraft, update: table_updates.SetProperties) -> None:
    if found := table_updates.property_updates(update):
        draft.properties.update(found)
        draft.changed = True


def remove_properties(draft: ViewDraft, update: table_updates.RemoveProperties) -> None:
    """Remove properties; missing ones are ignored."""
    if found := table_updates.property_removals(update):
        for name in found:
            draft.properties.pop(name, None)
        draft.changed = True


def add_schema(draft: ViewDraft, update: AddSchema) -> None:
    """Add a schema with the next free id, unless the view has an equal one."""
    add_schema_document(draft, update.schema)


def add_schema_document(draft: ViewDraft, raw: Raw) -> int:
    """Add a schema; returns its id."""
    schema = schemas.read(raw, "schema")
    schemas.check_size(schema)
    equal = draft.schemas.find_equal(schema.shape)
    if equal is not None:
        return equal
    schema_id = draft.schemas.next_id(0)
    draft.schemas.add(schema_id, schema, schemas.with_id(raw, schema_id, "schema"), shape=schema.shape)
    draft.last_added_schema = schema_id
    draft.changed = True
    return schema_id


def add_view_version(draft: ViewDraft, update: AddViewVersion) -> None:
    """Add a version with the next free id, unless the view has an equal one.

    Its schema id may be -1: the schema that this commit added last.
    """
    version = read_version(update.view_version, "view-version")
    equal = draft.versions.find_equal(version.shape)
    if equal is not None:
        draft.last_added_version = equal if equal in draft.added_versions else None
        return
    version.schema_id = or_last_added(version.schema_id, draft.last_added_schema, "schema")
    if version.schema_id not in draft.schemas:
        raise InvalidArgument(f"Cannot add version with unknown schema: {version.schema_id}")
    _check_one_query_per_dialect(version)
    version_id = version.version_id = draft.versions.next_id(version.version_id)
    found = wire.members(update.view_version, "view-version")
    found |= {"version-id": wire.dump(version_id), "schema-id": wire.dump(version.schema_id)}
    draft.versions.add(version_id, version, wire.dump(found), shape=version.shape)
    draft.added_versions.add(version_id)
    draft.last_added_version = version_id
    draft.changed = True


def _check_one_query_per_dialect(version: ViewVersion) -> None:
    seen: set[str] = set()
    for each in version.representations:
        dialect = each.dialect.lower()
        if dialect in seen:
            raise InvalidArgument(f"Invalid view version: Cannot add multiple queries for dialect {dialect}")
        seen.add(dialect)


def set_current_view_version(draft: ViewDraft, update: SetCurrentViewVersion) -> None:
    """Make a version the current one and log it; -1 stands for the last version that this commit added."""
    version_id = or_last_added(update.view_version_id, draft.last_added_version, "version")
    if version_id == draft.long("current-version-id"):
        return
    version = draft.versions.get(version_id)
    if version is None:
        raise InvalidArgument(f"Cannot set current version to unknown version: {version_id}")
    draft.put("current-version-id", version_id)
    # going back to an old version happens now; a new one became current when its writer made it
    at = version.timestamp_ms if version_id in draft.added_versions else draft.now_ms
    draft.history_entry = HistoryEntry(at, version_id)
    draft.changed = True


def _typed(shape: type[U], apply: Callable[[ViewDraft, U], None]) -> Apply:
    decoder = wire.decoder(shape)

    def parse_and_apply(draft: ViewDraft, raw: Json) -> None:
        apply(draft, wire.parse(decoder, raw, "update"))

    return parse_and_apply


APPLY: Final[dict[str, Apply]] = {
    "assign-uuid": _typed(table_updates.AssignUuid, assign_uuid),
    "upgrade-format-version": _typed(table_updates.UpgradeFormatVersion, upgrade_format_version),
    "add-schema": _typed(AddSchema, add_schema),
    "set-location": _typed(table_updates.SetLocation, set_location),
    "set-properties": _typed(table_updates.SetProperties, set_properties),
    "remove-properties": _typed(table_updates.RemoveProperties, remove_properties),
    "add-view-version": _typed(AddViewVersion, add_view_version),
    "set-current-view-version": _typed(SetCurrentViewVersion, set_current_view_version),
}


def apply_all(draft: ViewDraft, updates_: Sequence[Json]) -> None:
    """Apply updates in order; raises the same errors as for tables."""
    for position, (action, raw) in enumerate(updates.named(updates_, list(APPLY))):
        try:
            APPLY[action](draft, raw)
        except BadRequest as error:
            if type(error) is not BadRequest:
                raise
            raise updates.at_update(error, position, action) from error
