"""Sub-selects that filter lists for callers who may see only some of the objects: those with a grant on or in them.

The queries of models include them, so one query filters a whole page. The parameter `principals` are the ids of the
caller and of all their roles (`Authorizer.principals`).

The `ancestors` of everything inside an object begin with the object's path, which is one range of the index
`authz_grant_within`. Direct children are found by skipping from one to the next within that range (a loose index
scan), so a child with a million grants inside costs no more than one with a single grant.
"""

from typing import Final

from lakewarden.authz.actions import TABULAR_TYPES, ObjectType
from lakewarden.authz.model import GRANTABLE, Level, Privilege, effective

# ids are hexadecimal, so `g` sorts after all of them, in every collation
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
"""Ids of the tables, views or generic tables (`kind`) in the namespace `within`; `showing` is SHOWING[kind]."""

NAMESPACES: Final = _LEAPS.format(place=f"coalesce({_NAMESPACE}, {_WAREHOUSE})", kind="namespace")
"""Ids of the direct children of the warehouse or namespace `within`."""

# one step of the recursion for each namespace in which something is granted
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
"""Ids of the namespaces of all levels in the warehouse `within`; the parameter `showing` is SHOWING_BELOW."""

WAREHOUSES: Final = _LEAPS.format(place="array[%(project)s::text]", kind="warehouse")
"""Ids of the warehouses of the project `project`."""


GRANTED: Final = """
    select object_type, object_id, privilege from authz_grant where principal_id = any(%(principals)s::text[])
"""
"""What is granted to the principals, for other queries to read as `({GRANTED}) g`."""

HELD_ON: Final = """
    exists (
        select from authz_grant g
        where g.principal_id = any(%(principals)s::text[]) and g.object_type = {kind} and g.object_id = {id}
          and g.privilege = any({showing}::text[])
    )
"""
"""Whether one of the principals holds one of the privileges `showing` on the object `id` of the type `kind`."""

HELD_ON_ANY: Final = HELD_ON.replace(
    "g.object_type = {kind} and g.object_id = {id}",
    "g.object_type in ('warehouse', 'namespace') and g.object_id = any({path})",
)
"""The same for any warehouse or namespace of a path of ids."""

# what lies inside has ancestors that begin with the path
HELD_ON_OR_WITHIN: Final = """
    exists (
        select from authz_grant g
        where g.principal_id = any(%(principals)s::text[]) and (
            (g.object_type in ('warehouse', 'namespace') and g.object_id = {path}[cardinality({path})])
            or (g.ancestors >= {path} and g.ancestors < array_append({path}, 'g')))
    )
"""
"""Whether one of the principals holds anything on the warehouse or namespace at the end of a path of ids (project
first), or inside it.
"""


def _showing(kind: ObjectType) -> list[str]:
    return sorted(each for each in GRANTABLE[kind] if Privilege.DESCRIBE in effective([Level(kind, {each})]))


SHOWING: Final = {kind.value: _showing(kind) for kind in TABULAR_TYPES}
"""The privileges on a table, view or generic table that make it appear in lists."""

SHOWING_ANY: Final = sorted({privilege for showing in SHOWING.values() for privilege in showing})
"""Those of all these types together."""

SHOWING_BELOW: Final = sorted(
    each
    for each in GRANTABLE[ObjectType.NAMESPACE]
    if Privilege.DESCRIBE in effective([Level(ObjectType.NAMESPACE, {each}), Level(ObjectType.NAMESPACE)])
)
"""The privileges on a namespace that make everything inside it appear in lists."""
