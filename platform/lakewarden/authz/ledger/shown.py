"""Which objects lists show to somebody who does not see everything: those with a right of his on or in them.

Texts of sub-selects for the queries of models; one query filters a whole page, however many objects there are.
`principals` are the caller and all roles that he has (`Authorizer.principals`).
"""

from typing import Final

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.model import GRANTABLE, Level, Privilege, effective

TABULARS: Final = """
    select g.object_id::uuid from authz_grant g
    where g.principal_id = any(%(principals)s::text[]) and g.object_type = %(kind)s
      and %(within)s = any(g.ancestors) and g.privilege = any(%(showing)s::text[])
"""
"""Ids of tables or views (`kind`) in the object `within`; `showing` is SHOWING of the kind."""

NAMESPACES: Final = """
    select x.id::uuid from authz_grant g cross join lateral unnest(g.ancestors[2:] || g.object_id) as x(id)
    where g.principal_id = any(%(principals)s::text[]) and %(within)s = any(g.ancestors)
      and g.object_type in ('namespace', 'table', 'view')
"""
"""Ids of namespaces in the object `within` (and of what is above and below them)."""

WAREHOUSES: Final = """
    select coalesce(g.ancestors[2], g.object_id)::uuid from authz_grant g
    where g.principal_id = any(%(principals)s::text[]) and g.project_id = %(project)s
      and g.object_type in ('warehouse', 'namespace', 'table', 'view')
"""
"""Ids of warehouses of a project."""


def _showing(kind: ObjectType) -> list[str]:
    return sorted(each for each in GRANTABLE[kind] if Privilege.DESCRIBE in effective([Level(kind, {each})]))


SHOWING: Final = {kind.value: _showing(kind) for kind in (ObjectType.TABLE, ObjectType.VIEW)}
"""The privileges on tables and views that let their holders see them in lists."""
