"""Users of the server, and the roles of a project: members, nesting, and acting as a role."""

from typing import Final
from uuid import UUID

from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from console import drawings
from console.visits import Visit, form, page
from lakewarden.authz.actions import ProjectAction, RoleAction, ServerAction
from lakewarden.authz.interface import Granted
from lakewarden.context import ROLE_PREFIX, PrincipalId
from lakewarden.errors import Forbidden, InvalidArgument, LakewardenError
from lakewarden.paging import Page, next_token
from tenants import access
from tenants.models import Role
from tenants.services import role_members, roles, users

PAGE_SIZE: Final = 100
_DRAWN: Final = 12
"""Most roles on a side of the graph."""


@page
def listed_users(visit: Visit) -> HttpResponse:
    """For whoever may list the users of the server; `name` is a part of their names."""
    granted = access.server(visit.context, ServerAction.LIST_USERS)
    name = visit.query.get("name", "").strip()[:255]
    if not name.isprintable():
        raise InvalidArgument("name: printable characters are expected")
    found, following = users.listed(granted, _page(visit), name=name or None)
    more = None if following is None else next_token(following)
    return visit.render("users.html", section="users", users=found, name=name, next_page=more)


@page
def listed_roles(visit: Visit) -> HttpResponse:
    return _roles(visit)


@form
def create_role(visit: Visit) -> HttpResponse:
    granted = access.project(visit.context, visit.project_id, ProjectAction.CREATE_ROLE)
    asked = visit.request.POST
    name, description = asked.get("name", "").strip(), asked.get("description", "").strip()
    try:
        made = roles.create(granted, name, description=description or None, source=None)
    except LakewardenError as error:
        return _roles(visit, typed=(name, description), problem=error.message)
    return HttpResponseRedirect(reverse("console:role", args=[made.id]))


@page
def role(visit: Visit, *, role_id: UUID) -> HttpResponse:
    return _role(visit, _granted(visit, role_id, RoleAction.READ_METADATA))


@form
def change_members(visit: Visit, *, role_id: UUID) -> HttpResponse:
    """Add or remove one member: a user's id, or `role:` and the id of a role."""
    asked, granted = visit.request.POST, _granted(visit, role_id, RoleAction.MANAGE_ASSIGNMENTS)
    member = PrincipalId(asked.get("member", "").strip())
    try:
        if asked.get("remove") == "true":
            role_members.remove(granted, member)
        else:
            _ensure_seen(visit, member)
            role_members.add(granted, [member])
    except LakewardenError as error:
        return _role(visit, granted, typed=member, problem=error.message)
    return HttpResponseRedirect(reverse("console:role", args=[role_id]))


@form
def delete_role(visit: Visit, *, role_id: UUID) -> HttpResponse:
    """Delete it if its name was typed."""
    granted, typed = _granted(visit, role_id, RoleAction.DELETE), visit.request.POST.get("name", "")
    if typed != granted.target.name:
        return _role(visit, granted, problem="This is not its name: nothing was deleted")
    roles.delete(granted)
    return HttpResponseRedirect(reverse("console:roles"))


def _ensure_seen(visit: Visit, member: PrincipalId) -> None:
    if member.startswith(ROLE_PREFIX):
        identifier = member.removeprefix(ROLE_PREFIX)
        access.role(visit.context, identifier, RoleAction.READ_METADATA, project_id=visit.project_id)
    elif not users.is_user_id(member):
        raise InvalidArgument(
            f"{member[:80]!r} is not the id of a user, <provider>~<subject>, nor of a role, role:<id>"
        )


def _granted(visit: Visit, role_id: UUID, action: RoleAction) -> Granted[Role]:
    return access.role(visit.context, str(role_id), action, project_id=visit.project_id)


def _page(visit: Visit) -> Page:
    token = visit.query.get("pageToken")
    return Page.parse({"pageSize": str(PAGE_SIZE)} | ({"pageToken": token} if token else {}))


def _roles(visit: Visit, *, typed: tuple[str, str] = ("", ""), problem: str | None = None) -> HttpResponse:
    granted = access.project(visit.context, visit.project_id, ProjectAction.LIST_ROLES)
    found, following = roles.listed(granted, roles.Wanted(), _page(visit))
    return visit.render(
        "roles.html",
        section="roles",
        project=granted.target,
        roles=found,
        may_create=granted.allows(ProjectAction.CREATE_ROLE),
        typed=typed,
        problem=problem,
        next_page=None if following is None else next_token(following),
    )


def _role(visit: Visit, granted: Granted[Role], *, typed: str = "", problem: str | None = None) -> HttpResponse:
    found, few = granted.target, Page(None, _DRAWN)
    may_read = granted.allows(RoleAction.READ_ASSIGNMENTS)
    members: list[role_members.Member] = []
    graph = None
    if may_read:
        members, _ = role_members.direct(granted, Page(None, PAGE_SIZE), kind=None)
        above, _ = role_members.member_of(granted, few, transitive=False)
        below = [(each.name or each.id, _address(each.id)) for each in members if each.type == "role"][:_DRAWN]
        graph = drawings.neighbours([(each.name, _address(str(each.id))) for each in above], found.name, below)
    return visit.render(
        "role.html",
        section="roles",
        role=found,
        graph=graph if graph and graph.lines else None,
        members=members,
        may_read=may_read,
        granters=visit.granters(granted, RoleAction.READ_ASSIGNMENTS),
        may_manage=granted.allows(RoleAction.MANAGE_ASSIGNMENTS),
        may_delete=granted.allows(RoleAction.DELETE),
        may_assume=_may_assume(visit, found),
        typed=typed,
        problem=problem,
    )


def _may_assume(visit: Visit, found: Role) -> bool:
    caller = visit.context.caller
    if caller.assumed_role is not None:
        return False
    try:
        return access.may_assume(access.principal_of_caller(visit.context, found.project_id), found)
    except Forbidden:
        return False


def _address(role_id: str) -> str:
    return reverse("console:role", args=[role_id])
