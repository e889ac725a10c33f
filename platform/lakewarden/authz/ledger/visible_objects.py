"""Which objects lists show to somebody who does not see everything: those with a right of theirs on or in them.

Texts of sub-selects for the queries of models; one query filters a whole page, however many objects there are.
`principals` are the ids of the caller and of all their roles (`Authorizer.principals`).

What lies in an object has ancestors that begin with the object's own path: one range of the index
`authz_grant_within`. Its direct children are found by leaping from one to the next, so that a child with a million
grants in it costs no more than one with a single grant.
"""

from typing import Final

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.model import GRANTABLE, Level, Privilege, effective

# ids are hexadecimal: `g` comes behind all of them, in every collation
_LEAPS: Final = """
    with recursive place as materialized (select {place} as path), found(principal, path) as (
        select p.id, (
            select g.ancestors from authz_grant g
            where g.principal_id = p.id and g.ancestors > place.path and g.ancestors < array_append(place.path, 'g')
            order by g.ancestors limit 1
        )
        from unnest(%(principals)s::text[]) as p(id), place
        union all
        select f.principal, (
            select g.ancestors from authz_grant g
            where g.principal_id = f.principal
              and g.ancestors > array_append(f.path[:cardinality(place.path) + 1], 'g')
              and g.ancestors < array_append(place.path, 'g')
            order by g.ancestors limit 1
        )
        from found f, place where f.path is not null
    )
    select f.path[cardinality(place.path) + 1]::uuid from found f, place where f.path is not null
    union all
    select g.object_id::uuid from place cross join authz_grant g
    where g.principal_id = any(%(principals)s::text[]) and g.ancestors = place.path and g.object_type = '{kind}'
"""
_NAMESPACE: Final = """
    (select array[w.project_id, w.id::text] || n.lineage::text[]
     from namespace n join warehouse w on w.id = n.warehouse_id where n.id = %(within)s::text::uuid)
"""
_WAREHOUSE: Final = "(select array[w.project_id, w.id::text] from warehouse w where w.id = %(within)s::text::uuid)"

TABULARS: Final = f"""
    select g.object_id::uuid from authz_grant g
    where g.principal_id = any(%(principals)s::text[]) and g.ancestors = {_NAMESPACE}
      and g.object_type = %(kind)s and g.privilege = any(%(showing)s::text[])
"""  # noqa: S608 text of our own
"""Ids of tables or views (`kind`) in the namespace `within`; `showing` is SHOWING of the kind."""

NAMESPACES: Final = _LEAPS.format(place=f"coalesce({_NAMESPACE}, {_WAREHOUSE})", kind="namespace")
"""Ids of the direct children of the warehouse or namespace `within`."""

# one leap for each namespace in which something is granted
ALL_NAMESPACES: Final = f"""
    with recursive place as materialized (select {_WAREHOUSE} as path), found(principal, path) as (
        select p.id, (
            select g.ancestors from authz_grant g
            where g.principal_id = p.id and g.ancestors >= place.path and g.ancestors < array_append(place.path, 'g')
            order by g.ancestors limit 1
        )
        from unnest(%(principals)s::text[]) as p(id), place
        union all
        select f.principal, (
            select g.ancestors from authz_grant g
            where g.principal_id = f.principal and g.ancestors > f.path
              and g.ancestors < array_append(place.path, 'g')
            order by g.ancestors limit 1
        )
        from found f, place where f.path is not null
    ), own as materialized (
        select g.object_id::uuid as id, g.privilege from found f join authz_grant g
            on g.principal_id = f.principal and g.ancestors = f.path and g.object_type = 'namespace'
    )
    select way.id::uuid from found f, place, unnest(f.path[cardinality(place.path) + 1:]) as way(id)
    union all
    select id from own
    union all
    select n.id from namespace n where n.warehouse_id = %(within)s::text::uuid
        and n.lineage && array(select id from own where privilege = any(%(showing)s))
"""  # noqa: S608 text of our own
"""Ids of the namespaces of every level of the warehouse `within`; `showing` is SHOWING_BELOW."""

WAREHOUSES: Final = _LEAPS.format(place="array[%(project)s::text]", kind="warehouse")
"""Ids of warehouses of a project."""


def _showing(kind: ObjectType) -> list[str]:
    return sorted(each for each in GRANTABLE[kind] if Privilege.DESCRIBE in effective([Level(kind, {each})]))


SHOWING: Final = {kind.value: _showing(kind) for kind in (ObjectType.TABLE, ObjectType.VIEW)}
"""The privileges on tables and views that let their holders see them in lists."""

SHOWING_BELOW: Final = sorted(
    each
    for each in GRANTABLE[ObjectType.NAMESPACE]
    if Privilege.DESCRIBE in effective([Level(ObjectType.NAMESPACE, {each}), Level(ObjectType.NAMESPACE)])
)
"""The privileges on a namespace that let their holders see everything that lies in it."""
