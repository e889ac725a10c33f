"""The contract of every authorizer, and `Granted`: the proof that an object was looked up *and* authorized."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lakewarden.authz.actions import Action, ObjectType
from lakewarden.authz.model import Privilege, is_allowed
from lakewarden.context import PrincipalId, RequestContext

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """One object in a chain from the server down to the target."""

    type: ObjectType
    id: str


@dataclass(frozen=True, slots=True)
class Principal:
    """Who can hold privileges: a user or a role. `roles` are those that their token names, beside their memberships."""

    id: PrincipalId
    roles: tuple[PrincipalId, ...] = ()


@dataclass(frozen=True, slots=True)
class Granted(Generic[T_co]):
    """`target`, which `context.caller` may act upon. Only `authorize` builds it; services take nothing else."""

    target: T_co
    context: RequestContext
    privileges: frozenset[Privilege]
    chain: tuple[ObjectRef, ...]
    """From the server down to the target."""

    @property
    def ref(self) -> ObjectRef:
        return self.chain[-1]

    def allows(self, action: Action) -> bool:
        """Whether what the caller holds suffices for another action on the same target."""
        return is_allowed(action, self.privileges)


class Authorizer(Protocol):
    """Says what somebody holds. Raises Unavailable when it cannot know; it never guesses.

    What is granted, and who is in a role, is written to `lakewarden.authz.ledger` by the transaction of the change.
    """

    def privileges(self, principal: Principal, chain: Sequence[ObjectRef]) -> frozenset[Privilege]:
        """All that `principal` holds on the last object of `chain`, directly, by roles, implied and inherited."""
        ...

    def principals(self, principal: Principal) -> Sequence[PrincipalId]:
        """The ids of `principal` and of all its roles: by membership, by its token, or by other roles."""
        ...
