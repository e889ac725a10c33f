"""Writes and reads the members of roles; each change raises the project's authorization epoch, as in `grants`."""

from collections.abc import Iterable, Mapping

from lakewarden.authz.ledger import change_log, epochs
from lakewarden.authz.ledger.models import Membership
from lakewarden.context import PrincipalId
from lakewarden.prepared_statements import fetch


def add(role: PrincipalId, members: Iterable[PrincipalId], *, project_id: str, added_by: PrincipalId) -> None:
    """Add members; those who are members already stay as they are."""
    wanted = list(members)
    if wanted:
        epochs.raise_in([project_id])
        _change(_ADD, {"role": role, "project": project_id, "by": added_by, "members": wanted})


def remove(role: PrincipalId, members: Iterable[PrincipalId]) -> int:
    """Remove members; returns how many were members."""
    return _take_away(
        "role_id = %(role)s and member_id = any(%(members)s::text[])", {"role": role, "members": list(members)}
    )


def forget_principal(principal: PrincipalId) -> None:
    """Remove a deleted user or role from every role, and the members of a deleted role."""
    _take_away("%(gone)s in (member_id, role_id)", {"gone": principal})


def forget_project(project_id: str) -> None:
    """Remove all memberships of a deleted project."""
    _take_away("project_id = %(project)s", {"project": project_id})


def of_role(
    role: PrincipalId, *, roles: bool | None = None, after: str = "", limit: int | None = None
) -> list[PrincipalId]:
    """Direct members with ids greater than `after`, sorted by id; `roles`: only roles, only users, or (None) both."""
    rows = fetch(_DIRECT, {"role": role, "roles": roles, "after": after, "limit": limit})
    return [PrincipalId(member) for (member,) in rows]


def all_below(role: PrincipalId) -> list[PrincipalId]:
    """All direct and indirect members of the role, including the roles between, sorted by id."""
    return [PrincipalId(member) for (member,) in fetch(_BELOW, [role])]


def roles_of(principals: Iterable[PrincipalId]) -> list[PrincipalId]:
    """The roles that the principals are direct members of."""
    found = Membership.objects.filter(member_id__in=list(principals)).values_list("role_id", flat=True)
    return [PrincipalId(role) for role in sorted(set(found))]


def all_above(principals: Iterable[PrincipalId]) -> list[PrincipalId]:
    """The roles that the principals are members of, directly or through other roles."""
    return [PrincipalId(role) for (role,) in fetch(_ABOVE, [list(principals)])]


def height_above(role: PrincipalId) -> int:
    """The length of the longest chain of roles above this one, itself included."""
    return int(fetch(_HEIGHT, {"role": role})[0][0])


def depth_below(role: PrincipalId) -> int:
    """The length of the longest chain of roles below this one, itself included."""
    return int(fetch(_DEPTH, {"role": role})[0][0])


def _take_away(condition: str, parameters: Mapping[str, object]) -> int:
    """Remove the matching rows; returns how many. The epochs are raised as in `grants`."""
    raised = epochs.raise_where("authz_membership", condition, parameters)
    gone = _change(_TAKE_AWAY.format(condition=condition), parameters)
    epochs.raise_in({project_id for (project_id,) in gone} - raised)
    return len(gone)


def _change(statement: str, parameters: Mapping[str, object]) -> list[tuple[str]]:
    """Run the statement and log the change; returns one row, with the project, for each membership added or removed."""
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
# the recursion ends because `role_members` refuses cycles
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
