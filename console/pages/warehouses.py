"""The warehouses of a project, and the choice of the project."""

from dataclasses import replace
from uuid import UUID

from django.http import HttpResponse, HttpResponseRedirect

from console.services import sessions
from console.visits import Visit, form, page
from lakewarden.authz.actions import ProjectAction
from lakewarden.errors import Forbidden, InvalidArgument, NotFound
from lakewarden.paging import Page, next_token
from tenants import access
from tenants.models import Warehouse
from tenants.services import servers, warehouses

PAGE_SIZE = 50
_EVERY_STATUS = tuple(Warehouse.Status)


@page
def listed(visit: Visit) -> HttpResponse:
    """The warehouses that the visitor may see, active and inactive."""
    projects = access.visible_projects(visit.context)
    asked = Page.parse({"pageSize": str(PAGE_SIZE), **_token(visit)})
    project_id = visit.project_id
    try:
        granted = access.project(visit.context, project_id, ProjectAction.LIST_WAREHOUSES)
    except (NotFound, Forbidden) as error:
        if not projects:
            if not servers.is_bootstrapped():
                return HttpResponseRedirect("/console/welcome")
            return visit.render("warehouses.html", projects=[], project=None, nothing=error)
        if project_id in {each.id for each in projects}:
            raise
        # that of the last visit is gone, or the default one is not for this user
        sessions.choose(visit.session, project_id=projects[0].id, role_id=None)
        return HttpResponseRedirect("/console/warehouses")
    found, last = warehouses.visible(granted, asked, statuses=_EVERY_STATUS)
    return visit.render(
        "warehouses.html",
        section="warehouses",
        projects=projects,
        project=granted.target,
        warehouses=found,
        may_create=granted.allows(ProjectAction.CREATE_WAREHOUSE),
        next_page=None if last is None else next_token(last),
        is_first="pageToken" not in visit.query,
    )


@form
def choose(visit: Visit) -> HttpResponse:
    """Choose the project whose objects the pages show (`project`), or the role to act as (`role`; empty: oneself)."""
    asked = visit.request.POST
    if project_id := asked.get("project"):
        access.project(visit.context, project_id, ProjectAction.GET_METADATA)
        sessions.choose(visit.session, project_id=project_id, role_id=None)
        return HttpResponseRedirect("/console/warehouses")
    role_id = _role(asked.get("role"))
    if role_id is not None:
        caller = replace(visit.context.caller, assumed_role=str(role_id))
        access.principal_of_caller(replace(visit.context, caller=caller), None)
    sessions.choose(visit.session, project_id=visit.session.project_id, role_id=role_id)
    return HttpResponseRedirect("/console/warehouses")


def _role(text: str | None) -> UUID | None:
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError:
        raise InvalidArgument(f"{text[:80]!r} is not the id of a role") from None


def _token(visit: Visit) -> dict[str, str]:
    token = visit.query.get("pageToken")
    return {"pageToken": token} if token else {}
