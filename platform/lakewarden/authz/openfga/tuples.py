"""Encodes principals, objects and rows of the ledger as OpenFGA tuples, without loss, and decodes them."""

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
"""Characters of an encoded id, at most; OpenFGA's limits are 256 for an object with its type, and 512 for a user."""

_EMPTY: Final = "%-"
_HASHED: Final = "%sha256-"
ANYBODY_IN: Final = "user:%member"
"""A user who has only the roles in a check's contextual tuples; used to check the privileges of a role itself.

No encoded id can equal these three: each percent sign in one is followed by two hexadecimal digits.
"""

_KINDS: Final = {kind.value: kind for kind in ObjectType}


class RelationTuple(NamedTuple):
    """`user` has `relation` to `object`, all three as OpenFGA spells them."""

    user: str
    relation: str
    object: str

    def plain(self) -> dict[str, str]:
        return self._asdict()

    def __str__(self) -> str:
        return f"{self.user} {self.relation} {self.object}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the ledger or of its change log; a membership has the relation `assignee` to a role."""

    principal_id: str
    relation: str
    object_type: str
    object_id: str

    def to_tuple(self) -> RelationTuple | None:
        """The tuple for OpenFGA; None, with a warning, if the model has no relation for it: it has no effect anyway."""
        is_flag = self.relation == MANAGED_ACCESS
        relation = self.relation if is_flag or self.relation == language.ASSIGNEE else f"{self.relation}_here"
        kind = _KINDS.get(self.object_type)
        # flags belong to EVERYBODY, and grants never do
        if kind is None or relation not in language.assignable(kind) or (self.principal_id == EVERYBODY) != is_flag:
            logger.warning("the authorization model does not know %s: it is skipped", self)
            return None
        user = "user:*" if self.principal_id == EVERYBODY else user_of(self.principal_id)
        return RelationTuple(user, relation, object_of(ObjectRef(kind, self.object_id)))

    @classmethod
    def of_tuple(cls, found: RelationTuple) -> "Entry | None":
        """The row that is encoded as `found`; None if one of its ids is hashed or not valid."""
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
    """The id in `<type>:<id>`; None if it is hashed."""
    _, _, text = name.partition(":")
    if text == _EMPTY:
        return ""
    return None if text.startswith(_HASHED) else unquote(text, errors="surrogatepass")


def encoded(identifier: str) -> str:
    """Percent-encode an id, so it has no space, colon, '#', '*' or '@'; a very long one is replaced by its SHA-256."""
    text = quote(identifier, safe="~", errors="surrogatepass")
    if len(text) > LONGEST:
        return _HASHED + hashlib.sha256(identifier.encode(errors="surrogatepass")).hexdigest()
    return text or _EMPTY


def parents_of(chain: Sequence[ObjectRef]) -> list[RelationTuple]:
    """The parents of a chain (server first), which are sent as contextual tuples with each check and not stored."""
    names = [object_of(ref) for ref in chain]
    return [RelationTuple(upper, language.PARENT, lower) for upper, lower in pairwise(names)]


def asked_as(principal: Principal) -> tuple[str, list[RelationTuple]]:
    """The user to check, and the contextual tuples of their roles."""
    roles: Iterable[str] = principal.roles
    if principal.id.startswith(ROLE_PREFIX):
        user, roles = ANYBODY_IN, [principal.id, *principal.roles]
    else:
        user = user_of(principal.id)
    objects = [user_of(role).partition("#")[0] for role in dict.fromkeys(roles)]
    return user, [RelationTuple(user, language.ASSIGNEE, role) for role in objects]
