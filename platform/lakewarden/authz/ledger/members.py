"""Writes and reads who is in which role; each change raises the project's authorization epoch, as in `grants`."""

from collections.abc import Iterable, Mapping

from lakewarden.authz.ledger import change_log, epochs
from lakewarden.authz.ledger.models import Membership
from lakewarden.context import PrincipalId
from lakewarden.prepared_statements import fetch


def add(role: PrincipalId, members: Iterable[PrincipalId], *, project_id: str, added_by: PrincipalId) -> None:
    """Add who is missing."""
    wanted = list(members)
    if wanted:
        epochs.raise_in([project_id])
        _change(_ADD, {"role": role, "project": project_id, "by": added_by, "members": wanted})


def remove(role: PrincipalId, members: Iterable[PrincipalId]) -> int:
    """Remove who is there; returns how many."""
    return _take_away(
        "role_id = %(role)s and member_id = any(%(members)s::text[])", {"role": role, "members": list(members)}
    )


def forget_principal(principal: PrincipalId) -> None:
    """Remove a user or role that is gone from every role, and whoever is in it."""
    _take_away("%(gone)s in (member_id, role_id)", {"gone": principal})


def forget_project(project_id: str) -> None:
    """Remove everybody from every role of a project that is gone."""
    _take_away("project_id = %(project)s", {"project": project_id})


def of_role(
    role: PrincipalId, *, roles: bool | None = None, after: str = "", limit: int | None = None
) -> list[PrincipalId]:
    """Direct members in the order of their ids behind `after`; only roles, only users, or (None) both."""
    rows = fetch(_DIRECT, {"role": role, "roles": roles, "after": after, "limit": limit})
    return [PrincipalId(member) for (member,) in rows]


def all_below(role: PrincipalId) -> list[PrincipalId]:
    """Everybody who is in the role, directly or through roles in it; the roles between among them. Ordered by id."""
    return [PrincipalId(member) for (member,) in fetch(_BELOW, [role])]


def roles_of(principals: Iterable[PrincipalId]) -> list[PrincipalId]:
    """The roles that the principals are in directly."""
    found = Membership.objects.filter(member_id__in=list(principals)).values_list("role_id", flat=True)
    return [PrincipalId(role) for role in sorted(set(found))]


def all_above(principals: Iterable[PrincipalId]) -> list[PrincipalId]:
    """The roles that the principals are in, directly or through other roles."""
    return [PrincipalId(role) for (role,) in fetch(_ABOVE, [list(principals)])]


def height_above(role: PrincipalId) -> int:
    """The longest chain of roles that the role is in, itself counted."""
    return int(fetch(_HEIGHT, {"role": role})[0][0])


def depth_below(role: PrincipalId) -> int:
    """The longest chain of roles in the role, itself counted."""
    return int(fetch(_DEPTH, {"role": role})[0][0])


def _take_away(condition: str, parameters: Mapping[str, object]) -> int:
    """Remove the rows that match; returns how many that were."""
    raised = epochs.raise_where("authz_membership", condition, parameters)
    gone = _change(_TAKE_AWAY.format(condition=condition), parameters)
    epochs.raise_in({project_id for (project_id,) in gone} - raised)
    return len(gone)


def _change(statement: str, parameters: Mapping[str, object]) -> list[tuple[str]]:
    """Run it; a row each for who was added or removed: the project."""
    changed = fetch(statement, {**parameters, "logged": change_log.are_logged()})
    if changed:
        change_log.announce()
    return changed


_ADD = f"""
    with added as (
        insert into authz_membership (role_id, project_id, added_by, member_id, created_at)
        select %(role)s, %(project)s, %(by)s, member, now() from unnest(%(members)s::text[]) as m(member)
        on conflict do nothing returning *
    ), logged as ({change_log.of_memberships("write", "added")})
    select project_id from added
"""  # noqa: S608 text of our own
_TAKE_AWAY = f"""
    with gone as (
        delete from authz_membership where {{condition}} returning *
    ), logged as ({change_log.of_memberships("delete", "gone")})
    select project_id from gone
"""  # noqa: S608 text of our own
_DIRECT = """
    select member_id from authz_membership
    where role_id = %(role)s and member_id > %(after)s
      and (%(roles)s::boolean is null or starts_with(member_id, 'role:') = %(roles)s)
    order by member_id limit %(limit)s
"""
_BELOW = """
    with recursive below(id) as (
        select member_id from authz_membership where role_id = %s
        union
        select m.member_id from authz_membership m join below b on m.role_id = b.id
    )
    select id from below order by id
"""
_ABOVE = """
    with recursive above(id) as (
        select role_id from authz_membership where member_id = any(%s::text[])
        union
        select m.role_id from authz_membership m join above a on m.member_id = a.id
    )
    select id from above order by id
"""
# `union` of (id, steps) is bounded by the longest chain, as the graph holds no cycle
_HEIGHT = """
    with recursive chain(id, steps) as (
        select %(role)s::text, 1
        union
        select m.role_id, c.steps + 1 from authz_membership m join chain c on m.member_id = c.id
    )
    select max(steps) from chain
"""
_DEPTH = """
    with recursive chain(id, steps) as (
        select %(role)s::text, 1
        union
        select m.member_id, c.steps + 1 from authz_membership m join chain c on m.role_id = c.id
        where starts_with(m.member_id, 'role:')
    )
    select max(steps) from chain
"""
