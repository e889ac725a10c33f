"""The contract of every authorizer, and `Granted`: the proof that an object was looked up *and* authorized."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lakewarden.authz.actions import Action, ObjectType
from lakewarden.authz.decisions import KNOWN, Epoch
from lakewarden.authz.model import Privilege, closure, required
from lakewarden.context import PrincipalId, RequestContext
from lakewarden.errors import Forbidden, LakewardenError

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """One object in a chain from the server down to the target."""

    type: ObjectType
    id: str


@dataclass(frozen=True, slots=True)
class Granted(Generic[T_co]):
    """`target`, which `context.actor` may act upon. Only `authorize` builds it; services take nothing else."""

    target: T_co
    context: RequestContext
    privileges: frozenset[Privilege]


class Authorizer(Protocol):
    """Keeps grants and says what a principal holds. Raises Unavailable when it cannot know; it never guesses.

    Changes are part of the caller's transaction, which also bumps the project's authorization epoch.
    """

    def privileges(self, principal: PrincipalId, chain: Sequence[ObjectRef]) -> frozenset[Privilege]:
        """Privileges granted to `principal` on any object of `chain`, without what they imply."""
        ...

    def grants_on(self, ref: ObjectRef) -> list[tuple[PrincipalId, Privilege]]:
        """Everything granted on this very object, by principal and privilege."""
        ...

    def add_grants(
        self,
        ref: ObjectRef,
        grants: Iterable[tuple[PrincipalId, Privilege]],
        *,
        project_id: str | None,
        granted_by: PrincipalId,
    ) -> None:
        """Add what is missing."""
        ...

    def remove_grants(self, ref: ObjectRef, grants: Iterable[tuple[PrincipalId, Privilege]]) -> None:
        """Remove what is there."""
        ...

    def remove_object(self, ref: ObjectRef) -> None:
        """Forget an object that is gone."""
        ...


def authorize(
    authorizer: Authorizer,
    context: RequestContext,
    target: T,
    *,
    chain: Sequence[ObjectRef],
    action: Action,
    hidden: LakewardenError,
    epoch: Epoch | None,
) -> Granted[T]:
    """Grant `action` on `target`, the last object of `chain`; `epoch` was read with it (None: ask each time).

    Raises `hidden` (the answer for an object that does not exist) when the caller may not even see the target, and
    Forbidden when he sees it but may not do this.
    """
    kind = chain[-1].type
    held = KNOWN.find(context.actor.id, chain[-1].id, epoch) if epoch is not None else None
    if held is None:
        held = closure(authorizer.privileges(context.actor.id, chain), on=kind)
        if epoch is not None:
            KNOWN.keep(context.actor.id, chain[-1].id, epoch, held)
    if required(action) not in held:
        if Privilege.DESCRIBE not in held:
            raise hidden
        raise Forbidden(f"Not allowed: {action.value} on this {kind.value} needs the privilege {required(action)!s}")
    return Granted(target, context, held)
