"""Looks up and authorizes the server, projects, roles, users and warehouses; nothing else
returns `Granted` for them.
"""

from collections.abc import Iterable
from uuid import UUID

from lakewarden import backends, config
from lakewarden.authz.actions import (
    Action,
    ObjectType,
    ProjectAction,
    RoleAction,
    ServerAction,
    TagAction,
    UserAction,
    WarehouseAction,
)
from lakewarden.authz.authorize import authorize, held
from lakewarden.authz.decision_cache import CALLER_PRINCIPALS, Epoch
from lakewarden.authz.interface import Granted, ObjectRef, Principal, T
from lakewarden.authz.ledger import grants, members
from lakewarden.authz.model import Privilege, is_allowed, wording
from lakewarden.context import ROLE_PREFIX, PrincipalId, Refused, RequestContext, role_principal
from lakewarden.errors import (
    BadRequest,
    Forbidden,
    LakewardenError,
    NoSuchProject,
    NoSuchRole,
    NoSuchTagDefinition,
    NoSuchUser,
    NoSuchWarehouse,
    ProjectIdMissing,
)
from lakewarden.names import match_key
from tenants.models import Project, Role, Server, TagDefinition, User, Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID, PROJECT_ID
from tenants.models.warehouse import WarehouseQuerySet

SERVER = ObjectRef(ObjectType.SERVER, "server")
_OWN_ACTIONS = frozenset({UserAction.READ, UserAction.READ_ASSIGNMENTS})
"""Actions that every user may do on their own row."""
_GOVERNING = frozenset({Privilege.MANAGE_GRANTS, Privilege.MANAGE_TAGS})
_NOBODY = Principal(PrincipalId(""))
"""Stands for a deleted user: holds nothing, even if grants to their id exist."""


def default_project_id() -> str:
    """The project of requests that name none; raises ProjectIdMissing if the server has no default project."""
    if not config.current().server.enable_default_project:
        raise ProjectIdMissing("The request names no project, and this server has no default one: send x-project-id")
    return DEFAULT_PROJECT_ID


def project_id_of(context: RequestContext) -> str:
    """The project that a request is about: `x-project-id`, else the default project."""
    return context.project_id or default_project_id()


def project_chain(project_id: str) -> list[ObjectRef]:
    return [SERVER, ObjectRef(ObjectType.PROJECT, project_id)]


def role_chain(role: Role) -> list[ObjectRef]:
    return [*project_chain(role.project_id), ObjectRef(ObjectType.ROLE, str(role.id))]


def tag_chain(definition: TagDefinition) -> list[ObjectRef]:
    return [*project_chain(definition.project_id), ObjectRef(ObjectType.TAG_DEFINITION, str(definition.id))]


def warehouse_chain(warehouse: Warehouse) -> list[ObjectRef]:
    return [*project_chain(warehouse.project_id), ObjectRef(ObjectType.WAREHOUSE, str(warehouse.id))]


def token_roles(context: RequestContext, project_id: str | None) -> tuple[PrincipalId, ...]:
    """The project's roles (None: of all projects) that the caller's token names; none for a deleted user."""
    caller = context.caller
    if not caller.token_roles:
        return ()
    found = Role.objects.filter(provider_id=caller.provider, source_id__in=caller.token_roles)
    if project_id is not None:
        found = found.filter(project_id=project_id)
    if User.objects.filter(id=caller.id, deleted_at__isnull=False).exists():
        return ()
    return tuple(role_principal(identifier) for identifier in found.values_list("id", flat=True))


def privileges(context: RequestContext, *, chain: list[ObjectRef], project: Project | None) -> frozenset[Privilege]:
    """All privileges of the caller on the last object of `chain`.

    `project` was read in the same query as that object, so its epoch shows whether a cached decision is still valid.
    """
    epoch = Epoch(project.id, project.authz_epoch) if project else None
    return held(
        backends.authorizer(),
        context,
        principal=lambda: principal_of_caller(context, project.id if project else None),
        chain=chain,
        epoch=epoch,
    )


def privileges_elsewhere(context: RequestContext, chain: list[ObjectRef]) -> frozenset[Privilege]:
    """All privileges that the caller would have on the last object of `chain` if it were there; never cached."""
    return backends.authorizer().privileges(principal_of_caller(context, chain[1].id), chain)


def governing(principal: PrincipalId, chain: list[ObjectRef]) -> frozenset[Privilege]:
    """Which of `manage_grants` and `manage_tags` the principal holds on the last object of `chain`, or would hold if it
    were there.

    Roles that only a token names do not count.
    """
    return _GOVERNING & backends.authorizer().privileges(principal_of(principal), chain)


def principal_of(principal: PrincipalId) -> Principal:
    """A principal other than the caller, without roles from a token: the server does not have their token."""
    return _NOBODY if User.objects.filter(id=principal, deleted_at__isnull=False).exists() else Principal(principal)


