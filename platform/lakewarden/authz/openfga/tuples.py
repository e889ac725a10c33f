"""How principals, objects and the ledger's rows are written as OpenFGA's tuples: an encoding that loses nothing."""

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.interface import ObjectRef, Principal
from lakewarden.authz.ledger.models import EVERYBODY, MANAGED_ACCESS
from lakewarden.authz.openfga import language
from lakewarden.context import ROLE_PREFIX

logger = logging.getLogger(__name__)

LONGEST: Final = 200
"""Characters of an encoded id; OpenFGA takes 256 for an object, its type included, and 512 for a user."""

_EMPTY: Final = "%-"
_HASHED: Final = "%sha256-"
ANYBODY_IN: Final = "user:%member"
"""A user who only has the roles that a question gives them; this is how a role itself is asked about.

No encoded id looks like these three: behind its percent signs stand two hexadecimal digits.
"""

_KINDS: Final = {kind.value: kind for kind in ObjectType}


class RelationTuple(NamedTuple):
    """`user` has `relation` to `object`, all three as OpenFGA writes them."""

    user: str
    relation: str
    object: str

    def plain(self) -> dict[str, str]:
        return self._asdict()

    def __str__(self) -> str:
        return f"{self.user} {self.relation} {self.object}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the ledger, or of its log of changes, in the ledger's words; a membership is `assignee` of a role."""

    principal_id: str
    relation: str
    object_type: str
    object_id: str

    def to_tuple(self) -> RelationTuple | None:
        """As OpenFGA holds it; None, with a warning, for what the model has no place for: nothing follows from it."""
        is_flag = self.relation == MANAGED_ACCESS
        relation = self.relation if is_flag or self.relation == language.ASSIGNEE else f"{self.relation}_here"
        kind = _KINDS.get(self.object_type)
        # a flag is everybody's, and nothing else is
        if kind is None or relation not in language.assignable(kind) or (self.principal_id == EVERYBODY) != is_flag:
            logger.warning("the authorization model does not know %s: it is skipped", self)
            return None
        user = "user:*" if self.principal_id == EVERYBODY else user_of(self.principal_id)
        return RelationTuple(user, relation, object_of(ObjectRef(kind, self.object_id)))

    @classmethod
    def of_tuple(cls, found: RelationTuple) -> "Entry | None":
        """The row that would be written as `found`; None where an id was too long to be written out, or is none."""
        user, _, userset = found.user.partition("#")
        identifier, target = id_of(user), id_of(found.object)
        if identifier is None or target is None or "\x00" in identifier + target:
            return None
        principal = f"{ROLE_PREFIX}{identifier}" if userset else identifier
        kind = found.object.partition(":")[0]
        return cls(principal, found.relation.removesuffix("_here"), kind, target)


def user_of(principal: str) -> str:
    """`user:<id>`, or `role:<id>#assignee` for a role."""
    if principal.startswith(ROLE_PREFIX):
        return f"role:{encoded(principal.removeprefix(ROLE_PREFIX))}#{language.ASSIGNEE}"
    return f"user:{encoded(principal)}"


def object_of(ref: ObjectRef) -> str:
    """`<type>:<id>`."""
    return f"{ref.type.value}:{encoded(ref.id)}"


def id_of(name: str) -> str | None:
    """The id in `<type>:<id>`; None for one that was too long to be written out."""
    _, _, text = name.partition(":")
    if text == _EMPTY:
        return ""
    return None if text.startswith(_HASHED) else unquote(text, errors="surrogatepass")


def encoded(identifier: str) -> str:
    """Percent-encoded, so that no space, colon, '#', '*' or '@' is left; a very long one as its SHA-256."""
    text = quote(identifier, safe="~", errors="surrogatepass")
    if len(text) > LONGEST:
        return _HASHED + hashlib.sha256(identifier.encode(errors="surrogatepass")).hexdigest()
    return text or _EMPTY


def parents_of(chain: Sequence[ObjectRef]) -> list[RelationTuple]:
    """What lies in what, for a chain from the server down; it is told with each question and stored nowhere."""
    names = [object_of(ref) for ref in chain]
    return [RelationTuple(upper, language.PARENT, lower) for upper, lower in pairwise(names)]


def asked_as(principal: Principal) -> tuple[str, list[RelationTuple]]:
    """The user to ask about, and the contextual tuples of their roles."""
    roles: Iterable[str] = principal.roles
    if principal.id.startswith(ROLE_PREFIX):
        user, roles = ANYBODY_IN, [principal.id, *principal.roles]
    else:
        user = user_of(principal.id)
    objects = [user_of(role).partition("#")[0] for role in dict.fromkeys(roles)]
    return user, [RelationTuple(user, language.ASSIGNEE, role) for role in objects]
