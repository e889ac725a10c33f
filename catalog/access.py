"""Looks up and authorizes namespaces, tables and views; the only way to a `Granted` one."""

from uuid import UUID

from catalog.models import Namespace, Tabular
from catalog.refs import NamespaceRef, TabularRef
from lakewarden.authz.actions import (
    NamespaceAction,
    ObjectType,
    TableAction,
    ViewAction,
    WarehouseAction,
)
from lakewarden.authz.interface import Granted, ObjectRef
from lakewarden.context import RequestContext
from lakewarden.errors import LakewardenError, NoSuchNamespace, NoSuchTable, NoSuchView
from tenants import access as tenants_access
from tenants.access import granted, warehouse_chain
from tenants.models import Warehouse


def namespace_chain(namespace: Namespace) -> list[ObjectRef]:
    above = warehouse_chain(namespace.warehouse)
    return [*above, *(ObjectRef(ObjectType.NAMESPACE, str(identifier)) for identifier in namespace.lineage)]


def tabular_chain(tabular: Tabular) -> list[ObjectRef]:
    kind = ObjectType.TABLE if tabular.kind == Tabular.Kind.TABLE else ObjectType.VIEW
    return [*namespace_chain(tabular.namespace), ObjectRef(kind, str(tabular.id))]


def warehouse(context: RequestContext, prefix: str, action: WarehouseAction) -> Granted[Warehouse]:
    return tenants_access.warehouse(context, prefix, action)


def namespace(context: RequestContext, ref: NamespaceRef, action: NamespaceAction) -> Granted[Namespace]:
    """Raises NoSuchNamespace when it is missing or hidden, NoSuchWarehouse when the prefix is no id."""
    missing = NoSuchNamespace(f"Namespace does not exist: {ref}")
    found = Namespace.objects.find(_warehouse_id(context, ref.warehouse), ref.path)
    if found is None:
        raise missing
    return granted(
        context, found, chain=namespace_chain(found), action=action, hidden=missing, project=found.warehouse.project
    )


def table(context: RequestContext, ref: TabularRef, action: TableAction) -> Granted[Tabular]:
    """Raises NoSuchTable when it is missing or hidden."""
    missing = NoSuchTable(f"Table does not exist: {ref}")
    return _tabular(context, ref, Tabular.Kind.TABLE, action, missing)


def find_table(context: RequestContext, ref: TabularRef, action: TableAction) -> Granted[Tabular] | None:
    """As `table`, but None when there is none of the name (or a view has it)."""
    warehouse_id = _warehouse_id(context, ref.namespace.warehouse)
    found = Tabular.objects.find(warehouse_id, ref.namespace.path, ref.name)
    return table(context, ref, action) if found is not None and found.kind == Tabular.Kind.TABLE else None


def view(context: RequestContext, ref: TabularRef, action: ViewAction) -> Granted[Tabular]:
    """Raises NoSuchView when it is missing or hidden."""
    missing = NoSuchView(f"View does not exist: {ref}")
    return _tabular(context, ref, Tabular.Kind.VIEW, action, missing)


def namespace_of_id(context: RequestContext, identifier: UUID, action: NamespaceAction) -> Granted[Namespace]:
    """As `namespace`, by the id that is never reused."""
    missing = NoSuchNamespace(f"Namespace does not exist: {identifier}")
    found = Namespace.objects.select_related("warehouse__project").filter(id=identifier).first()
    if found is None:
        raise missing
    return granted(
        context, found, chain=namespace_chain(found), action=action, hidden=missing, project=found.warehouse.project
    )


def tabular_of_id(context: RequestContext, identifier: UUID) -> Granted[Tabular]:
    """A table or view whose metadata the caller may see, by the id that is never reused."""
    missing = NoSuchTable(f"Table does not exist: {identifier}")
    found = Tabular.objects.live().select_related("namespace__warehouse__project").filter(id=identifier).first()
    if found is None:
        raise missing
    action = TableAction.GET_METADATA if found.kind == Tabular.Kind.TABLE else ViewAction.GET_METADATA
    return granted(
        context,
        found,
        chain=tabular_chain(found),
        action=action,
        hidden=missing,
        project=found.namespace.warehouse.project,
    )


def _tabular(
    context: RequestContext,
    ref: TabularRef,
    kind: Tabular.Kind,
    action: TableAction | ViewAction,
    missing: LakewardenError,
) -> Granted[Tabular]:
    warehouse_id = _warehouse_id(context, ref.namespace.warehouse)
    found = Tabular.objects.find(warehouse_id, ref.namespace.path, ref.name)
    if found is None or found.kind != kind:
        raise missing
    return granted(
        context,
        found,
        chain=tabular_chain(found),
        action=action,
        hidden=missing,
        project=found.namespace.warehouse.project,
    )


def _warehouse_id(context: RequestContext, prefix: str) -> UUID:
    """The id in a URL; a prefix that is no id is answered like a warehouse that does not exist."""
    try:
        return UUID(prefix)
    except ValueError:
        return tenants_access.warehouse(context, prefix, WarehouseAction.USE).target.id
