"""Looks up and authorizes on the event loop, for hot writes, where `access` would say yes.

None stands for everything else: missing, hidden, forbidden, inactive; `access` finds that again and refuses it. A
decision that is not known at this epoch is made in a thread, once for all requests that wait for it. One query, which
requests that wait at the same time share, finds the row and the versions of what it lies in: namespaces, warehouses and
projects of exactly these versions are made once, and shared. Nobody may change them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic
from uuid import UUID

from cachetools import TTLCache

from catalog.access import namespace_chain
from catalog.models import Namespace, Tabular
from catalog.models.namespace import COLUMNS, namespace_of
from catalog.models.tabular import TABULAR
from catalog.tabular_types import TabularType
from lakewarden.authz.actions import Action, NamespaceAction, TabularAction, WarehouseAction
from lakewarden.authz.authorize import authorize
from lakewarden.authz.decision_cache import HELD_PRIVILEGES, Epoch
from lakewarden.authz.interface import Granted, ObjectRef, T
from lakewarden.authz.model import Privilege, is_allowed
from lakewarden.context import RequestContext
from lakewarden.errors import LakewardenError, NotFound, Unavailable
from lakewarden.hot.coalescer import Coalescer
from lakewarden.hot.sessions import Row
from lakewarden.hot.shared_builds import SharedBuilds
from lakewarden.http.request_threads import ask
from lakewarden.idempotency.outcomes import IS_USED
from tenants.access import privileges, warehouse_chain
from tenants.models import Project, Warehouse
from tenants.models.warehouse import PROJECT, WAREHOUSE, WITH_PROJECT, warehouse_of

_CAPACITY: Final = 10_000
_LIFETIME_S: Final = 600
"""A row's version is its `xmin`, which can be the same again after very many transactions; hence a limited lifetime."""

_NAMESPACE_VERSION: Final = "concat_ws(' ', n.xmin, w.xmin, p.xmin)"
_WAREHOUSE_VERSION: Final = "concat_ws(' ', w.xmin, p.xmin)"
# an inactive warehouse is not found: Django handles the request and returns the error
_IS_ACTIVE: Final = "w.status = 'active'"
_USED: Final = IS_USED.format(principal="k.principal", key="k.key")


@dataclass(frozen=True, slots=True)
class _Place(Generic[T]):
    """The objects that contain an object, for these versions of their rows."""

    version: str
    target: T
    project: Project
    chain: tuple[ObjectRef, ...]


class _Places(Generic[T]):
    """Belongs to one event loop."""

    def __init__(self, whole: Coalescer, make: Callable[[Sequence[Any]], tuple[T, Project, list[ObjectRef]]]) -> None:
        self._whole = whole
        self._make = make
        self._kept: TTLCache[UUID, _Place[T]] = TTLCache(_CAPACITY, ttl=_LIFETIME_S)

    async def find(self, identifier: UUID, version: str) -> _Place[T] | None:
        """The one of exactly this version; None when it has changed meanwhile."""
        kept = self._kept.get(identifier)
        if kept is None or kept.version != version:
            row = await self._whole.find((identifier,))
            if row is None:
                return None
            target, project, chain = self._make(row[1:])
            kept = self._kept[identifier] = _Place(row[0], target, project, tuple(chain))
        return kept if kept.version == version else None


def _namespace(values: Sequence[Any]) -> tuple[Namespace, Project, list[ObjectRef]]:
    found = namespace_of(values)
    return found, found.warehouse.project, namespace_chain(found)


def _warehouse(values: Sequence[Any]) -> tuple[Warehouse, Project, list[ObjectRef]]:
    found = warehouse_of(values)
    return found, found.project, warehouse_chain(found)


_NAMESPACES: Final = _Places(
    Coalescer(f"""
        select k.i, {_NAMESPACE_VERSION}, {COLUMNS}
        from unnest(%s::uuid[]) with ordinality as k(id, i)
        join namespace n on n.id = k.id and n.deleted_at is null
        join {WITH_PROJECT} on w.id = n.warehouse_id and {_IS_ACTIVE}
    """),  # noqa: S608 names of our own columns
    _namespace,
)
_WAREHOUSES: Final = _Places(
    Coalescer(f"""
        select k.i, {_WAREHOUSE_VERSION}, {WAREHOUSE.columns}, {PROJECT.columns}
        from unnest(%s::uuid[]) with ordinality as k(id, i) join {WITH_PROJECT} on w.id = k.id and {_IS_ACTIVE}
    """),  # noqa: S608 names of our own columns
    _warehouse,
)

# (warehouse id, namespace's path key, name key, principal, idempotency key) → whether the key was used, namespace's id,
# its version, columns of the table or view
_FIND_TABULAR: Final = Coalescer(f"""
    select k.i, {_USED}, n.id, {_NAMESPACE_VERSION}, {TABULAR.columns}
    from unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::uuid[])
        with ordinality as k(warehouse, path, name, principal, key, i)
    join namespace n on n.warehouse_id = k.warehouse and n.path_key = k.path and n.deleted_at is null
    join {WITH_PROJECT} on w.id = n.warehouse_id and {_IS_ACTIVE}
    join tabular t on t.namespace_id = n.id and t.name_key = k.name and t.deleted_at is null
""")  # noqa: S608 names of our own columns

