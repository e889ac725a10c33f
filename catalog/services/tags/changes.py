"""Sets a tag on an object, takes it off, and deletes a definition that no object has."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError
from django.utils import timezone
from psycopg.errors import ForeignKeyViolation

from catalog.models import Tabular
from catalog.models.tag_attachment import TagAttachment
from catalog.services import pointer
from catalog.services.tags import targets
from catalog.services.tags.targets import Taggable, Target
from lakewarden import quotas
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants as ledger
from lakewarden.db_transaction import changing
from lakewarden.errors import InvalidArgument, LakewardenError, NoSuchTagDefinition, TagInUse
from lakewarden.events.change_recording import Change, record
from lakewarden.prepared_statements import execute
from tenants.models import TagDefinition
from tenants.services import tag_definitions


@dataclass(frozen=True, slots=True)
class Applied:
    """A tag as it is set on an object now."""

    definition: TagDefinition
    value: str | None
    applied_at: datetime


def apply(on: Taggable, tag: Granted[TagDefinition], target: Target, *, value: str | None) -> Applied:
    """Set the tag on `target`, which is `on` or a column of it, or change its value. Idempotent.

    Raises InvalidArgument for a type of object outside of the tag's scope or a value that it cannot have,
    QuotaExceeded, and the 404 of the object or the definition if it was deleted in the meantime.
    """
    definition = tag.target
    _ensure_fits(definition, target)
    tag_definitions.check_value(definition, value)
    rows = TagAttachment.objects.filter(definition=definition, **_exactly(target))
    try:
        with changing():
            found = rows.select_for_update().first()
            if found is None:
                _ensure_room(target)
                # another request may set it in the meantime: then this one sees the row, and changes its value
                found, is_new = TagAttachment.objects.select_for_update().get_or_create(
                    definition=definition,
                    **target.columns,
                    defaults={"target_type": target.scope, "value": value, "applied_by": on.context.caller.id},
                )
                if is_new:
                    _record("applyTag", on, definition, target, {"value": value})
                    return Applied(definition, value, found.created_at)
            if found.value != value:
                before, found.value = found.value, value
                found.applied_by, found.updated_at = on.context.caller.id, timezone.now()
                found.save(update_fields=["value", "applied_by", "updated_at"])
                _record("applyTag", on, definition, target, {"value": value, "before": before})
    except IntegrityError as error:
        raise _missing(on, definition, error) from error
    return Applied(definition, found.value, found.updated_at or found.created_at)


def remove(on: Taggable, tag: Granted[TagDefinition], target: Target) -> None:
    """Take the tag off `target`, which is `on` or a column of it; nothing happens if it is not set there."""
    with changing():
        found = TagAttachment.objects.select_for_update().filter(definition=tag.target, **_exactly(target)).first()
        if found is not None:
            found.delete()
            _record("removeTag", on, tag.target, target, {"before": found.value})


def hand_over(replaced: Tabular, identifier: UUID, *, with_columns: bool) -> None:
    """Give the tags of a table, part of a transaction that removes it, to the one with this id that replaces it there.

    Whoever registers over a table must not thereby remove its tags. `with_columns`: the field ids still mean the same
    columns; otherwise the tags of columns end.
    """
    pointer.lock_row(replaced)  # before its tags, as a drop does
    execute("set constraints tag_attachment_tabular_fk deferred", [])  # the new row comes when the old one is gone
    execute(_HAND_OVER, {"from": replaced.id, "to": identifier, "columns": with_columns})


def delete_definition(granted: Granted[TagDefinition]) -> None:
    """Delete a definition that no object has, with the rights on it.

    Raises TagInUse, which says how many objects have the tag: dropped ones that can be restored have it, too.
    """
    with changing():
        definition = tag_definitions.locked(granted.target)  # from here on nobody sets it
        count = TagAttachment.objects.filter(definition=definition).count()
        if count:
            raise TagInUse(
                f"The tag {definition.name} is set on {count} objects, among them dropped ones that can be restored: "
                f"remove it from them first; GET /management/v1/tag-definition/{definition.id}/attachments lists them"
            )
        ledger.forget_object(granted.ref)
        data = {"name": definition.name}
        change = Change("deleteTagDefinition", "tag-definition", str(definition.id), definition.project_id, data)
        definition.delete()
        record(change, granted.context)


def _ensure_fits(definition: TagDefinition, target: Target) -> None:
    if target.scope not in definition.scope:
        raise InvalidArgument(
            f"The tag {definition.name} cannot be set on a {target.scope}: its scope is {', '.join(definition.scope)}"
        )


def _ensure_room(target: Target) -> None:
    """The tags of a table's columns count as the table's."""
    around = {name: value for name, value in target.columns.items() if name != "field_id"}
    rows = TagAttachment.objects.filter(**{name: value for name, value in around.items() if value is not None})
    if target.tabular_id is None and target.namespace_id is None:
        rows = rows.filter(target_type=target.scope)
    within = str(target.tabular_id or target.namespace_id or target.warehouse_id)
    quotas.ensure_room("tags_on_object", rows, within=within)


def _exactly(target: Target) -> dict[str, object]:
    """The filter for tags of this target and no other."""
    columns = target.columns.items()
    # a field id may be 0
    return {f"{name}__isnull" if value is None else name: True if value is None else value for name, value in columns}


def _record(event: str, on: Taggable, definition: TagDefinition, target: Target, data: dict[str, object]) -> None:
    plain: dict[str, object] = {
        "tag": definition.name,
        "tag-definition-id": str(definition.id),
        "warehouse-id": str(target.warehouse_id),
        **({"path": list(target.path)} if target.path else {}),
        **({"field-id": target.field_id, "column": target.column} if target.field_id is not None else {}),
        **data,
    }
    record(Change(event, on.ref.type.value, on.ref.public_id, definition.project_id, plain), on.context)


def _missing(on: Taggable, definition: TagDefinition, error: IntegrityError) -> LakewardenError:
    cause = error.__cause__
    if isinstance(cause, ForeignKeyViolation) and cause.diag.constraint_name == "tag_attachment_definition_fk":
        return NoSuchTagDefinition(f"Tag definition does not exist: {definition.name}")
    return targets.gone(on)


_HAND_OVER = """
    update tag_attachment set tabular_id = %(to)s
    where tabular_id = %(from)s and (field_id is null or %(columns)s)
"""
