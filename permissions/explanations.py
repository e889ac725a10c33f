"""Explains why a principal may or may not do an action, and lists who may. Never used to authorize a request.

Called by the management API, which first checks that the caller may ask.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from lakewarden import config
from lakewarden.authz.actions import Action, ObjectType
from lakewarden.authz.explanation import Explanation, Facts, Given, Path, explain, is_helped_from_below, reach, shown
from lakewarden.authz.interface import ObjectRef, Principal
from lakewarden.authz.ledger import explained
from lakewarden.authz.ledger.models import MANAGED_ACCESS
from lakewarden.authz.model import Privilege
from lakewarden.context import ROLE_PREFIX, PrincipalId, RequestContext
from lakewarden.errors import NotSupported
from lakewarden.paging import Page
from permissions import public_ids
from tenants import access
from tenants.models import Project, Role, User

_GRANT_READERS = frozenset({Privilege.MANAGE_GRANTS, Privilege.ADMIN, Privilege.OPERATOR})

RolesOf = Mapping[PrincipalId, Sequence[PrincipalId]]


@dataclass(frozen=True, slots=True)
class NamedExplanation:
    """An explanation with the names of its roles.

    `origins` says how the principal got a role without a membership: `token` or `assumed`.
    """

    explanation: Explanation
    role_names: Mapping[PrincipalId, str]
    origins: Mapping[PrincipalId, str] = field(default_factory=dict)
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Holder:
    """A principal who may do the action, and why."""

    principal: PrincipalId
    explanation: Explanation


class Reader:
    """Decides which grants the caller may read: on the objects of a chain, and on objects inside its last one."""

    def __init__(self, context: RequestContext, chain: Sequence[ObjectRef]) -> None:
        self._context = context
        self._chain = list(chain)
        self._held: dict[int, frozenset[Privilege]] = {}

    def is_above(self, ref: ObjectRef) -> bool:
        """Whether the object is in the chain; a caller who sees the last object also knows those above it."""
        return ref in self._chain

    def may_read(self, ref: ObjectRef) -> bool:
        """Whether the caller may read all grants on the object."""
        if ref in self._chain:
            return not self._on(self._chain.index(ref)).isdisjoint(_GRANT_READERS)
        seen = shown(self._chain)
        return seen is not None and Privilege.MANAGE_GRANTS in self._on(self._chain.index(seen))

    def _on(self, place: int) -> frozenset[Privilege]:
        if place not in self._held:
            project = Project.objects.filter(id=_project_of(self._chain)).first() if place else None
            self._held[place] = access.privileges(self._context, chain=self._chain[: place + 1], project=project)
        return self._held[place]


def of_caller(context: RequestContext, chain: Sequence[ObjectRef], action: Action) -> NamedExplanation:
    """Why the caller may or may not do the action on the last object of `chain`, including roles from their token.

    Raises NotSupported if authorization is off, BadRequest or Forbidden for a role that they may not assume.
    """
    principal = access.principal_of_caller(context, _project_of(chain))
    start: dict[PrincipalId, Path] = {principal.id: (), **{role: (role,) for role in principal.roles}}
    origins = dict.fromkeys(principal.roles, "token")
    if context.caller.assumed_role is not None and principal.id.startswith(ROLE_PREFIX):
        start, origins = {principal.id: (principal.id,)}, {principal.id: "assumed"}
    return _explained(principal, start, chain, action, origins)


def of_principal(principal: PrincipalId, chain: Sequence[ObjectRef], action: Action) -> NamedExplanation:
    """Like `of_caller`, for another principal, without roles from a token: the server does not have their token."""
    asked = access.principal_of(principal)
    return _explained(asked, {asked.id: ()}, chain, action, {})


def who_may(chain: Sequence[ObjectRef], action: Action, page: Page, *, expand: bool) -> tuple[list[Holder], str | None]:
    """A page of the principals who may do the action, sorted by id, and the key of the next page.

    Candidates are all principals with a grant on an object of the chain (or inside it, where that is enough for the
    action); `expand` adds the members of such roles. Raises NotSupported if authorization is off.
    """
    _ensure_ledger_decides()
    facts = _facts(chain, action, principals=None)
    candidates = {*facts.granted, *facts.below}
    if expand:
        roles = [each for each in candidates if each.startswith(ROLE_PREFIX)]
        candidates.update(explained.members_below(roles))
    candidates = {each for each in candidates if each > (page.after or "")} - deleted(candidates)
    roles_of = _roles_of(candidates)
    found: list[tuple[Holder, str]] = []
    for principal in sorted(candidates):
        explanation = explain(action, facts, reach({principal: ()}, roles_of))
        if explanation.allowed:
            found.append((Holder(principal, explanation), str(principal)))
        if page.limit is not None and len(found) == page.limit:
            break
    return page.cut(found)


def role_names(explanations: Collection[Explanation]) -> dict[PrincipalId, str]:
    """The names of all roles in the explanations."""
    principals = {role for each in explanations for reason in each.because for role in reason.through}
    ids = [principal.removeprefix(ROLE_PREFIX) for principal in principals]
    return {role.principal: role.name for role in Role.objects.filter(id__in=ids)}


def _explained(
    principal: Principal,
    start: Mapping[PrincipalId, Path],
    chain: Sequence[ObjectRef],
    action: Action,
    origins: Mapping[PrincipalId, str],
) -> NamedExplanation:
    _ensure_ledger_decides()
    reached = reach(start, _roles_of(start))
    explanation = explain(action, _facts(chain, action, principals=reached), reached)
    return NamedExplanation(explanation, role_names([explanation]), origins, is_deleted=not principal.id)


def _ensure_ledger_decides() -> None:
    if config.current().authorization.is_off:
        raise NotSupported(
            "Authorization is off (authorization.backend = allow-all): everybody may do everything, "
            "so there are no grants to explain"
        )


def _project_of(chain: Sequence[ObjectRef]) -> str | None:
    return next((ref.id for ref in chain if ref.type is ObjectType.PROJECT), None)


def _facts(chain: Sequence[ObjectRef], action: Action, *, principals: Collection[PrincipalId] | None) -> Facts:
    """The grants on the chain that concern the principals; None: all principals."""
    on_chain = {ref: ref for ref in chain}
    granted: dict[PrincipalId, list[Given]] = {}
    managed: set[ObjectRef] = set()
    for kind, identifier, principal, privilege, granted_by in explained.granted_on(chain, principals):
        ref = on_chain[ObjectRef(ObjectType(kind), identifier)]
        if privilege == MANAGED_ACCESS:
            managed.add(ref)
        else:
            given = _given(ref, principal, privilege, granted_by)
            granted.setdefault(given.principal, []).append(given)
    below: dict[PrincipalId, Given] = {}
    seen = shown(chain)
    if seen is not None and is_helped_from_below(action, chain):
        inside = explained.granted_inside(seen, principals, project_id=_project_of(chain))
        rows = [(ObjectRef(ObjectType(kind), identifier), row) for kind, identifier, *row in inside]
        known = public_ids.known({ref for ref, _ in rows})
        below = {given.principal: given for given in (_given(known[ref], *row) for ref, row in rows if ref in known)}
    return Facts(tuple(chain), granted, below, frozenset(managed))


def _given(ref: ObjectRef, principal: str, privilege: str, granted_by: str) -> Given:
    return Given(ref, PrincipalId(principal), Privilege(privilege), PrincipalId(granted_by))


def _roles_of(principals: Collection[PrincipalId]) -> RolesOf:
    """The direct memberships of the principals and of all roles above them."""
    found: dict[PrincipalId, list[PrincipalId]] = {}
    for member, role in explained.memberships_above(principals):
        found.setdefault(member, []).append(role)
    return found


def deleted(principals: Collection[PrincipalId]) -> set[PrincipalId]:
    """Those who are deleted users, whose grants have no effect."""
    gone = User.objects.filter(id__in=principals, deleted_at__isnull=False)
    return {PrincipalId(identifier) for identifier in gone.values_list("id", flat=True)}
