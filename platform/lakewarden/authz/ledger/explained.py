"""What explanations are made of: the grants around an object and inside it, and the memberships that lead to them."""

from collections.abc import Collection, Iterable, Sequence

from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.ledger.models import EVERYBODY
from lakewarden.context import PrincipalId
from lakewarden.prepared_statements import fetch

Row = tuple[str, str, str, str, str]
"""Type and id of the object, principal, privilege (or MANAGED_ACCESS), and who granted it."""


def granted_on(chain: Sequence[ObjectRef], principals: Collection[PrincipalId] | None) -> list[Row]:
    """The grants on the objects of the chain to the principals (None: to all) and to everybody."""
    places = {"types": [ref.type.value for ref in chain], "ids": [ref.id for ref in chain]}
    return [(*row,) for row in fetch(_ON, {**places, **_to(principals)})]


def granted_inside(ref: ObjectRef, principals: Collection[PrincipalId] | None, *, project_id: str | None) -> list[Row]:
    """One grant inside the object for each of the principals (None: for all) that has any: the outermost."""
    return [(*row,) for row in fetch(_INSIDE, {"project": project_id, "id": ref.id, **_to(principals)})]


def memberships_above(principals: Iterable[PrincipalId]) -> list[tuple[PrincipalId, PrincipalId]]:
    """The direct memberships of the principals and of all roles above them: pairs of member and role."""
    return [(PrincipalId(member), PrincipalId(role)) for member, role in fetch(_MEMBERSHIPS, [list(principals)])]


def members_below(roles: Iterable[PrincipalId]) -> list[PrincipalId]:
    """All direct and indirect members of the roles."""
    return [PrincipalId(member) for (member,) in fetch(_MEMBERS, [list(roles)])]


def _to(principals: Collection[PrincipalId] | None) -> dict[str, object]:
    return {"principals": None if principals is None else list(principals), "everybody": EVERYBODY}


_ON = """
    select g.object_type, g.object_id, g.principal_id, g.privilege, g.granted_by
    from unnest(%(types)s::text[], %(ids)s::text[]) as c(type, id)
    join authz_grant g on g.object_type = c.type and g.object_id = c.id
    where %(principals)s::text[] is null or g.principal_id = any(%(principals)s::text[])
       or g.principal_id = %(everybody)s
"""
# one grant for each principal is enough: the one on the outermost object
_INSIDE = """
    select distinct on (principal_id) object_type, object_id, principal_id, privilege, granted_by from authz_grant
    where project_id = %(project)s and %(id)s = any(ancestors) and principal_id <> %(everybody)s
      and (%(principals)s::text[] is null or principal_id = any(%(principals)s::text[]))
    order by principal_id, cardinality(ancestors), object_id, privilege
"""
_MEMBERSHIPS = """
    with recursive above(member_id, role_id) as (
        select member_id, role_id from authz_membership where member_id = any(%s::text[])
        union
        select m.member_id, m.role_id from authz_membership m join above a on m.member_id = a.role_id
    )
    select member_id, role_id from above order by member_id, role_id
"""
_MEMBERS = """
    with recursive below(id) as (
        select member_id from authz_membership where role_id = any(%s::text[])
        union
        select m.member_id from authz_membership m join below b on m.role_id = b.id
    )
    select id from below
"""
