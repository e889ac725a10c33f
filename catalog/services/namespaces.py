"""Namespaces: create, list, change. `deletion.drop_namespace` drops them."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from django.db import IntegrityError
from django.db.models import F
from django.utils import timezone

from catalog.access import namespace_chain
from catalog.models import Namespace
from catalog.models.namespace import MAX_PATH_BYTES, ListedNamespace, path_key
from catalog.services import limits, locations
from catalog.services.location_claims import NamespaceClaim
from lakewarden import quotas
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants as ledger
from lakewarden.db_transaction import changing
from lakewarden.errors import (
    AlreadyExists,
    InvalidArgument,
    NoSuchNamespace,
    Unavailable,
    Unprocessable,
)
from lakewarden.events.change_recording import Change, record
from lakewarden.ids import new_id
from lakewarden.names import MAX_DEPTH, check_name, match_key
from lakewarden.paging import Page
from lakewarden.prepared_statements import fetch
from tenants import access
from tenants.models import Warehouse
from tenants.models.warehouse import CONTRACTS, LOCATION_KEPT

TREE_LOCK = 0x10C9
_PLACE = f"""
    select path, path_key, lineage, {CONTRACTS.format(warehouse="namespace.warehouse_id")}
    from namespace where id = %s and deleted_at is null
"""  # noqa: S608 text of our own
_EXCLUSIVE = "select pg_advisory_xact_lock(%s::int, %s::int)"
_SHARED = "select pg_advisory_xact_lock_shared(%s::int, %s::int)"


def create(
    parent: Granted[Warehouse] | Granted[Namespace], path: Sequence[str], properties: Mapping[str, str]
) -> Namespace:
    """Create the namespace `path`, whose parent (or warehouse, for a top one) is granted.

    The caller becomes its owner. Its property `location`, below which its tables will be, is the one given or a
    generated one, and cannot be changed. Raises InvalidArgument for an invalid name or a location outside the
    warehouse, AlreadyExists when the name (without regard to case) or the location is taken.
    """
    check_path(path)
    check_properties(properties)
    limits.check_namespace(properties, before={})
    above = parent.target if isinstance(parent.target, Namespace) else None
    warehouse = above.warehouse if above else parent.target
    assert isinstance(warehouse, Warehouse)  # noqa: S101 the other half of the union
    if not has_room(warehouse):
        rows = Namespace.everything.filter(warehouse_id=warehouse.id)
        quotas.ensure_room("namespaces_in_warehouse", rows, within=str(warehouse.id))
    identifier = new_id()
    given = properties.get("location")
    if given:
        location = locations.inside(warehouse, given)
    else:
        location = locations.namespace_location(warehouse, above, path[-1], identifier)
    is_chosen = bool(given) or not warehouse.profile.layout.has_own_folders
    claim = NamespaceClaim(
        warehouse=warehouse,
        location=location,
        lineage=above.lineage if above else (),
        by=parent.context.caller.id,
    )
    if is_chosen:
        claim.check()
    namespace = Namespace(
        id=identifier,
        warehouse=warehouse,
        parent=above,
        path=[path[-1]],
        path_key=path_key(path),
        name_key=match_key(path[-1]),
        lineage=[identifier],
        properties={**properties, "location": location},
    )
    try:
        with changing():
            if above is None:
                _hold_top(warehouse)
            else:
                hold_place(above)
                if above.path_key != path_key(path[:-1]):  # it has moved since it was looked up
                    raise NoSuchNamespace(f"Namespace does not exist: {'.'.join(path[:-1])}")
                namespace.path, namespace.lineage = [*above.path, path[-1]], [*above.lineage, identifier]
            if is_chosen:
                claim.take(identifier)
            namespace.save(force_insert=True)
            ledger.give_creator(namespace_chain(namespace), parent.context.caller)
            record(change_of("createNamespace", namespace), parent.context)
    except IntegrityError as error:
        if "foreign key" in str(error):
            raise NoSuchNamespace(f"Namespace does not exist: {'.'.join(path[:-1])}") from error
        raise AlreadyExists(f"Namespace already exists: {'.'.join(path)}") from error
    return namespace


def has_room(warehouse: Warehouse) -> bool:
    """Use up one place of the quota, if this process knows without counting that there is one."""
    return quotas.take_room("namespaces_in_warehouse", within=str(warehouse.id))


def lock_tree(warehouse_id: UUID, *, exclusive: bool) -> None:
    """Prevent changes of the paths of a warehouse's namespaces until the transaction ends.

    Every change that stores a path or a lineage shares the lock; a move, which changes those of everything below, takes
    it exclusively.
    """
    fetch(_EXCLUSIVE if exclusive else _SHARED, [TREE_LOCK, tree_of(warehouse_id)])


def tree_of(warehouse_id: UUID) -> int:
    """The second key of the advisory lock of a warehouse's tree; the first is TREE_LOCK."""
    return zlib.crc32(warehouse_id.bytes) - (1 << 31)


