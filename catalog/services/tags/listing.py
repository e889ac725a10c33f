"""Reads tags: those of an object, with the inherited ones, those of a table's columns, and where a tag is set."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from catalog.models import Tabular
from catalog.services.tags import targets
from catalog.services.tags.targets import Target
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import visible_objects
from lakewarden.authz.model import Privilege
from lakewarden.errors import BadRequest
from lakewarden.paging import Page
from lakewarden.prepared_statements import fetch
from tenants import access
from tenants.models import TagDefinition
from tenants.models.tag_definition import DEFINITION, Scope


class SetTag(NamedTuple):
    """A tag as it is set on the object `scope`, which is the one that was asked about or one around it."""

    definition_id: UUID
    name: str
    value: str | None
    created_at: datetime
    updated_at: datetime | None
    scope: str
    namespace_id: UUID | None
    warehouse_id: UUID


class ColumnTags(NamedTuple):
    field_id: int
    column_name: str
    tags: list[SetTag]


class Attachment(NamedTuple):
    """Where a tag is set; `field_id` is of a column of the table `tabular_id`, the id that callers know."""

    id: int
    scope: str
    warehouse_id: UUID
    namespace_id: UUID | None
    tabular_id: UUID | None
    field_id: int | None
    value: str | None
    created_at: datetime
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filters of a list of attachments, all of which must match; None does not filter."""

    value: str | None = None
    scope: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    warehouse_id: UUID | None = None


def of(target: Target, *, effective: bool) -> list[SetTag]:
    """The tags of the object, sorted by name; `effective`: also those of the namespaces around it and of its warehouse.

    Of one tag that is set more than once, the nearest counts. A column has only its own.
    """
    wide = effective and target.scope != Scope.COLUMN
    namespaces = target.namespaces if wide else [target.namespace_id] if target.namespace_id else []
    parameters = {
        "tabular": target.tabular_id,
        "field": target.field_id,
        "namespaces": list(namespaces),
        "warehouse": target.warehouse_id if wide or target.scope == Scope.WAREHOUSE else None,
    }
    return [SetTag(*row) for row in fetch(_OF_OBJECT, parameters)]


def of_columns(granted: Granted[Tabular]) -> list[ColumnTags]:
    """The tags of the columns of the current schema, by field id; a column that was dropped is not in it."""
    names = {field_id: name for name, field_id in targets.columns_of(granted).items()}
    rows = fetch(_OF_COLUMNS, {"tabular": granted.target.id})
    return list(_by_column(rows, names))


def _by_column(rows: list[tuple[object, ...]], names: dict[int, str]) -> Iterator[ColumnTags]:
    for field_id, tags in groupby(rows, key=lambda row: row[0]):
        if isinstance(field_id, int) and field_id in names:
            yield ColumnTags(field_id, names[field_id], [SetTag(*row[1:]) for row in tags])  # type: ignore[arg-type]


def attachments(granted: Granted[TagDefinition], wanted: Wanted, page: Page) -> tuple[list[Attachment], str | None]:
    """A page of what has the tag, in the order in which it was set there, and the key of the next page.

    Only objects that the caller may see; dropped ones are not in it.
    """
    project = granted.target.project
    held = access.privileges(granted.context, chain=list(granted.chain[:2]), project=project)
    sees_all = Privilege.DESCRIBE in held
    parameters = {
        "definition": granted.target.id,
        "after": _number(page.after),
        "limit": page.limit,
        "value": wanted.value,
        "scope": wanted.scope,
        "from": wanted.created_after,
        "to": wanted.created_before,
        "warehouse": wanted.warehouse_id,
        "everything": sees_all,
        "principals": [] if sees_all else list(access.principals(granted.context, project)),
        "project": project.id,
        "showing": visible_objects.SHOWING_ANY,
        "showing_below": visible_objects.SHOWING_BELOW,
    }
    found = [Attachment(*row) for row in fetch(_ATTACHMENTS, parameters)]
    return page.cut([(each, str(each.id)) for each in found])


def _number(key: str | None) -> int:
    if key is None:
        return 0
    if not (key.isascii() and key.isdigit()):
        raise BadRequest("Invalid pageToken: it was not issued for this list")
    return int(key)


_TAG = "a.definition_id, d.name, a.value, a.created_at, a.updated_at, a.target_type, a.namespace_id, a.warehouse_id"
# the nearest first: the object itself, the namespaces from the inside out, the warehouse
_OF_OBJECT = f"""
    select distinct on (d.name_key) {_TAG}
    from tag_attachment a join {DEFINITION} = a.definition_id
    where (a.tabular_id = %(tabular)s and a.field_id is not distinct from %(field)s)
       or a.namespace_id = any(%(namespaces)s::uuid[])
       or (a.warehouse_id = %(warehouse)s and a.target_type = 'warehouse')
    order by d.name_key, a.tabular_id nulls last, array_position(%(namespaces)s::uuid[], a.namespace_id) desc nulls last
"""  # noqa: S608 text of our own
_OF_COLUMNS = f"""
    select a.field_id, {_TAG}
    from tag_attachment a join {DEFINITION} = a.definition_id
    where a.tabular_id = %(tabular)s and a.field_id is not null
    order by a.field_id, d.name_key
"""  # noqa: S608 text of our own
_PATH = "(array[%(project)s::text, a.warehouse_id::text] || coalesce(n.lineage::text[], '{}'))"
_ABOVE = visible_objects.HELD_ON_ANY.format(path=_PATH, showing="%(showing_below)s")
_SEEN = f"""
    case when a.tabular_id is not null
        then {_ABOVE} or {visible_objects.HELD_ON.format(kind="t.kind", id="a.tabular_id::text", showing="%(showing)s")}
        else {_ABOVE} or {visible_objects.HELD_ON_OR_WITHIN.format(path=_PATH)}
    end
"""
_ATTACHMENTS = f"""
    select a.id, a.target_type, a.warehouse_id, a.namespace_id, t.uuid, a.field_id, a.value, a.created_at,
           a.updated_at
    from tag_attachment a
    left join tabular t on t.id = a.tabular_id
    left join namespace n on n.id = coalesce(a.namespace_id, t.namespace_id)
    where a.definition_id = %(definition)s and a.id > %(after)s
        and t.deleted_at is null and n.deleted_at is null
        and (%(value)s::text is null or a.value = %(value)s)
        and (%(scope)s::text is null or a.target_type = %(scope)s)
        and (%(from)s::timestamptz is null or a.created_at >= %(from)s)
        and (%(to)s::timestamptz is null or a.created_at <= %(to)s)
        and (%(warehouse)s::uuid is null or a.warehouse_id = %(warehouse)s)
        and (%(everything)s or {_SEEN})
    order by a.id limit %(limit)s
"""  # noqa: S608 text of our own
