"""Looks up and authorizes the server, projects, roles and warehouses; the only way to a `Granted` one."""

from uuid import UUID

from lakewarden import backends
from lakewarden.authz.actions import Action, ObjectType, ProjectAction, RoleAction, ServerAction, WarehouseAction
from lakewarden.authz.authorize import authorize, held
from lakewarden.authz.decisions import Epoch
from lakewarden.authz.interface import Granted, ObjectRef, Subject, T
from lakewarden.authz.ledger import grants
from lakewarden.authz.ledger.members import role_principal
from lakewarden.authz.model import VISIBLE, Privilege, is_allowed
from lakewarden.context import PrincipalId, RequestContext
from lakewarden.errors import Forbidden, LakewardenError, NoSuchProject, NoSuchRole, NoSuchWarehouse
from lakewarden.names import match_key
from tenants.models import Project, Role, Server, User, Warehouse
from tenants.models.project import PROJECT_ID

SERVER = ObjectRef(ObjectType.SERVER, "server")


def project_chain(project_id: str) -> list[ObjectRef]:
    return [SERVER, ObjectRef(ObjectType.PROJECT, project_id)]


def role_chain(role: Role) -> list[ObjectRef]:
    return [*project_chain(role.project_id), ObjectRef(ObjectType.ROLE, str(role.id))]


def warehouse_chain(warehouse: Warehouse) -> list[ObjectRef]:
    return [*project_chain(warehouse.project_id), ObjectRef(ObjectType.WAREHOUSE, str(warehouse.id))]


def token_roles(context: RequestContext, project_id: str | None) -> tuple[PrincipalId, ...]:
    """The project's roles (None: of every project) that the caller has by his token; a deleted user has none."""
    actor = context.actor
    if not actor.token_roles:
        return ()
    found = Role.objects.filter(provider_id=actor.provider, source_id__in=actor.token_roles)
    if project_id is not None:
        found = found.filter(project_id=project_id)
    if User.objects.filter(id=actor.id, deleted_at__isnull=False).exists():
        return ()
    return tuple(role_principal(identifier) for identifier in found.values_list("id", flat=True))


def privileges(context: RequestContext, *, chain: list[ObjectRef], project: Project | None) -> frozenset[Privilege]:
    """All that the caller holds on the last of `chain`; `project` was read together with it."""
    project_id = project.id if project else None

    def subject() -> Subject:
        # a role of a project says nothing about the server
        return Subject(context.actor.id, token_roles(context, project_id) if project_id else ())

    epoch = Epoch(project.id, project.authz_epoch) if project else None
    return held(backends.authorizer(), context, subject=subject, chain=chain, epoch=epoch)


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
    found = privileges(context, chain=chain, project=project)
    return authorize(context, target, found, chain=chain, action=action, hidden=hidden)


def server(context: RequestContext, action: ServerAction) -> Granted[Server]:
    return granted(
        context,
        Server.this(),
        chain=[SERVER],
        action=action,
        hidden=Forbidden(f"Not allowed: {action.value} on the server"),
        project=None,
    )


def may_on_server(context: RequestContext, action: ServerAction) -> bool:
    return is_allowed(action, privileges(context, chain=[SERVER], project=None))


def project(context: RequestContext, project_id: str, action: ProjectAction) -> Granted[Project]:
    """Raises NoSuchProject when it is missing or hidden."""
    missing = NoSuchProject(f"Project does not exist: {project_id}")
    # what is no id cannot be looked up either: the database refuses some characters
    found = Project.objects.filter(id=project_id).first() if PROJECT_ID.fullmatch(project_id) else None
    if found is None:
        raise missing
    return granted(context, found, chain=project_chain(found.id), action=action, hidden=missing, project=found)


def visible_projects(context: RequestContext) -> list[Project]:
    """The projects that the caller may see, by name: all of them for an administrator of the server."""
    candidates = Project.objects.order_by("name_key")
    if not may_on_server(context, ServerAction.LIST_PROJECTS):
        principals = [context.actor.id, *token_roles(context, None)]
        candidates = candidates.filter(id__in=grants.projects_of(principals))
    return [
        each
        for each in candidates
        if not privileges(context, chain=project_chain(each.id), project=each).isdisjoint(VISIBLE)
    ]


def role(context: RequestContext, role_id: str, action: RoleAction, *, project_id: str) -> Granted[Role]:
    """The role of an id in a project. Raises NoSuchRole when it is missing, hidden or another project's."""
    missing = NoSuchRole(f"Role does not exist: {role_id}")
    found = _find_role(role_id)
    if found is None or found.project_id != project_id:
        raise missing
    return granted(context, found, chain=role_chain(found), action=action, hidden=missing, project=found.project)


def role_anywhere(context: RequestContext, role_id: str, action: RoleAction) -> Granted[Role]:
    """As `role`, whatever project the request is about."""
    found = _find_role(role_id)
    return role(context, role_id, action, project_id=found.project_id if found else "")


def _find_role(identifier: str) -> Role | None:
    try:
        key = UUID(identifier)
    except ValueError:
        return None
    return Role.objects.select_related("project").filter(id=key).first()


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
