"""Looks up and authorizes the server, projects and warehouses; the only way to a `Granted` one."""

from uuid import UUID

from lakewarden import backends
from lakewarden.authz.actions import Action, ObjectType, ProjectAction, ServerAction, WarehouseAction
from lakewarden.authz.decisions import Epoch
from lakewarden.authz.interface import Granted, ObjectRef, T, authorize
from lakewarden.authz.model import Privilege, closure
from lakewarden.context import RequestContext
from lakewarden.errors import Forbidden, LakewardenError, NoSuchProject, NoSuchWarehouse
from lakewarden.names import match_key
from tenants.models import Project, Server, Warehouse
from tenants.models.project import PROJECT_ID

SERVER = ObjectRef(ObjectType.SERVER, "server")


def project_chain(project_id: str) -> list[ObjectRef]:
    return [SERVER, ObjectRef(ObjectType.PROJECT, project_id)]


def warehouse_chain(warehouse: Warehouse) -> list[ObjectRef]:
    return [*project_chain(warehouse.project_id), ObjectRef(ObjectType.WAREHOUSE, str(warehouse.id))]


def granted(
    context: RequestContext,
    target: T,
    *,
    chain: list[ObjectRef],
    action: Action,
    hidden: LakewardenError,
    project: Project | None,
) -> Granted[T]:
    """`authorize` with the configured backend; `project` was read together with the target."""
    epoch = Epoch(project.id, project.authz_epoch) if project else None
    return authorize(backends.authorizer(), context, target, chain=chain, action=action, hidden=hidden, epoch=epoch)


def server(context: RequestContext, action: ServerAction) -> Granted[Server]:
    return granted(
        context,
        Server.this(),
        chain=[SERVER],
        action=action,
        hidden=Forbidden(f"Not allowed: {action.value} on the server"),
        project=None,
    )


def project(context: RequestContext, project_id: str, action: ProjectAction) -> Granted[Project]:
    """Raises NoSuchProject when it is missing or hidden."""
    missing = NoSuchProject(f"Project does not exist: {project_id}")
    # what is no id cannot be looked up either: the database refuses some characters
    found = Project.objects.filter(id=project_id).first() if PROJECT_ID.fullmatch(project_id) else None
    if found is None:
        raise missing
    return granted(context, found, chain=project_chain(found.id), action=action, hidden=missing, project=found)


def visible_projects(context: RequestContext) -> list[Project]:
    """The projects that the caller may see, by name."""
    authorizer = backends.authorizer()
    return [
        project
        for project in Project.objects.order_by("name_key")
        if Privilege.DESCRIBE
        in closure(authorizer.privileges(context.actor.id, project_chain(project.id)), on=ObjectType.PROJECT)
    ]


def warehouse(context: RequestContext, warehouse_id: str | UUID, action: WarehouseAction) -> Granted[Warehouse]:
    """The warehouse of an id, as in `/v1/{prefix}`. Raises NoSuchWarehouse when it is missing or hidden."""
    missing = NoSuchWarehouse(f"Warehouse does not exist: {warehouse_id}")
    try:
        key = UUID(str(warehouse_id))
    except ValueError:
        raise missing from None
    found = Warehouse.objects.find(key)
    if found is None:
        raise missing
    return granted(context, found, chain=warehouse_chain(found), action=action, hidden=missing, project=found.project)


def warehouse_named(
    context: RequestContext, name: str, action: WarehouseAction, *, project_id: str
) -> Granted[Warehouse]:
    """The warehouse of a name in a project, as in `GET /v1/config?warehouse=`; raises NoSuchWarehouse."""
    missing = NoSuchWarehouse(f"Warehouse does not exist: {name}")
    # the database holds no NUL, and refuses to look for one
    can_be = PROJECT_ID.fullmatch(project_id) and "\x00" not in name
    found = Warehouse.objects.find_named(project_id, match_key(name)) if can_be else None
    if found is None:
        raise missing
    return granted(context, found, chain=warehouse_chain(found), action=action, hidden=missing, project=found.project)
