"""Decides whether the caller may do an action on an object; called by the access modules, the only place to decide."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from lakewarden.authz.actions import Action, ObjectType, UserAction
from lakewarden.authz.decision_cache import HELD_PRIVILEGES, Epoch
from lakewarden.authz.interface import Authorizer, Granted, ObjectRef, Principal, T
from lakewarden.authz.model import REQUIRED, Privilege, is_allowed, wording
from lakewarden.context import Allowed, Refused, RequestContext
from lakewarden.errors import Forbidden, LakewardenError


def held(
    authorizer: Authorizer,
    context: RequestContext,
    *,
    principal: Callable[[], Principal],
    chain: Sequence[ObjectRef],
    epoch: Epoch | None,
) -> frozenset[Privilege]:
    """All privileges of the caller on the last object of `chain`, cached under `epoch` (None: not cached).

    `epoch` must have been read in the same query as the object. Raises Unavailable if the authorizer cannot decide.
    """
    caller, object_id = context.caller.key, chain[-1].id
    known = HELD_PRIVILEGES.find(caller, object_id, epoch) if epoch is not None else None
    if known is not None:
        return known
    found = authorizer.privileges(principal(), chain)
    if epoch is not None:
        HELD_PRIVILEGES.keep(caller, object_id, epoch, found)
    return found


def authorize(
    context: RequestContext,
    target: T,
    held: frozenset[Privilege],
    *,
    chain: Sequence[ObjectRef],
    action: Action,
    hidden: LakewardenError,
) -> Granted[T]:
    """Decide whether the privileges `held` on `target`, the last object of `chain`, allow `action`; note it for the
    audit.

    Raises `hidden` (the error for an object that does not exist) if the caller may not see the target, and Forbidden if
    they may see it but not do this.
    """
    _note(context, chain)
    last, is_hidden = chain[-1], Privilege.SEE not in held
    # users are not in the chain, which ends at the server for them
    is_user = isinstance(action, UserAction)
    about = ("user", str(getattr(target, "id", last.id))) if is_user else (last.type.value, last.public_id)
    if is_allowed(action, held):
        noted = Allowed(action.value, *about, _project_of(chain), deciding(action, held))
        context.trail.allowed.append(noted)
        return Granted(target, context, held, tuple(chain))
    sentence = f"Not allowed: {action.value} on this {last.type.value} needs the privilege {wording(action)}"
    reason = f"{sentence}; answered as not found" if is_hidden else sentence
    context.trail.refused = Refused(action.value, *about, _project_of(chain), reason)
    raise hidden if is_hidden else Forbidden(sentence)


@lru_cache(maxsize=1000)
def deciding(action: Action, held: frozenset[Privilege]) -> tuple[str, ...]:
    """The held privileges because of which the action is allowed."""
    return tuple(sorted(each.value for alternatives in REQUIRED[action] for each in alternatives & held))


def _note(context: RequestContext, chain: Sequence[ObjectRef]) -> None:
    """Note project and warehouse of the request for audit and statistics: those of the first object that has them."""
    trail = context.trail
    trail.project_id = trail.project_id or _project_of(chain)
    if trail.warehouse_id is None and len(chain) > _WAREHOUSE and chain[_WAREHOUSE].type is ObjectType.WAREHOUSE:
        trail.warehouse_id = chain[_WAREHOUSE].id


def _project_of(chain: Sequence[ObjectRef]) -> str | None:
    return chain[_PROJECT].id if len(chain) > _PROJECT and chain[_PROJECT].type is ObjectType.PROJECT else None


_PROJECT, _WAREHOUSE = 1, 2  # indexes in a chain; the server is 0