def hold_place(namespace: Namespace, *, is_judged: bool = False) -> None:
    """Read the current path of the namespace, and prevent its change until the transaction ends.

    `is_judged`: the data contracts that apply in it were asked. Raises NoSuchNamespace, and Unavailable if one of them
    was changed since then.
    """
    lock_tree(namespace.warehouse_id, exclusive=False)
    rows = fetch(_PLACE, [namespace.id])
    if not rows:
        raise NoSuchNamespace(f"Namespace does not exist: {namespace}")
    namespace.path, namespace.path_key, namespace.lineage, contracts = rows[0]
    if is_judged and contracts != namespace.warehouse.contracts:
        raise Unavailable("A data contract was changed in the meantime; nothing was changed. Try again")


def _hold_top(warehouse: Warehouse) -> None:
    """As `hold_place`, for a new top-level namespace: an empty warehouse may get another base path meanwhile."""
    lock_tree(warehouse.id, exclusive=False)
    found = fetch(LOCATION_KEPT, [warehouse.id])
    if found and found != [(warehouse.location,)]:
        raise Unavailable(f"The warehouse {warehouse} was changed in the meantime; nothing was changed. Try again")


def children(parent: Granted[Warehouse] | Granted[Namespace], page: Page) -> tuple[list[ListedNamespace], str | None]:
    """The direct children, and the key behind which the next page starts (None: no more)."""
    above = parent.target if isinstance(parent.target, Namespace) else None
    warehouse = above.warehouse if above else parent.target
    assert isinstance(warehouse, Warehouse)  # noqa: S101 the other half of the union
    everything = NamespaceAction.LIST_EVERYTHING if above else WarehouseAction.LIST_EVERYTHING
    found = Namespace.objects.listed(
        warehouse.id,
        above.id if above else None,
        after=page.after or "",
        limit=page.limit,
        shown_to=access.shown_to(parent, everything, warehouse.project),
    )
    return page.cut(found)


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """What becomes of a namespace's properties; `told` is what the event says about it."""

    after: dict[str, str]
    told: dict[str, list[str]]
    missing: list[str]

    @classmethod
    def of(
        cls, namespace: Namespace, before: Mapping[str, str], *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> Self:
        """Raises Unprocessable when a key is in both lists, InvalidArgument for what cannot be stored or changed."""
        both = sorted(set(removals) & set(updates))
        if both:
            raise Unprocessable(f"Invalid property changes: {', '.join(both)} is both removed and updated")
        check_properties(updates)
        fixed = before.get("location")
        if "location" in removals or updates.get("location", fixed) != fixed:
            raise InvalidArgument(f"The location of namespace {namespace} cannot be changed or removed: it is {fixed}")
        asked = dict.fromkeys(removals)
        removed = [key for key in asked if key in before]
        after = {**{key: value for key, value in before.items() if key not in asked}, **updates}
        limits.check_namespace(after, before=before)
        missing = [key for key in asked if key not in before]
        return cls(after, {"updated": list(updates), "removed": removed}, missing)

    @property
    def answer(self) -> dict[str, list[str]]:
        return {**self.told, "missing": self.missing}


def update_properties(
    granted: Granted[Namespace], *, removals: Sequence[str], updates: Mapping[str, str]
) -> dict[str, list[str]]:
    """Remove and set properties; returns the keys `updated`, `removed` and `missing` (to be removed, but not set).

    Raises Unprocessable when a key is in both lists.
    """
    with changing():
        namespace = Namespace.objects.select_for_update(of=("self",)).filter(id=granted.target.id).first()
        if namespace is None:
            raise NoSuchNamespace(f"Namespace does not exist: {granted.target}")
        change = PropertyChange.of(granted.target, namespace.properties, removals=removals, updates=updates)
        namespace.properties = change.after
        namespace.version = F("version") + 1
        namespace.updated_at = timezone.now()
        namespace.save(update_fields=["properties", "version", "updated_at"])
        record(change_of("updateNamespaceProperties", granted.target, **change.told), granted.context)
    return change.answer


def check_properties(properties: Mapping[str, str]) -> None:
    """Raises InvalidArgument for text that the database cannot store."""
    for key, value in properties.items():
        if "\x00" in key or "\x00" in value:
            raise InvalidArgument(f"Invalid property {key!r}: the character U+0000 cannot be stored")


def check_path(path: Sequence[str]) -> None:
    if not path:
        raise InvalidArgument("Invalid namespace: the list of names is empty")
    if len(path) > MAX_DEPTH:
        raise InvalidArgument(f"Invalid namespace: {len(path)} levels, at most {MAX_DEPTH} are allowed")
    for name in path:
        check_name(name, what="namespace")
    if len(path_key(path).encode()) > MAX_PATH_BYTES:
        raise InvalidArgument(f"Invalid namespace: its names are longer than {MAX_PATH_BYTES} bytes together")


def change_of(kind: str, namespace: Namespace, **data: object) -> Change:
    """The audit entry and event of a change of `namespace`."""
    plain = {"namespace": namespace.path, "warehouse-id": str(namespace.warehouse_id), **data}
    return Change(kind, "namespace", str(namespace.id), namespace.warehouse.project_id, plain)
