"""Creates, lists, changes and deletes the roles of a project, including their binding to an
identity provider's group.
"""

import re
from dataclasses import dataclass
from uuid import UUID

from django.db import IntegrityError
from django.utils import timezone
from psycopg.errors import ForeignKeyViolation, UniqueViolation

from lakewarden import quotas
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants, members
from lakewarden.context import RequestContext
from lakewarden.db_transaction import changing
from lakewarden.errors import AlreadyExists, InvalidArgument, LakewardenError, NoSuchProject, NoSuchRole
from lakewarden.events.change_recording import Change, record
from lakewarden.ids import new_id
from lakewarden.names import check_name, match_key
from lakewarden.paging import Page
from tenants.access import role_chain
from tenants.models import Project, Role
from tenants.models.role import OWN_PROVIDER
from tenants.services import projects

RESERVED_PROVIDER = "system"
MAX_DESCRIPTION_LENGTH = 2000
_PROVIDER_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_MAX_SOURCE_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Source:
    """The group that a role is bound to: `source_id` at the identity provider `provider_id`."""

    provider_id: str
    source_id: str

    @classmethod
    def given(cls, provider_id: str | None, source_id: str | None) -> "Source | None":
        """Parse the two members of a request body; None if both are missing.

        Raises InvalidArgument if one is invalid or only one is given.
        """
        if provider_id is None and source_id is None:
            return None
        if provider_id is None or source_id is None:
            raise InvalidArgument("provider-id and source-id belong together: give both, or neither")
        if not _PROVIDER_ID.fullmatch(provider_id) or provider_id == RESERVED_PROVIDER:
            raise InvalidArgument(
                f"Invalid provider-id {provider_id[:80]!r}: 1 to 64 of a-z, 0-9 and '-' are expected, "
                f"and {RESERVED_PROVIDER!r} is reserved"
            )
        if not (0 < len(source_id) <= _MAX_SOURCE_LENGTH and source_id.isprintable()):
            raise InvalidArgument(
                f"Invalid source-id {source_id[:80]!r}: 1 to {_MAX_SOURCE_LENGTH} printable characters are expected"
            )
        return cls(provider_id, source_id)

    @classmethod
    def own(cls) -> "Source":
        """The source of a role that is not bound to a group; unique for each role."""
        return cls(OWN_PROVIDER, str(new_id()))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filters of a list of roles, all of which must match; an empty set or None does not filter."""

    ids: frozenset[UUID] = frozenset()
    provider_ids: frozenset[str] = frozenset()
    source_ids: frozenset[str] = frozenset()
    name: str | None = None


def create(granted: Granted[Project], name: str, *, description: str | None, source: Source | None) -> Role:
    """Create a role; the caller becomes its owner.

    Raises InvalidArgument for an invalid name, AlreadyExists if the name (ignoring case) or the source is taken.
    """
    role = built(granted.target, name, description=description, source=source)
    try:
        with changing():
            projects.lock_graph(role.project_id)
            projects.bump_epoch(role.project_id)
            insert(role, granted.context)
    except IntegrityError as error:
        raise taken(role, error) from error
    return role


def built(project: Project, name: str, *, description: str | None, source: Source | None) -> Role:
    """A role that is not stored yet. Raises InvalidArgument for an invalid name."""
    check_name(name, what="role")
    source = source or Source.own()
    return Role(
        id=new_id(),
        project=project,
        name=name,
        name_key=match_key(name),
        description=description,
        provider_id=source.provider_id,
        source_id=source.source_id,
    )


def insert(role: Role, context: RequestContext) -> None:
    """Store the role, owned by the caller.

    The same transaction must bump the project's epoch, because tokens may already name the role's source. Raises
    IntegrityError if the name or the source is taken.
    """
    rows = Role.objects.filter(project_id=role.project_id)
    quotas.ensure_room("roles_in_project", rows, within=role.project_id)
    role.save(force_insert=True)
    grants.give_creator(role_chain(role), context.caller)
    data = {"name": role.name, "provider-id": role.provider_id, "source-id": role.source_id}
    record(Change("createRole", "role", str(role.id), role.project_id, data), context)


def listed(granted: Granted[Project], wanted: Wanted, page: Page) -> tuple[list[Role], str | None]:
    """A page of the project's roles, sorted by name, and the key of the next page."""
    found = Role.objects.filter(project=granted.target).order_by("name_key")
    if wanted.ids:
        found = found.filter(id__in=wanted.ids)
    if wanted.provider_ids:
        found = found.filter(provider_id__in=wanted.provider_ids)
    if wanted.source_ids:
        found = found.filter(source_id__in=wanted.source_ids)
    if wanted.name is not None:
        found = found.filter(name_key__contains=match_key(wanted.name))
    if page.after is not None:
        found = found.filter(name_key__gt=page.after)
    return page.cut([(role, role.name_key) for role in found[: page.limit]])


