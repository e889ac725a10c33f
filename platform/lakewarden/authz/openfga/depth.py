"""Whether OpenFGA follows a chain as long as the configuration allows; asked by the doctor, with nothing stored.

A question that leads deeper than the server's limit is answered with an error, which is Unavailable for our callers:
nobody gets a right that they do not have, and those who have it cannot work.
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
"""What a question needs beside a step for each level of namespaces and each nested role (3), and some more."""
_TABLE, _USER = "%probe", PrincipalId("doctor~%probe")


def needed(*, levels: int, nested: int) -> int:
    """The limit that the deepest question needs: a table below so many levels, held by so many nested roles."""
    return levels + nested + _STEPS


def follows(server: OpenFga, *, levels: int, nested: int) -> bool:
    """Whether the server answers the deepest question. Raises Unavailable when it cannot be asked at all."""
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
    # no more can be told with a question
    roles = [role_principal(f"{_TABLE}-{number}") for number in range(min(nested, MOST_CONTEXTUAL - len(parents) - 2))]
    objects = [user_of(role).partition("#")[0] for role in roles]
    inside = [user, *map(user_of, roles)]
    members = [RelationTuple(member, ASSIGNEE, role) for member, role in zip(inside, objects, strict=False)]
    right = RelationTuple(inside[-1], here(Privilege.PROJECT_ADMIN), object_of(chain[1]))
    asked = Privilege.DESCRIBE.value
    return asked in server.held(user, [asked], object_of(chain[-1]), context=[*parents, *members, right])
