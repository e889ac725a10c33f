"""Looks up and authorizes where requests to a store are signed: in a table's location, found by name, id or location.

Dropped tables that can be restored are found, too: engines read their metadata once more after a drop. So are staged
creations, by who has staged them.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from catalog import access
from catalog.access import namespace_chain, tabular_chain
from catalog.identifiers import TabularIdentifier
from catalog.models import Namespace, Tabular, occupied_locations
from catalog.models.tabular import TabularQuerySet
from lakewarden.authz.actions import GenericTableAction, NamespaceAction, TableAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.context import RequestContext
from lakewarden.errors import LakewardenError, NoSuchTable
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.places import around
from tenants.models import Warehouse

_READ, _WRITE = AccessLevel.READ, AccessLevel.WRITE
ACTIONS: Final[Mapping[str, Mapping[AccessLevel, TableAction | GenericTableAction]]] = {
    Tabular.Kind.TABLE.value: {_READ: TableAction.READ_DATA, _WRITE: TableAction.WRITE_DATA},
    Tabular.Kind.GENERIC_TABLE.value: {_READ: GenericTableAction.READ_DATA, _WRITE: GenericTableAction.WRITE_DATA},
}
"""What a caller must be allowed, by kind and level; engines do not use the files of views."""


class SigningPlace(NamedTuple):
    """All that requests may reach. `granted` is the table, or the namespace in which the caller has staged one."""

    granted: Granted[Tabular] | Granted[Namespace]
    warehouse: Warehouse
    location: str
    may_write: bool


def warehouse(context: RequestContext, prefix: str) -> Warehouse:
    """An active one in which the caller may see something; raises as `access.warehouse`."""
    return access.warehouse(context, prefix, WarehouseAction.USE).target


def of_table(context: RequestContext, ref: TabularIdentifier, *, level: AccessLevel) -> SigningPlace:
    """Raises NoSuchTable if it is missing or hidden."""
    return _place(access.table(context, ref, TableAction.WRITE_DATA if level is _WRITE else TableAction.READ_DATA))


def of_id(context: RequestContext, prefix: str, table_id: str, *, level: AccessLevel) -> SigningPlace | None:
    """None if no table, dropped ones included, has the id, or it is hidden."""
    try:
        found = _tables().filter(warehouse_id=UUID(prefix), uuid=UUID(table_id)).first()
    except ValueError:
        return None
    hidden = NoSuchTable(f"Table does not exist: {table_id}")
    try:
        return None if found is None else _granted(context, found, level=level, hidden=hidden)
    except NoSuchTable:
        return None


def at(context: RequestContext, within: Warehouse, location: str, *, level: AccessLevel) -> SigningPlace:
    """The one whose location, present or earlier, contains `location`.

    Raises NoSuchTable if it is missing or hidden.
    """
    missing = NoSuchTable(f"There is no table at {location[:1000]}")
    places = around(location.rstrip("/"))
    found = _tables().filter(warehouse_id=within.id, location__in=places).first()
    if found is not None:
        return _granted(context, found, level=level, hidden=missing)
    reserved = occupied_locations.reserved_around(within.id, places)
    if reserved is None:
        raise missing
    if reserved.kind is occupied_locations.Kind.EARLIER:
        found = _tables().filter(id=reserved.owner).first() if reserved.owner else None
        if found is None:
            raise missing
        return _granted(context, found, level=level, hidden=missing)._replace(location=reserved.location)
    namespace = Namespace.objects.placed().filter(id=reserved.namespace).first() if reserved.namespace else None
    if namespace is None or reserved.by != context.caller.id:
        raise missing
    granted = access.granted(
        context,
        namespace,
        chain=namespace_chain(namespace),
        action=NamespaceAction.CREATE_TABLE,
        hidden=missing,
        warehouse=namespace.warehouse,
    )
    return SigningPlace(granted, namespace.warehouse, reserved.location, may_write=True)


def _tables() -> TabularQuerySet:
    return Tabular.everything.placed().filter(kind__in=list(ACTIONS))


def _granted(context: RequestContext, found: Tabular, *, level: AccessLevel, hidden: LakewardenError) -> SigningPlace:
    granted = access.granted(
        context,
        found,
        chain=tabular_chain(found),
        action=ACTIONS[found.kind][level],
        hidden=hidden,
        warehouse=found.namespace.warehouse,
    )
    return _place(granted)


def _place(granted: Granted[Tabular]) -> SigningPlace:
    found = granted.target
    may_write = found.deleted_at is None and granted.allows(ACTIONS[found.kind][_WRITE])
    return SigningPlace(granted, found.namespace.warehouse, found.location, may_write)
