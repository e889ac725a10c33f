"""Lists dropped objects that can be restored, the newest drops first."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from lakewarden.authz.actions import ObjectType, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import visible_objects
from lakewarden.errors import BadRequest
from lakewarden.paging import Page
from lakewarden.prepared_statements import fetch
from tenants import access
from tenants.models import Warehouse


class DeletedObject(NamedTuple):
    """`time_left_s` is 0 for one that has expired and waits for its removal.

    `dropped_with` is the id of the namespace with which it was dropped, if it was not dropped by itself.
    """

    id: UUID
    name: str
    namespace: list[str]
    kind: str
    created_at: datetime
    deleted_at: datetime
    expires_at: datetime
    time_left_s: int
    warehouse_id: UUID
    deleted_by: str
    dropped_with: UUID | None


Listed = tuple[list[DeletedObject], str | None]


def tabulars(granted: Granted[Warehouse], page: Page, *, namespace_id: UUID | None) -> Listed:
    """Tables and views of a warehouse (of a namespace in it), and the key behind which the next page starts.

    Callers who may not list all of them get those on which, or on whose namespaces, they have a right.
    """
    return _listed(_TABULARS, granted, page, namespace=namespace_id)


def namespaces(granted: Granted[Warehouse], page: Page) -> Listed:
    """As `tabulars`, for namespaces that were dropped by themselves, not with another one."""
    return _listed(_NAMESPACES, granted, page)


def _listed(query: str, granted: Granted[Warehouse], page: Page, **more: UUID | None) -> Listed:
    warehouse = granted.target
    shown_to = access.shown_to(granted, WarehouseAction.LIST_DELETED_TABULARS, warehouse.project)
    at, identifier = _behind(page.after)
    parameters = {
        "warehouse": warehouse.id,
        "at": at,
        "id": identifier,
        "limit": page.limit,
        "everything": shown_to is None,
        "principals": list(shown_to or ()),
        "on_namespaces": visible_objects.SHOWING_BELOW,
        "on_tables": visible_objects.SHOWING[ObjectType.TABLE.value],
        **more,
    }
    found = [DeletedObject(*row) for row in fetch(query, parameters)]
    return page.cut([(each, f"{each.deleted_at.isoformat()}/{each.id}") for each in found])


def _behind(key: str | None) -> tuple[datetime | None, UUID | None]:
    if key is None:
        return None, None
    at, _, identifier = key.partition("/")
    try:
        return datetime.fromisoformat(at), UUID(identifier)
    except ValueError:
        raise BadRequest("Invalid pageToken: it was not issued for this list") from None


_TIMES = "d.deleted_at, d.expires_at, greatest(ceil(extract(epoch from d.expires_at - now())), 0)::bigint"
_IN_NAMESPACES = """
    (g.object_type = 'namespace' and g.object_id = any(n.lineage::text[])
     and g.privilege = any(%(on_namespaces)s::text[]))
"""
_TABULARS = f"""
    select t.uuid, t.name, n.path, t.kind, t.created_at, {_TIMES}, t.warehouse_id, d.deleted_by,
           case when d.object_type = 'namespace' then d.object_id end
    from tabular t join deletion d on d.id = t.deletion_id join namespace n on n.id = t.namespace_id
    where t.warehouse_id = %(warehouse)s and t.deleted_at is not null and not d.is_final
        and (%(namespace)s::uuid is null or t.namespace_id = %(namespace)s::uuid)
        and (%(at)s::timestamptz is null or (t.deleted_at, t.uuid) < (%(at)s::timestamptz, %(id)s::uuid))
        and (%(everything)s or exists (
            select 1 from ({visible_objects.GRANTED}) g where (
                (g.object_type = t.kind and g.object_id = t.id::text and g.privilege = any(%(on_tables)s::text[]))
                or {_IN_NAMESPACES})))
    order by t.deleted_at desc, t.uuid desc limit %(limit)s
"""  # noqa: S608 text of our own
_NAMESPACES = f"""
    select n.id, n.path[cardinality(n.path)], n.path[:cardinality(n.path) - 1], 'namespace', n.created_at, {_TIMES},
           n.warehouse_id, d.deleted_by, null::uuid
    from deletion d join namespace n on n.id = d.object_id
    where d.warehouse_id = %(warehouse)s and d.object_type = 'namespace' and not d.is_final
        and (%(at)s::timestamptz is null or (d.deleted_at, n.id) < (%(at)s::timestamptz, %(id)s::uuid))
        and (%(everything)s or exists (
            select 1 from ({visible_objects.GRANTED}) g where {_IN_NAMESPACES}))
    order by d.deleted_at desc, n.id desc limit %(limit)s
"""  # noqa: S608 text of our own
