"""What a tag is set on: a warehouse, namespace, table or view, or a column of a table."""

import re
from dataclasses import dataclass, replace
from uuid import UUID

from catalog.iceberg.tables import TableMetadata
from catalog.models import Namespace, Tabular
from catalog.services import pointer
from lakewarden.authz.interface import Granted
from lakewarden.errors import InvalidArgument, LakewardenError, NoSuchColumn, NoSuchNamespace, NoSuchWarehouse
from tenants.models import Warehouse
from tenants.models.tag_definition import Scope

_FIELD_ID = re.compile("-?[0-9]{1,10}")

Taggable = Granted[Warehouse] | Granted[Namespace] | Granted[Tabular]


@dataclass(frozen=True, slots=True)
class Target:
    """`namespaces` are the ids of those around the object, outermost first; `path` is its full name."""

    scope: str
    warehouse_id: UUID
    namespaces: tuple[UUID, ...] = ()
    namespace_id: UUID | None = None
    tabular_id: UUID | None = None
    field_id: int | None = None
    path: tuple[str, ...] = ()
    column: str | None = None

    @property
    def columns(self) -> dict[str, object]:
        """The columns of the row of a tag that is set on it."""
        return {
            "warehouse_id": self.warehouse_id,
            "namespace_id": self.namespace_id,
            "tabular_id": self.tabular_id,
            "field_id": self.field_id,
        }


def of(granted: Taggable) -> Target:
    target = granted.target
    if isinstance(target, Warehouse):
        return Target(Scope.WAREHOUSE.value, target.id)
    if isinstance(target, Namespace):
        lineage = tuple(target.lineage)
        return Target(
            Scope.NAMESPACE.value, target.warehouse_id, lineage, namespace_id=target.id, path=tuple(target.path)
        )
    path = (*target.namespace.path, target.name)
    around = tuple(target.namespace.lineage)
    return Target(str(target.kind), target.warehouse_id, around, tabular_id=target.id, path=path)


def column(granted: Granted[Tabular], name: str) -> Target:
    """A column of the table's current schema by its full name, such as `address.zip`.

    Raises NoSuchColumn, and InvalidArgument for a name that several columns have if case is ignored.
    """
    names = columns_of(granted)
    found = [name] if name in names else [each for each in names if each.casefold() == name.casefold()]
    if not found:
        raise NoSuchColumn(f"Column does not exist: {name[:80]!r} is not in the current schema of {granted.target}")
    if len(found) > 1:
        raise InvalidArgument(f"{name[:80]!r} could be one of several columns: {', '.join(sorted(found))}")
    return replace(of(granted), scope=Scope.COLUMN.value, field_id=names[found[0]], column=found[0])


def left_column(granted: Granted[Tabular], name: str) -> Target:
    """Like `column`; the id of a field, in digits, also names a column that the table no longer has."""
    try:
        return column(granted, name)
    except NoSuchColumn:
        if not _FIELD_ID.fullmatch(name):
            raise
        return replace(of(granted), scope=Scope.COLUMN.value, field_id=int(name))


def columns_of(granted: Granted[Tabular]) -> dict[str, int]:
    """The field ids of the columns of the current schema, nested ones too, by full name."""
    return TableMetadata.decode(pointer.load(granted).metadata).column_ids


def gone(granted: Taggable) -> LakewardenError:
    """The error for an object that was deleted in the meantime."""
    target = granted.target
    if isinstance(target, Tabular):
        return pointer.gone(target)
    if isinstance(target, Namespace):
        return NoSuchNamespace(f"Namespace does not exist: {target}")
    return NoSuchWarehouse(f"Warehouse does not exist: {target.id}")
