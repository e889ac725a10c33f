"""Looks up and authorizes namespaces, tables, views and generic tables; nothing else returns `Granted` for them."""

from uuid import UUID

from django.db.models import QuerySet

from catalog import tabular_types
from catalog.identifiers import NamespaceIdentifier, TabularIdentifier
from catalog.models import Namespace, Tabular
from catalog.tabular_types import TabularType, type_of
from lakewarden.authz.actions import (
    NamespaceAction,
    ObjectType,
    TableAction,
    TabularAction,
    ViewAction,
    WarehouseAction,
)
from lakewarden.authz.interface import Granted, ObjectRef, T
from lakewarden.authz.model import is_allowed
from lakewarden.context import RequestContext
from lakewarden.errors import LakewardenError, NoSuchNamespace, NoSuchTable
from tenants import access as tenants_access
from tenants.access import ensure_active, warehouse_chain
from tenants.models import Warehouse


def namespace_chain(namespace: Namespace) -> list[ObjectRef]:
    above = warehouse_chain(namespace.warehouse)
    return [*above, *(ObjectRef(ObjectType.NAMESPACE, str(identifier)) for identifier in namespace.lineage)]


def tabular_chain(tabular: Tabular) -> list[ObjectRef]:
    kind = type_of(tabular).object_type
    return [*namespace_chain(tabular.namespace), ObjectRef(kind, str(tabular.id), str(tabular.uuid))]


def granted(
    context: RequestContext,
    target: T,
    *,
    chain: list[ObjectRef],
    action: NamespaceAction | TabularAction,
    hidden: LakewardenError,
    warehouse: Warehouse,
) -> Granted[T]:
    """Authorize an object in `warehouse`. Raises NoSuchWarehouse if the warehouse is inactive and the caller may see
    the object.
    """
    allowed = tenants_access.granted(
        context, target, chain=chain, action=action, hidden=hidden, project=warehouse.project
    )
    ensure_active(warehouse)
    return allowed


def warehouse(context: RequestContext, prefix: str, action: WarehouseAction) -> Granted[Warehouse]:
    """An active warehouse; raises NoSuchWarehouse if it is missing, hidden or inactive."""
    allowed = tenants_access.warehouse(context, prefix, action)
    ensure_active(allowed.target)
    return allowed


def namespace(context: RequestContext, ref: NamespaceIdentifier, action: NamespaceAction) -> Granted[Namespace]:
    """Raises NoSuchNamespace if it is missing or hidden, NoSuchWarehouse if the prefix is not a valid id."""
    missing = NoSuchNamespace(f"Namespace does not exist: {ref}")
    found = Namespace.objects.find(_warehouse_id(context, ref.warehouse), ref.path)
    if found is None:
        raise missing
    return granted(
        context, found, chain=namespace_chain(found), action=action, hidden=missing, warehouse=found.warehouse
    )


def table(context: RequestContext, ref: TabularIdentifier, action: TableAction) -> Granted[Tabular]:
    """Raises NoSuchTable if it is missing or hidden."""
    return tabular(context, ref, tabular_types.TABLE, action)


def find_table(context: RequestContext, ref: TabularIdentifier, action: TableAction) -> Granted[Tabular] | None:
    """Like `table`, but None if there is no table with this name."""
    warehouse_id = _warehouse_id(context, ref.namespace.warehouse)
    found = Tabular.objects.find(warehouse_id, ref.namespace.path, ref.name)
    return table(context, ref, action) if found is not None and found.kind == Tabular.Kind.TABLE else None


def view(context: RequestContext, ref: TabularIdentifier, action: ViewAction) -> Granted[Tabular]:
    """Raises NoSuchView if it is missing or hidden."""
    return tabular(context, ref, tabular_types.VIEW, action)


def namespace_of_id(context: RequestContext, identifier: UUID, action: NamespaceAction) -> Granted[Namespace]:
    """Like `namespace`, by id."""
    missing = NoSuchNamespace(f"Namespace does not exist: {identifier}")
    found = Namespace.objects.placed().filter(id=identifier).first()
    if found is None:
        raise missing
    return granted(
        context, found, chain=namespace_chain(found), action=action, hidden=missing, warehouse=found.warehouse
    )


def namespace_in(
    context: RequestContext, warehouse_id: str, namespace_id: str, action: NamespaceAction
) -> Granted[Namespace]:
    """The namespace with this id in a warehouse, active or not; for the management API.

    Raises NoSuchNamespace if it is missing, hidden or in another warehouse.
    """
    missing = NoSuchNamespace(f"Namespace does not exist: {namespace_id}")
    place = _ids(warehouse_id, namespace_id)
    rows = Namespace.objects.placed()
    found = rows.filter(warehouse_id=place[0], id=place[1]).first() if place else None
    if found is None:
        _note_foreign(context, Namespace.objects.all(), place, "namespace", action)
        raise missing
    return tenants_access.granted(
        context, found, chain=namespace_chain(found), action=action, hidden=missing, project=found.warehouse.project
    )


def namespace_anywhere(context: RequestContext, namespace_id: str, action: NamespaceAction) -> Granted[Namespace]:
    """Like `namespace_in`, in any warehouse."""
    identifier = _ids(namespace_id, namespace_id)
    row = (
        Namespace.objects.filter(id=identifier[0]).values_list("warehouse_id", flat=True).first()
        if identifier
        else None
    )
    return namespace_in(context, str(row), namespace_id, action)