def principal_of_caller(context: RequestContext, project_id: str | None) -> Principal:
    """The principal whose privileges count: the caller, or the role that they assumed (x-assume-role).

    Raises BadRequest for a role that does not exist, Forbidden for one that the caller is not a member of.
    """
    caller = context.caller
    if User.objects.filter(id=caller.id, deleted_at__isnull=False).exists():
        return _NOBODY
    if caller.assumed_role is None:
        # roles belong to a project and have no privileges on the server
        return Principal(caller.id, token_roles(context, project_id) if project_id else ())
    unknown = BadRequest(f"The role {caller.assumed_role} of x-assume-role does not exist")
    role = Role.objects.filter(id=caller.assumed_role).first()
    if role is None:
        raise unknown
    own = Principal(caller.id, token_roles(context, role.project_id))
    if not may_assume(own, role):
        refused = Forbidden(f"Not allowed: you are not in the role {caller.assumed_role} of x-assume-role")
        context.trail.refused = Refused("assume", "role", caller.assumed_role, role.project_id, refused.message)
        # a role of a project that the caller does not see is answered like one that does not exist
        raise refused if role.project_id in grants.projects_of([own.id, *own.roles]) else unknown
    # the role's grants are all in its own project, so in another project it holds nothing
    return Principal(role.principal)


def may_assume(principal: Principal, role: Role) -> bool:
    """Whether the principal may act as the role (`x-assume-role`): as a member, also through other roles, or owner."""
    direct = [principal.id, *principal.roles]
    owners = {owner for owner, _ in grants.on(role_chain(role)[-1])}
    may = {*direct, *members.all_above(direct)}
    return role.principal in may or not owners.isdisjoint(may)


def known_server(context: RequestContext) -> Granted[Server]:
    """The server, without any right: everybody knows that it exists, and may ask what they may do on it."""
    return Granted(Server.this(), context, privileges(context, chain=[SERVER], project=None), (SERVER,))


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
        hidden=Forbidden(f"Not allowed: {action.value} on the server needs the privilege {wording(action)}"),
        project=None,
    )


def is_server_administrator(context: RequestContext) -> bool:
    """Whether the caller is an administrator or operator of the server."""
    return not privileges(context, chain=[SERVER], project=None).isdisjoint({Privilege.ADMIN, Privilege.OPERATOR})


def may_on_server(context: RequestContext, action: ServerAction) -> bool:
    return is_allowed(action, privileges(context, chain=[SERVER], project=None))


def project(context: RequestContext, project_id: str, action: ProjectAction) -> Granted[Project]:
    """The project with this id. Raises NoSuchProject if it is missing or hidden from the caller."""
    missing = NoSuchProject(f"Project does not exist: {project_id}")
    # only valid ids are looked up: the database refuses some characters
    found = Project.objects.filter(id=project_id).first() if PROJECT_ID.fullmatch(project_id) else None
    if found is None:
        raise missing
    return granted(context, found, chain=project_chain(found.id), action=action, hidden=missing, project=found)


def user(context: RequestContext, user_id: str, action: UserAction) -> Granted[User]:
    """The user with this id: the caller, or anybody if the caller administers the server.

    Raises NoSuchUser if the user is missing, deleted or hidden from the caller.
    """
    missing = NoSuchUser(f"User does not exist: {user_id}")
    # the database holds no NUL, and refuses to look for one
    found = User.objects.filter(id=user_id, deleted_at__isnull=True).first() if "\x00" not in user_id else None
    if found is None:
        raise missing
    held_here = privileges(context, chain=[SERVER], project=None)
    if found.id != context.caller.id:
        return authorize(context, found, held_here, chain=[SERVER], action=action, hidden=missing)
    if action in _OWN_ACTIONS:
        return Granted(found, context, held_here, (SERVER,))
    refused = Forbidden(f"Not allowed: {action.value} on yourself needs the privilege {wording(action)} on the server")
    return authorize(context, found, held_here, chain=[SERVER], action=action, hidden=refused)


def user_actions(held: frozenset[Privilege], *, is_self: bool) -> list[UserAction]:
    """The actions that the privileges `held` on the server allow on a user; `is_self`: the user is the caller."""
    return [action for action in UserAction if is_allowed(action, held) or (is_self and action in _OWN_ACTIONS)]


def visible_projects(context: RequestContext) -> list[Project]:
    """The projects that the caller may see, sorted by name: all of them for an administrator of the server."""
    found = Project.objects.order_by("name_key")
    if not may_on_server(context, ServerAction.LIST_PROJECTS):
        found = found.filter(id__in=grants.projects_of(_everywhere(context)))
    return list(found)


def _everywhere(context: RequestContext) -> tuple[PrincipalId, ...]:
    """The caller and the roles of all projects that their token names, or only the role that they assumed."""
    principal = principal_of_caller(context, None)
    own = principal.id == context.caller.id
    return (principal.id, *(token_roles(context, None) if own else ()))


def principals(context: RequestContext, project: Project) -> tuple[PrincipalId, ...]:
    """The ids of the caller and of all their roles in a project, to filter lists by their rights."""
    epoch, caller = Epoch(project.id, project.authz_epoch), context.caller.key
    known = CALLER_PRINCIPALS.find(caller, project.id, epoch)
    if known is None:
        known = tuple(backends.authorizer().principals(principal_of_caller(context, project.id)))
        CALLER_PRINCIPALS.keep(caller, project.id, epoch, known)
    return known


