"""Updates of schemas: add-schema, set-current-schema, remove-schemas."""

from msgspec import Raw

from catalog.iceberg import schemas
from catalog.iceberg.table_draft import TableDraft, or_last_added
from catalog.iceberg.wire import Int32, Wire
from lakewarden.errors import InvalidArgument


class AddSchema(Wire):
    schema: Raw


class SetCurrentSchema(Wire):
    schema_id: Int32


class RemoveSchemas(Wire):
    schema_ids: list[Int32]


def add_schema(draft: TableDraft, update: AddSchema) -> None:
    """Add a schema with the next free id, unless the table has an equal one.

    `last-column-id` becomes the schema's highest field id if that is greater.
    """
    schema = schemas.read(update.schema, "schema")
    schemas.check_size(schema)
    schemas.check_version(schema, draft.format_version)
    equal = draft.schemas.find_equal(schema.shape)
    schema_id = draft.schemas.next_id(draft.long("current-schema-id")) if equal is None else equal
    # never lowered: the id of a removed column must not be used again, because old files still contain it
    highest = max(draft.long("last-column-id"), schema.highest_field_id)
    if equal is not None and highest == draft.long("last-column-id"):
        # in the same commit, -1 stands for the last *added* schema: an equal one that the table already had does not
        # count
        was_added_here = draft.last_added_schema is not None and schema_id in draft.added_schemas
        draft.last_added_schema = schema_id if was_added_here else None
        return
    draft.put("last-column-id", highest)
    if equal is None:
        raw = schemas.with_id(update.schema, schema_id, "schema")
        draft.schemas.add(schema_id, schema, raw, shape=schema.shape)
    draft.last_added_schema = schema_id
    draft.added_schemas.add(schema_id)
    draft.changed = True


def set_current_schema(draft: TableDraft, update: SetCurrentSchema) -> None:
    """Make a schema the current one; -1 stands for the last schema that this commit added."""
    schema_id = or_last_added(update.schema_id, draft.last_added_schema, "schema")
    if schema_id == draft.long("current-schema-id"):
        return
    if schema_id not in draft.schemas:
        raise InvalidArgument(f"Cannot set current schema to unknown schema: {schema_id}")
    draft.put("current-schema-id", schema_id)
    # the default spec and order must fit the new schema; later updates may change them, so this is checked at the end
    draft.changed = draft.layout_changed = True


def remove_schemas(draft: TableDraft, update: RemoveSchemas) -> None:
    """Remove schemas. The client must know that no snapshot needs them; the current schema cannot be removed."""
    removed = set(update.schema_ids)
    if draft.long("current-schema-id") in removed:
        raise InvalidArgument("Cannot remove the current schema")
    if removed:
        draft.schemas.remove(removed)
        draft.changed = True