# (warehouse id, namespace's path key, name key, principal, idempotency key)
# → whether the key was used, id, version, whether a table or view in it has this name
_FIND_NAMESPACE: Final = Coalescer(f"""
    select k.i, {_USED}, n.id, {_NAMESPACE_VERSION}, exists (
        select from tabular t where t.namespace_id = n.id and t.name_key = k.name and t.deleted_at is null
    )
    from unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::uuid[])
        with ordinality as k(warehouse, path, name, principal, key, i)
    join namespace n on n.warehouse_id = k.warehouse and n.path_key = k.path and n.deleted_at is null
    join {WITH_PROJECT} on w.id = n.warehouse_id and {_IS_ACTIVE}
""")  # noqa: S608 names of our own columns

# (warehouse id, principal, idempotency key) → whether the key was used, id, version
_FIND_WAREHOUSE: Final = Coalescer(f"""
    select k.i, {_USED}, w.id, {_WAREHOUSE_VERSION}
    from unnest(%s::uuid[], %s::text[], %s::uuid[]) with ordinality as k(warehouse, principal, key, i)
    join {WITH_PROJECT} on w.id = k.warehouse and {_IS_ACTIVE}
""")  # noqa: S608 names of our own columns


async def tabular(
    context: RequestContext,
    warehouse_id: UUID,
    path_key: str,
    name_key: str,
    *,
    kind: TabularType,
    action: TabularAction,
) -> Granted[Tabular] | None:
    row = await _find(_FIND_TABULAR, context, warehouse_id, path_key, name_key)
    place = row and await _NAMESPACES.find(row[0], row[1])
    if not row or not place:
        return None
    found = TABULAR.instance(row[2:])
    if found.kind != kind.kind:
        return None
    found.namespace = place.target
    chain = (*place.chain, ObjectRef(kind.object_type, str(found.id), str(found.uuid)))
    return await _granted(context, found, place.project, chain, action)


async def namespace(
    context: RequestContext, warehouse_id: UUID, path_key: str, *, action: NamespaceAction
) -> Granted[Namespace] | None:
    """One whose properties have been read, too: None when they are large."""
    found = await namespace_for(context, warehouse_id, path_key, name=None, action=action)
    return None if found is None else found[0]


async def namespace_for(
    context: RequestContext, warehouse_id: UUID, path_key: str, *, name: str | None, action: NamespaceAction
) -> tuple[Granted[Namespace], bool] | None:
    """As `namespace`, and whether something in it has this name key, which only callers with the grant may know."""
    row = await _find(_FIND_NAMESPACE, context, warehouse_id, path_key, name)
    place = row and await _NAMESPACES.find(row[0], row[1])
    if not row or not place or place.target.get_deferred_fields():
        return None
    granted = await _granted(context, place.target, place.project, place.chain, action)
    return None if granted is None else (granted, row[2])


async def warehouse(
    context: RequestContext, warehouse_id: UUID, *, action: WarehouseAction
) -> Granted[Warehouse] | None:
    row = await _find(_FIND_WAREHOUSE, context, warehouse_id)
    place = row and await _WAREHOUSES.find(*row)
    return await _granted(context, place.target, place.project, place.chain, action) if place else None


async def _find(coalescer: Coalescer, context: RequestContext, *key: object) -> Row | None:
    """The key's row, unless the request's idempotency key was used before: that is to be answered as then."""
    asked = context.idempotency
    own = (None, None) if asked is None else (context.caller.id, asked.key)
    row = await coalescer.find((*key, *own))
    return None if row is None or row[0] else row[1:]


async def _granted(
    context: RequestContext, target: T, project: Project, chain: Sequence[ObjectRef], action: Action
) -> Granted[T] | None:
    known = context.caller.key, chain[-1].id, Epoch(project.id, project.authz_epoch)
    held = HELD_PRIVILEGES.find(*known)
    if held is None:
        # each request for itself would go through Django, and at one table they would all wait for its row
        held = await _DECISIONS.share(known, lambda: _decided(context, project, chain))
    if held is None or not is_allowed(action, held):
        return None
    return authorize(context, target, held, chain=chain, action=action, hidden=NotFound("not found"))


async def _decided(
    context: RequestContext, project: Project, chain: Sequence[ObjectRef]
) -> frozenset[Privilege] | None:
    """What the caller holds, as `access` finds it; None for what `access` refuses. Raises Unavailable."""
    try:
        return await ask(context.caller.id, lambda: privileges(context, chain=list(chain), project=project))
    except Unavailable:
        raise
    except LakewardenError:
        return None


_DECISIONS: Final[SharedBuilds[frozenset[Privilege] | None]] = SharedBuilds()
