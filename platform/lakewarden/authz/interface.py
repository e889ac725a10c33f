"""The interface of authorizers, and `Granted`, which proves that an object was looked up *and* authorized."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from lakewarden.authz.actions import Action, ObjectType
from lakewarden.authz.model import Privilege, is_allowed
from lakewarden.context import PrincipalId, RequestContext

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """A reference to one object; a chain of them leads from the server down to the target.

    Rights hang on `id`. `known_as` is the object's id for callers, where that is another one: use `public_id` for
    whatever a caller, an event or the audit gets to see.
    """

    type: ObjectType
    id: str
    known_as: str | None = field(default=None, compare=False)

    @property
    def public_id(self) -> str:
        return self.known_as or self.id


@dataclass(frozen=True, slots=True)
class Principal:
    """A user or a role, who can hold privileges. `roles` are those that the token names, in addition to memberships."""

    id: PrincipalId
    roles: tuple[PrincipalId, ...] = ()


@dataclass(frozen=True, slots=True)
class Granted(Generic[T_co]):
    """Proves that `context.caller` may act on `target`.

    Only `authorize` builds it, and services accept nothing else.
    """

    target: T_co
    context: RequestContext
    privileges: frozenset[Privilege]
    chain: tuple[ObjectRef, ...]
    """From the server down to the target."""

    @property
    def ref(self) -> ObjectRef:
        return self.chain[-1]

    def allows(self, action: Action) -> bool:
        """Whether the caller's privileges allow another action on the same target."""
        return is_allowed(action, self.privileges)


class Authorizer(Protocol):
    """Answers which privileges a principal holds. Raises Unavailable if it cannot find out; it never guesses.

    Grants and memberships are not written through it, but to `lakewarden.authz.ledger` in the change's transaction.
    """

    def privileges(self, principal: Principal, chain: Sequence[ObjectRef]) -> frozenset[Privilege]:
        """All privileges of `principal` on the last object of `chain`: granted directly or to its roles, implied,
        inherited.
        """
        ...

    def principals(self, principal: Principal) -> Sequence[PrincipalId]:
        """The ids of `principal` and of all its roles: by membership, by its token, or through other roles."""
        ...
