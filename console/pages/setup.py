"""The first start: who signs in first becomes the server's administrator; and projects."""

from django.http import HttpResponse, HttpResponseRedirect

from console.services import sessions
from console.visits import Visit, form, page
from lakewarden.authz.actions import ServerAction
from lakewarden.errors import LakewardenError
from tenants import access
from tenants.services import projects, servers


@page
def welcome(visit: Visit) -> HttpResponse:
    """For a server that has no administrator yet; otherwise it leads to the warehouses."""
    if servers.is_bootstrapped():
        return HttpResponseRedirect("/console/warehouses")
    return visit.render("welcome.html")


@form
def bootstrap(visit: Visit) -> HttpResponse:
    """Make the visitor the first administrator. Raises AlreadyBootstrapped if somebody was faster."""
    servers.bootstrap(visit.context.caller, visit.context)
    return HttpResponseRedirect("/console/warehouses")


@page
def listed(visit: Visit) -> HttpResponse:
    """The projects that the visitor may see, and a form for a new one."""
    return _shown(visit)


@form
def create(visit: Visit) -> HttpResponse:
    """Create a project and choose it."""
    name = visit.request.POST.get("name", "").strip()
    granted = access.server(visit.context, ServerAction.CREATE_PROJECT)
    try:
        made = projects.create(granted, name, project_id=None)
    except LakewardenError as error:
        return _shown(visit, typed=name, problem=error.message)
    sessions.choose(visit.session, project_id=made.id, role_id=None)
    return HttpResponseRedirect("/console/warehouses")


def _shown(visit: Visit, *, typed: str = "", problem: str | None = None) -> HttpResponse:
    return visit.render(
        "projects.html",
        section="projects",
        projects=access.visible_projects(visit.context),
        chosen=visit.project_id,
        may_create=access.may_on_server(visit.context, ServerAction.CREATE_PROJECT),
        typed=typed,
        problem=problem,
    )