def update(granted: Granted[Role], name: str, *, description: str | None) -> Role:
    """Set name and description (None removes it). Raises what `create` raises, and NoSuchRole if it was deleted."""
    check_name(name, what="role")
    role = granted.target
    try:
        with changing():
            role = locked(role)
            describe(role, granted.context, name=name, description=description)
    except IntegrityError as error:
        raise taken(role, error) from error
    return role


def describe(role: Role, context: RequestContext, *, name: str, description: str | None) -> bool:
    """Store a name and a description; returns whether that changed anything."""
    changed = [
        field for field, value in (("name", name), ("description", description)) if getattr(role, field) != value
    ]
    if changed:
        role.name, role.name_key, role.description, role.updated_at = name, match_key(name), description, timezone.now()
        role.save(update_fields=["name", "name_key", "description", "updated_at"])
        record(Change("updateRole", "role", str(role.id), role.project_id, {"name": name, "fields": changed}), context)
    return bool(changed)


def rebind(granted: Granted[Role], source: Source) -> Role:
    """Bind the role to another group. It applies to the next request of every caller.

    Raises AlreadyExists if another role of the project is bound to the group, NoSuchRole if the role was deleted.
    """
    role = granted.target
    try:
        with changing():
            role = locked(role)
            if (role.provider_id, role.source_id) == (source.provider_id, source.source_id):
                return role
            projects.bump_epoch(role.project_id)  # first: creations take the project's row before a role's
            role.provider_id, role.source_id, role.updated_at = source.provider_id, source.source_id, timezone.now()
            role.save(update_fields=["provider_id", "source_id", "updated_at"])
            data = {"provider-id": source.provider_id, "source-id": source.source_id}
            record(Change("updateRoleSource", "role", str(role.id), role.project_id, data), granted.context)
    except IntegrityError as error:
        raise taken(role, error) from error
    return role


def delete(granted: Granted[Role]) -> None:
    """Delete the role with its privileges, members, memberships and owners."""
    with changing():
        projects.lock_graph(granted.target.project_id)
        role = locked(granted.target)
        projects.bump_epoch(role.project_id)
        grants.forget_object(role_chain(role)[-1])
        grants.forget_principal(role.principal)
        members.forget_principal(role.principal)
        # built before `delete`, which sets the id to None
        change = Change("deleteRole", "role", str(role.id), role.project_id, {"name": role.name})
        role.delete()
        record(change, granted.context)


def locked(role: Role) -> Role:
    """The current row, locked until the transaction ends. Raises NoSuchRole if it was deleted."""
    found = Role.objects.select_for_update().filter(id=role.id).first()
    if found is None:
        raise NoSuchRole(f"Role does not exist: {role.id}")
    return found


def taken(role: Role, error: IntegrityError) -> LakewardenError:
    """The error for a violated constraint: the name or source is taken, or the project was deleted."""
    cause = error.__cause__
    if isinstance(cause, ForeignKeyViolation):
        return NoSuchProject(f"Project does not exist: {role.project_id}")
    is_source = isinstance(cause, UniqueViolation) and cause.diag.constraint_name == "role_source_unique"
    what = f"source {role.provider_id}~{role.source_id}" if is_source else f"name {role.name!r}"
    return AlreadyExists(f"A role with the {what} exists already in this project")
