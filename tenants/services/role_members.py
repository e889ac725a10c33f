"""Members of roles, direct and transitive; refuses cycles and nesting that is too deep."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from lakewarden import config, quotas
from lakewarden.authz.actions import UserAction
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import members
from lakewarden.authz.ledger.models import Grant, Membership
from lakewarden.context import ROLE_PREFIX, PrincipalId, RequestContext
from lakewarden.db_transaction import changing
from lakewarden.errors import BadRequest, Conflict, NoSuchRole
from lakewarden.events.change_recording import Change, record
from lakewarden.paging import Page
from tenants import access
from tenants.models import Project, Role, User
from tenants.services import projects, user_removal, users
from tenants.services.roles import locked

MAX_BATCH = 1000


class RoleMembershipCycle(Conflict):
    """A role would be a member of itself, directly or through other roles."""

    wire_type = "RoleMembershipCycleException"


class RoleMembershipDepthExceeded(Conflict):
    """Too many roles would be nested in each other."""

    wire_type = "RoleMembershipDepthExceededException"


@dataclass(frozen=True, slots=True)
class Member:
    """`id` is a user's `<provider>~<subject>` or a role's UUID; the rest is None if no such user or role exists now.

    Only users have `email` and `user_type`, and only roles `ident`, which is `<provider>~<source>`.
    """

    type: Literal["user", "role"]
    id: str
    name: str | None = None
    email: str | None = None
    user_type: str | None = None
    ident: str | None = None


def is_role(principal: PrincipalId) -> bool:
    return principal.startswith(ROLE_PREFIX)


def add(granted: Granted[Role], wanted: Sequence[PrincipalId]) -> None:
    """Add members to the role, all or none; those who are members already stay.

    The caller must have been authorized to see the roles among them. Raises BadRequest for more than 1,000 members or
    a deleted user, NoSuchUser,
    NoSuchRole, RoleMembershipCycle and RoleMembershipDepthExceeded.
    """
    if len(wanted) > MAX_BATCH:
        raise BadRequest(f"{len(wanted)} members in one request: at most {MAX_BATCH} are allowed")
    with changing():
        projects.lock_graph(granted.target.project_id)
        role = locked(granted.target)
        ensure_known(wanted, project_id=role.project_id)
        change(role, granted.context, missing(role, wanted), ())


def remove(granted: Granted[Role], member: PrincipalId) -> None:
    """Remove a user or role from the role; nothing changes if it is not a member."""
    with changing():
        projects.lock_graph(granted.target.project_id)
        role = locked(granted.target)
        user_removal.hold([member])
        change(role, granted.context, (), [member])


def ensure_known(wanted: Iterable[PrincipalId], *, project_id: str) -> None:
    """Raises NoSuchUser, NoSuchRole (also for a role of another project) or BadRequest (a deleted user).

    The caller holds `projects.lock_graph`, so a role that was found is not deleted before the transaction ends.
    """
    several = set(wanted)
    user_removal.ensure_present(sorted(each for each in several if not is_role(each)))
    ids = {role_id(each) for each in several if is_role(each)}
    found = set(Role.objects.filter(project_id=project_id, id__in=ids).values_list("id", flat=True))
    if gone := ids - found:
        raise NoSuchRole(f"Role does not exist: {min(gone)}")


def missing(role: Role, wanted: Iterable[PrincipalId]) -> list[PrincipalId]:
    """Those of `wanted` who are not members of the role yet."""
    several = set(wanted)
    there = Membership.objects.filter(role_id=role.principal, member_id__in=several)
    return sorted(several.difference(map(PrincipalId, there.values_list("member_id", flat=True))))


def change(role: Role, context: RequestContext, added: Sequence[PrincipalId], removed: Collection[PrincipalId]) -> None:
    """Remove and add members and record the change, if there is any. The caller holds `projects.lock_graph`."""
    gone = members.remove(role.principal, removed) if removed else 0
    if not added and not gone:
        return
    rows = Membership.objects.filter(role_id=role.principal)
    quotas.ensure_room("members_of_role", rows, within=role.principal, adding=len(added))
    _check_nesting(role, [each for each in added if is_role(each)])
    members.add(role.principal, added, project_id=role.project_id, added_by=context.caller.id)
    data = {"added": list(added), "removed": sorted(removed)}
    record(Change("updateRoleMembers", "role", str(role.id), role.project_id, data), context)


def _check_nesting(role: Role, added: Sequence[PrincipalId]) -> None:
    if not added:
        return
    above = {role.principal, *members.all_above([role.principal])}
    for member in added:
        if member in above:
            how = "itself" if member == role.principal else "a role that it is in, directly or through others"
            raise RoleMembershipCycle(f"The role {role.id} cannot have the member {role_id(member)}: that is {how}")
    limit, height = config.current().roles.max_nesting_depth, members.height_above(role.principal)
    for member in added:
        chain = height + members.depth_below(member)
        if chain > limit:
            raise RoleMembershipDepthExceeded(
                f"With the role {role_id(member)} in the role {role.id}, {chain} roles would be nested in each other: "
                f"at most {limit} are allowed"
            )


def direct(granted: Granted[Role], page: Page, *, kind: str | None) -> tuple[list[Member], str | None]:
    """A page of the direct members, sorted by id, and the key of the next page; `kind` is
    `user`, `role` or None: both.
    """
    roles_only = None if kind is None else kind == "role"
    found = members.of_role(granted.target.principal, roles=roles_only, after=page.after or "", limit=page.limit)
    shown, following = page.cut([(each, str(each)) for each in found])
    return _described(shown), following


def everybody_in(granted: Granted[Role]) -> list[PrincipalId]:
    """All direct members by id."""
    return members.of_role(granted.target.principal)


def transitive(granted: Granted[Role], page: Page, *, kind: str | None) -> tuple[list[Member], str | None]:
    """Like `direct`, including the members of roles that are members."""
    everybody = sorted(
        each
        for each in members.all_below(granted.target.principal)
        if each > (page.after or "") and (kind is None or is_role(each) == (kind == "role"))
    )
    shown, following = page.cut([(each, str(each)) for each in everybody[: page.limit]])
    return _described(shown), following


def member_of(granted: Granted[Role], page: Page, *, transitive: bool) -> tuple[list[Role], str | None]:
    """A page of the roles that the role is a member of, sorted by name, and the key of the next page.

    `transitive` includes roles that it is in through other roles.
    """
    return _roles_of(granted.target.principal, page, project_id=granted.target.project_id, transitive=transitive)


def own_roles(
    context: RequestContext, page: Page, *, project_id: str, transitive: bool
) -> tuple[list[Role], str | None]:
    """Like `member_of`, for the caller, in any project; empty in a project in which they have no roles."""
    return _roles_of(context.caller.id, page, project_id=project_id, transitive=transitive)


def roles_of_user(
    granted: Granted[Project], user: str, page: Page, *, transitive: bool
) -> tuple[list[Role], str | None]:
    """Like `member_of`, for a user. Raises NoSuchUser for one who holds nothing in the project and whom the caller may
    not see on the server.
    """
    principal, project_id = PrincipalId(user), granted.target.id
    if not users.is_user_id(user) or not _is_known_in(principal, project_id):
        access.user(granted.context, user, UserAction.READ)
    return _roles_of(principal, page, project_id=project_id, transitive=transitive)


def _is_known_in(user: PrincipalId, project_id: str) -> bool:
    return (
        Membership.objects.filter(member_id=user, project_id=project_id).exists()
        or Grant.objects.filter(principal_id=user, project_id=project_id).exists()
    )


def _roles_of(
    principal: PrincipalId, page: Page, *, project_id: str, transitive: bool
) -> tuple[list[Role], str | None]:
    above = members.all_above([principal]) if transitive else members.roles_of([principal])
    found = Role.objects.filter(project_id=project_id, id__in=[role_id(each) for each in above]).order_by("name_key")
    if page.after is not None:
        found = found.filter(name_key__gt=page.after)
    return page.cut([(role, role.name_key) for role in found[: page.limit]])


def role_id(principal: PrincipalId) -> UUID:
    """The UUID of a role's principal id."""
    return UUID(principal.removeprefix(ROLE_PREFIX))


def reference(principal: PrincipalId) -> Member:
    """The member without what describes it."""
    return Member("role", str(role_id(principal))) if is_role(principal) else Member("user", str(principal))


def _described(principals: Sequence[PrincipalId]) -> list[Member]:
    """The members as they are described now."""
    found = [reference(each) for each in principals]
    users = User.objects.in_bulk([each.id for each in found if each.type == "user"])
    roles = {
        str(identifier): role
        for identifier, role in Role.objects.in_bulk([each.id for each in found if each.type == "role"]).items()
    }
    return [_with_names(each, users.get(each.id), roles.get(each.id)) for each in found]


def _with_names(member: Member, user: User | None, role: Role | None) -> Member:
    if user is not None:
        return replace(member, name=user.name, email=user.email, user_type=user.user_type)
    return member if role is None else replace(member, name=role.name, ident=role.ident)
