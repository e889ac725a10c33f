"""Checks whether OpenFGA resolves chains as long as the configuration allows; for the doctor. Stores nothing.

OpenFGA answers a check that is deeper than its limit with an error, which callers see as 503: nobody gets a right that
they do not have, but those who have it cannot work.
"""

from typing import Final

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.interface import ObjectRef, Principal
from lakewarden.authz.model import Privilege
from lakewarden.authz.openfga.client import MOST_CONTEXTUAL, OpenFga
from lakewarden.authz.openfga.language import ASSIGNEE, here
from lakewarden.authz.openfga.tuples import RelationTuple, asked_as, object_of, parents_of, user_of
from lakewarden.context import PrincipalId, role_principal
from lakewarden.errors import Unavailable

_STEPS: Final = 6
"""The depth of a check without namespaces and nested roles (3), and a reserve of 3."""
_TABLE, _USER = "%probe", PrincipalId("doctor~%probe")


def needed(*, levels: int, nested: int) -> int:
    """The resolve depth that is needed for a table below `levels` namespaces, granted through `nested` roles."""
    return levels + nested + _STEPS


def follows(server: OpenFga, *, levels: int, nested: int) -> bool:
    """Whether the server answers the deepest check. Raises Unavailable if it does not answer a simple one either."""
    if not _answers(server, levels=1, nested=1):
        return False
    try:
        return _answers(server, levels=levels, nested=nested)
    except Unavailable:
        return False


def _answers(server: OpenFga, *, levels: int, nested: int) -> bool:
    chain = [ObjectRef(ObjectType.SERVER, _TABLE), ObjectRef(ObjectType.PROJECT, _TABLE)]
    chain += [ObjectRef(ObjectType.WAREHOUSE, _TABLE)]
    chain += [ObjectRef(ObjectType.NAMESPACE, f"{_TABLE}-{number}") for number in range(levels)]
    chain += [ObjectRef(ObjectType.TABLE, _TABLE)]
    user, _ = asked_as(Principal(_USER))
    parents = parents_of(chain)
    # a check cannot have more contextual tuples
    roles = [role_principal(f"{_TABLE}-{number}") for number in range(min(nested, MOST_CONTEXTUAL - len(parents) - 2))]
    objects = [user_of(role).partition("#")[0] for role in roles]
    inside = [user, *map(user_of, roles)]
    members = [RelationTuple(member, ASSIGNEE, role) for member, role in zip(inside, objects, strict=False)]
    right = RelationTuple(inside[-1], here(Privilege.PROJECT_ADMIN), object_of(chain[1]))
    asked = Privilege.DESCRIBE.value
    return asked in server.held(user, [asked], object_of(chain[-1]), context=[*parents, *members, right])