def dropped_namespace_in(
    context: RequestContext, warehouse_id: str, namespace_id: str, action: NamespaceAction
) -> Granted[Namespace]:
    """Like `namespace_in`, for a dropped namespace that can be restored.

    Raises NoSuchNamespace if it is not dropped.
    """
    missing = NoSuchNamespace(f"No dropped namespace {namespace_id} can be restored")
    place = _ids(warehouse_id, namespace_id)
    rows = Namespace.everything.filter(deletion__isnull=False).placed().select_related("deletion")
    found = rows.filter(warehouse_id=place[0], id=place[1]).first() if place else None
    if found is None:
        _note_foreign(context, Namespace.everything.all(), place, "namespace", action)
        raise missing
    return tenants_access.granted(
        context, found, chain=namespace_chain(found), action=action, hidden=missing, project=found.warehouse.project
    )


def dropped_tabular_in(
    context: RequestContext, warehouse_id: str, kind: TabularType, tabular_id: str, action: TabularAction
) -> Granted[Tabular]:
    """Like `dropped_namespace_in`, for a table, view or generic table; raises the type's own 404."""
    missing = kind.missing(f"No dropped {kind.word} {tabular_id} can be restored")
    place = _ids(warehouse_id, tabular_id)
    rows = Tabular.everything.filter(deletion__isnull=False, kind=kind.kind)
    rows = rows.placed().select_related("deletion")
    found = rows.filter(warehouse_id=place[0], uuid=place[1]).first() if place else None
    if found is None:
        _note_foreign(context, Tabular.everything.filter(kind=kind.kind), place, kind.kind.value, action)
        raise missing
    return tenants_access.granted(
        context,
        found,
        chain=tabular_chain(found),
        action=action,
        hidden=missing,
        project=found.namespace.warehouse.project,
    )


def may_see(context: RequestContext, tabular: Tabular) -> bool:
    """Whether lists show it to the caller; its namespace, warehouse and project must be loaded."""
    held = tenants_access.privileges(context, chain=tabular_chain(tabular), project=tabular.namespace.warehouse.project)
    return is_allowed(type_of(tabular).actions.INCLUDE_IN_LIST, held)


def tabular_of_id(context: RequestContext, warehouse_id: str, tabular_id: str) -> Granted[Tabular]:
    """The one with this id in a warehouse, if the caller may read its metadata. Raises NoSuchTable."""
    missing = NoSuchTable(f"Table does not exist: {tabular_id}")
    place = _ids(warehouse_id, tabular_id)
    rows = Tabular.objects.placed()
    found = rows.filter(warehouse_id=place[0], uuid=place[1]).first() if place else None
    if found is None:
        raise missing
    return granted(
        context,
        found,
        chain=tabular_chain(found),
        action=type_of(found).actions.GET_METADATA,
        hidden=missing,
        warehouse=found.namespace.warehouse,
    )


def tabular(
    context: RequestContext, ref: TabularIdentifier, kind: TabularType, action: TabularAction
) -> Granted[Tabular]:
    """Raises the type's own 404 if it is missing, hidden, or of another type."""
    missing = kind.not_there(ref)
    warehouse_id = _warehouse_id(context, ref.namespace.warehouse)
    found = Tabular.objects.find(warehouse_id, ref.namespace.path, ref.name)
    if found is None or found.kind != kind.kind:
        raise missing
    return granted(
        context,
        found,
        chain=tabular_chain(found),
        action=action,
        hidden=missing,
        warehouse=found.namespace.warehouse,
    )


def tabular_in(
    context: RequestContext, warehouse_id: str, kind: TabularType, tabular_id: str, action: TabularAction
) -> Granted[Tabular]:
    """The one with this id in a warehouse, active or not; for the management API.

    Raises the type's own 404 if it is missing, hidden, of another type or elsewhere.
    """
    missing, place = kind.not_there(tabular_id), _ids(warehouse_id, tabular_id)
    rows = Tabular.objects.placed().filter(kind=kind.kind)
    found = rows.filter(warehouse_id=place[0], uuid=place[1]).first() if place else None
    if found is None:
        _note_foreign(context, Tabular.objects.filter(kind=kind.kind), place, kind.kind.value, action)
        raise missing
    return tenants_access.granted(
        context,
        found,
        chain=tabular_chain(found),
        action=action,
        hidden=missing,
        project=found.namespace.warehouse.project,
    )


def _note_foreign(
    context: RequestContext,
    rows: QuerySet[Namespace] | QuerySet[Tabular],
    place: tuple[UUID, UUID] | None,
    kind: str,
    action: NamespaceAction | TabularAction,
) -> None:
    """Note for the audit of another project that its object was named in a request about this warehouse."""
    if place is None:
        return
    named = {"id" if rows.model is Namespace else "uuid": place[1]}
    own = Warehouse.objects.filter(id=place[0]).values_list("project_id", flat=True).first()
    for project_id in rows.filter(**named).values_list("warehouse__project_id", flat=True):
        if project_id != own:
            tenants_access.note_foreign(context, action.value, kind, str(place[1]), project_id=project_id)


def _ids(warehouse_id: str, object_id: str) -> tuple[UUID, UUID] | None:
    """Both as UUIDs; None if one is not valid, so the object cannot exist."""
    try:
        return UUID(warehouse_id), UUID(object_id)
    except ValueError:
        return None


def _warehouse_id(context: RequestContext, prefix: str) -> UUID:
    """The warehouse id in a URL. Raises NoSuchWarehouse for a prefix that is not a valid id."""
    try:
        return UUID(prefix)
    except ValueError:
        return tenants_access.warehouse(context, prefix, WarehouseAction.USE).target.id