def shown_to(granted: Granted[object], everything: Action, project: Project) -> tuple[PrincipalId, ...] | None:
    """The principals by whose rights a list is filtered; None if the caller may do `everything` and no filter is
    needed.
    """
    return None if granted.allows(everything) else principals(granted.context, project)


def role(context: RequestContext, role_id: str, action: RoleAction, *, project_id: str | None) -> Granted[Role]:
    """The role with this id in the project (None: in any).

    Raises NoSuchRole if it is missing, hidden or of another project.
    """
    missing = NoSuchRole(f"Role does not exist: {role_id}")
    found = _find_role(role_id)
    if found is None:
        raise missing
    if project_id is not None and found.project_id != project_id:
        note_foreign(context, action.value, "role", role_id, project_id=found.project_id)
        raise missing
    return granted(context, found, chain=role_chain(found), action=action, hidden=missing, project=found.project)


def note_foreign(context: RequestContext, action: str, kind: str, identifier: str, *, project_id: str) -> None:
    """Write to the audit of the object's project that a request about another project named the object.

    The request itself is answered as if the object did not exist.
    """
    reason = f"The {kind} was named in a request about another project; answered as not found"
    context.trail.refused = Refused(action, kind, identifier, project_id, reason)


def note_foreign_roles(context: RequestContext, principals: Iterable[PrincipalId], *, project_id: str) -> None:
    """Like `note_foreign`, if one of the principals of a change is a role of another project."""
    ids = [each.removeprefix(ROLE_PREFIX) for each in principals if each.startswith(ROLE_PREFIX)]
    found = Role.objects.filter(id__in=ids).exclude(project_id=project_id).first() if ids else None
    if found is not None:
        note_foreign(context, "name_as_principal", "role", str(found.id), project_id=found.project_id)


def _find_role(identifier: str) -> Role | None:
    try:
        key = UUID(identifier)
    except ValueError:
        return None
    return Role.objects.select_related("project").filter(id=key).first()


def tag_definition(context: RequestContext, definition_id: str, action: TagAction) -> Granted[TagDefinition]:
    """The tag definition with this id, in the project that the request names; in its own if the request names none.

    Raises NoSuchTagDefinition if it is missing, hidden or of another project.
    """
    missing = NoSuchTagDefinition(f"Tag definition does not exist: {definition_id}")
    try:
        key = UUID(definition_id)
    except ValueError:
        raise missing from None
    found = TagDefinition.objects.select_related("project").filter(id=key).first()
    if found is None:
        raise missing
    if context.project_id not in {None, found.project_id}:
        kind = ObjectType.TAG_DEFINITION.value
        note_foreign(context, action.value, kind, definition_id, project_id=found.project_id)
        raise missing
    return granted(context, found, chain=tag_chain(found), action=action, hidden=missing, project=found.project)


def tag_definition_named(
    context: RequestContext, name: str, action: TagAction, *, project_id: str
) -> Granted[TagDefinition]:
    """The project's tag definition with this name, ignoring case. Raises NoSuchTagDefinition."""
    missing = NoSuchTagDefinition(f"Tag definition does not exist: {name}")
    rows = TagDefinition.objects.select_related("project").filter(project_id=project_id)
    # the database holds no NUL, and refuses to look for one
    found = rows.filter(name_key=match_key(name)).first() if "\x00" not in name else None
    if found is None:
        raise missing
    return granted(context, found, chain=tag_chain(found), action=action, hidden=missing, project=found.project)


def visible_warehouses(project: Granted[Project]) -> WarehouseQuerySet:
    """The project's warehouses that the caller may see, sorted by name."""
    found = Warehouse.objects.filter(project=project.target).order_by("name_key")
    if Privilege.DESCRIBE not in project.privileges:
        found = found.shown_to(principals(project.context, project.target), project_id=project.target.id)
    return found


def ensure_active(warehouse: Warehouse) -> None:
    """Raises NoSuchWarehouse for an inactive one. Call it after authorization: the message confirms that it exists."""
    if warehouse.status != Warehouse.Status.ACTIVE:
        raise NoSuchWarehouse(
            f"The warehouse {warehouse.name!r} is inactive: nothing in it can be used until it is activated again"
        )


def warehouse(context: RequestContext, warehouse_id: str | UUID, action: WarehouseAction) -> Granted[Warehouse]:
    """The warehouse with this id, as in `/v1/{prefix}`. Raises NoSuchWarehouse if it is missing or hidden."""
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
    """The project's active warehouse with this name, as in `GET /v1/config?warehouse=`. Raises NoSuchWarehouse."""
    missing = NoSuchWarehouse(f"Warehouse does not exist: {name}")
    # the database holds no NUL, and refuses to look for one
    can_be = PROJECT_ID.fullmatch(project_id) and "\x00" not in name
    found = Warehouse.objects.find_named(project_id, match_key(name)) if can_be else None
    if found is None:
        raise missing
    chain = warehouse_chain(found)
    allowed = granted(context, found, chain=chain, action=action, hidden=missing, project=found.project)
    ensure_active(found)
    return allowed
