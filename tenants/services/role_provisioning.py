"""Brings many roles of a project, with their members, to a wanted state in one transaction. Idempotent."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from django.db import IntegrityError
from django.db.models import Q

from lakewarden.authz.actions import RoleAction
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger.models import Membership
from lakewarden.context import PrincipalId, RequestContext
from lakewarden.db_transaction import changing
from lakewarden.errors import AlreadyExists, BadRequest
from lakewarden.names import check_name, match_key
from tenants import access
from tenants.models import Project, Role
from tenants.services import projects, role_members, roles, user_removal
from tenants.services.roles import Source

MAX_ROLES = 1000
MAX_MEMBERS = 10_000


@dataclass(frozen=True, slots=True)
class WantedRole:
    """A role, identified by its source, or by its name if it has none; None leaves a field as it is."""

    name: str
    description: str | None
    source: Source | None
    members: frozenset[PrincipalId] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    id: UUID
    name: str
    outcome: Literal["created", "updated", "unchanged"]


@dataclass(slots=True)
class _Step:
    """The changes of one role."""

    role: Role
    is_new: bool
    name: str
    description: str | None
    added: list[PrincipalId]
    removed: list[PrincipalId]

    @property
    def describes(self) -> bool:
        return not self.is_new and (self.role.name, self.role.description) != (self.name, self.description)

    def outcome(self) -> Outcome:
        if self.is_new:
            return Outcome(self.role.id, self.name, "created")
        changes = self.describes or self.added or self.removed
        return Outcome(self.role.id, self.name, "updated" if changes else "unchanged")


def provision(granted: Granted[Project], wanted: Sequence[WantedRole], *, prune: bool) -> list[Outcome]:
    """Create, rename and describe roles and add members; `prune` also removes members who are not listed.

    All or none; the outcomes are in the order of `wanted`. Raises BadRequest for too many roles or the same role twice,
    InvalidArgument for an invalid name, AlreadyExists if a role of another source has the name, Forbidden if the caller
    may not change one of the roles, and what `role_members.add` raises.
    """
    _check(wanted)
    project, context = granted.target, granted.context
    try:
        with changing():
            projects.lock_graph(project.id)
            steps = _plan(project, wanted, prune=prune)
            everybody = {member for each in wanted for member in each.members or ()}
            # roles are locked before users, in the same order as grants lock them: otherwise the two could deadlock
            role_members.ensure_known(everybody, project_id=project.id)
            user_removal.hold(member for step in steps for member in step.removed)
            _authorize(context, steps)
            outcomes = [step.outcome() for step in steps]
            _apply(context, steps)
            if any(each.outcome != "unchanged" for each in outcomes):
                # tokens may already name a new role: decisions that were made without it are no longer valid
                projects.bump_epoch(project.id)
    except IntegrityError as error:
        # raised at the commit: the project was deleted meanwhile
        raise roles.taken(Role(project=project), error) from error
    return outcomes


def _check(wanted: Sequence[WantedRole]) -> None:
    if len(wanted) > MAX_ROLES:
        raise BadRequest(f"{len(wanted)} roles in one request: at most {MAX_ROLES} are allowed")
    count = sum(len(each.members or ()) for each in wanted)
    if count > MAX_MEMBERS:
        raise BadRequest(f"{count} members in one request: at most {MAX_MEMBERS} are allowed")
    for each in wanted:
        check_name(each.name, what="role")


def _plan(project: Project, wanted: Sequence[WantedRole], *, prune: bool) -> list[_Step]:
    """Compare what is wanted with what is stored. The caller holds `projects.lock_graph`.

    Nothing is written here, so `_authorize` decides by the state before the request.
    """
    steps = _matched(project, wanted)
    there: dict[str, set[PrincipalId]] = defaultdict(set)
    listed = [step.role.principal for step, each in zip(steps, wanted, strict=True) if each.members is not None]
    for role, member in Membership.objects.filter(role_id__in=listed).values_list("role_id", "member_id"):
        there[role].add(PrincipalId(member))
    for step, each in zip(steps, wanted, strict=True):
        if each.members is not None:
            step.added = sorted(each.members - there[step.role.principal])
            step.removed = sorted(there[step.role.principal] - each.members) if prune else []
    return steps


def _matched(project: Project, wanted: Sequence[WantedRole]) -> list[_Step]:
    keys = [match_key(each.name) for each in wanted]
    sources = [each.source for each in wanted if each.source is not None]
    known = list(
        Role.objects.filter(project=project)
        .filter(Q(name_key__in=keys) | Q(source_id__in=[source.source_id for source in sources]))
        .order_by("id")
        .select_for_update()
    )
    by_name = {role.name_key: role for role in known}
    by_source = {Source(role.provider_id, role.source_id): role for role in known}
    steps: list[_Step] = []
    seen: set[object] = set()
    for index, (each, key) in enumerate(zip(wanted, keys, strict=True)):
        named = by_name.get(key)
        role = by_source.get(each.source) if each.source is not None else named
        if role is None and named is not None:
            raise AlreadyExists(
                f"roles[{index}]: the name {each.name!r} is that of the role {named.id}, which stands for "
                f"{named.provider_id}~{named.source_id}: rebind it by PUT /role/{named.id}/source-system first"
            )
        marks = {key, each.source or key, role.id if role else key}
        if marks & seen:
            raise BadRequest(f"roles[{index}]: the role {each.name!r} is described twice in this request")
        seen |= marks
        description = each.description if each.description is not None or role is None else role.description
        target = role or roles.built(project, each.name, description=description, source=each.source)
        steps.append(_Step(target, role is None, each.name, description, [], []))
    return steps


def _authorize(context: RequestContext, steps: Sequence[_Step]) -> None:
    """The right to create roles does not include changing existing ones. Called before anything is written."""
    for step in steps:
        identifier, project_id = str(step.role.id), step.role.project_id
        if step.describes:
            access.role(context, identifier, RoleAction.UPDATE, project_id=project_id)
        if not step.is_new and (step.added or step.removed):
            access.role(context, identifier, RoleAction.MANAGE_ASSIGNMENTS, project_id=project_id)


def _apply(context: RequestContext, steps: Sequence[_Step]) -> None:
    for step in steps:
        try:
            if step.is_new:
                roles.insert(step.role, context)
            elif step.describes:
                roles.describe(step.role, context, name=step.name, description=step.description)
        except IntegrityError as error:
            raise roles.taken(step.role, error) from error
    # members are removed first: one request may reverse a hierarchy, which would be a cycle in the other order
    for step in steps:
        role_members.change(step.role, context, (), step.removed)
    for step in steps:
        role_members.change(step.role, context, step.added, ())
