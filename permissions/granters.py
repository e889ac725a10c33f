"""Who can grant a right that the caller misses, told as far as they may know it. Never used to authorize a request."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from catalog.tabular_types import word_of
from lakewarden.authz.actions import Action, ObjectType, ProjectAction, ServerAction
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.ledger import explained
from lakewarden.authz.ledger.models import EVERYBODY, MANAGED_ACCESS
from lakewarden.authz.model import GRANTABLE, REQUIRED, Level, Privilege, effective, is_allowed, may_grant
from lakewarden.context import ROLE_PREFIX, PrincipalId, RequestContext
from permissions.explanations import Reader, deleted
from tenants import access
from tenants.models import Project
from tenants.services import principal_names

MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Granter:
    """`name` is empty if the caller may not know it; `what` says then what they are, such as `an administrator of the
    project`.
    """

    name: str
    what: str


def of(context: RequestContext, chain: Sequence[ObjectRef], action: Action) -> list[Granter]:
    """Those who can grant what `action` on the last object of the chain needs, the nearest to it first.

    A role has its name for whoever lists the roles of the project, a user for whoever lists the users of the server or
    reads the grants on the object that their right comes from; of each kind of others there is one entry.
    """
    found = _found(chain, action)
    names = principal_names.of(found)
    sees_roles, sees_users = _lists_roles(context, chain), access.may_on_server(context, ServerAction.LIST_USERS)
    reader = Reader(context, chain)
    named, kinds = list[Granter](), dict[str, Granter]()
    for principal in sorted(found, key=lambda each: (-found[each], names.get(each, each))):
        place, is_role = chain[found[principal]], principal.startswith(ROLE_PREFIX)
        may_know = (sees_roles if is_role else sees_users) or reader.may_read(place)
        if may_know and len(named) < MOST_NAMED:
            named.append(Granter(names.get(principal, principal), "role" if is_role else "user"))
        elif not may_know:
            kinds.setdefault(_kind(place), Granter("", _kind(place)))
    return [*named, *kinds.values()]


def _found(chain: Sequence[ObjectRef], action: Action) -> dict[PrincipalId, int]:
    """The principals who can grant it, and the place in the chain down from which their grants are enough."""
    managed = set[ObjectRef]()
    granted: dict[PrincipalId, dict[ObjectRef, set[Privilege]]] = defaultdict(lambda: defaultdict(set))
    for kind, identifier, principal, privilege, _ in explained.granted_on(chain, None):
        ref = ObjectRef(ObjectType(kind), identifier)
        if privilege == MANAGED_ACCESS:
            managed.add(ref)
        elif principal != EVERYBODY:
            granted[PrincipalId(principal)][ref].add(Privilege(privilege))
    found = {}
    for principal, held in granted.items():
        for place in reversed(range(len(chain))):
            if _can(chain, {ref: held[ref] for ref in chain[place:] if ref in held}, managed, action):
                found[principal] = place
                break
    gone = deleted(found)
    return {principal: place for principal, place in found.items() if principal not in gone}


def _can(
    chain: Sequence[ObjectRef],
    held: Mapping[ObjectRef, Iterable[Privilege]],
    managed: set[ObjectRef],
    action: Action,
) -> bool:
    levels = [Level(ref.type, held.get(ref, ()), ref in managed) for ref in chain]
    on, has = chain[-1].type, effective(levels)
    wanted = [GRANTABLE[on] & alternatives for alternatives in REQUIRED[action]]
    return all(any(may_grant(each, has, on=on) for each in alternatives) for alternatives in wanted if alternatives)


def _lists_roles(context: RequestContext, chain: Sequence[ObjectRef]) -> bool:
    place = next((index for index, ref in enumerate(chain) if ref.type is ObjectType.PROJECT), None)
    project = None if place is None else Project.objects.filter(id=chain[place].id).first()
    if place is None or project is None:
        return False
    return is_allowed(
        ProjectAction.LIST_ROLES, access.privileges(context, chain=list(chain[: place + 1]), project=project)
    )


def _kind(place: ObjectRef) -> str:
    if place.type in {ObjectType.SERVER, ObjectType.PROJECT}:
        return f"an administrator of the {place.type.value}"
    return f"whoever owns the {word_of(place.type.value)} or manages its grants"
