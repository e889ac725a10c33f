"""Remembers who has been seen, so that rights can be given to them by name."""

from collections.abc import Mapping

from django.utils import timezone

from lakewarden.context import Actor, PrincipalId, RequestContext
from lakewarden.events.changes import Change, record
from lakewarden.transactions import changing
from tenants.models import User

_SEEN_CAPACITY = 100_000
_seen: set[PrincipalId] = set()


def provision(context: RequestContext, *, seen_by: User.UpdatedWith) -> User:
    """The caller's row, created at first sight; an e-mail that was unknown is completed. Idempotent.

    A deleted user is not brought back to life: his rights went with him, and stay gone.
    """
    actor = context.actor
    user = User.objects.filter(id=actor.id).first()
    if user is None:
        user, _ = _create(actor, context, seen_by=seen_by)
    elif user.email is None and actor.email is not None:
        _describe(user, {"email": actor.email}, context, seen_by=seen_by)
    if len(_seen) >= _SEEN_CAPACITY:
        _seen.clear()
    _seen.add(actor.id)
    return user


def is_known(principal: PrincipalId) -> bool:
    """Whether this process has seen the user's row: rows are never removed."""
    return principal in _seen


def register(actor: Actor, context: RequestContext) -> tuple[User, bool]:
    """The actor's row and whether it is new; a known one is left as it is."""
    return _create(actor, context, seen_by=User.UpdatedWith.CREATE_ENDPOINT)


def refresh(actor: Actor, context: RequestContext) -> User:
    """Describe a known user as `actor` does; what the actor does not say is kept, a deleted user stays as he is."""
    user = User.objects.get(id=actor.id)
    described = {"name": actor.name or user.name, "email": actor.email or user.email, "user_type": actor.kind}
    _describe(user, described, context, seen_by=User.UpdatedWith.UPDATE_ENDPOINT)
    return user


def _describe(
    user: User, described: Mapping[str, str | None], context: RequestContext, *, seen_by: User.UpdatedWith
) -> None:
    changed = [field for field, value in described.items() if getattr(user, field) != value]
    if user.deleted_at is not None or not changed:
        return
    for field in changed:
        setattr(user, field, described[field])
    user.updated_at = timezone.now()
    user.last_updated_with = seen_by
    with changing():
        user.save(update_fields=[*changed, "updated_at", "last_updated_with"])
        record(Change("updateUser", "user", user.id, data={"fields": changed}), context)


def _create(actor: Actor, context: RequestContext, *, seen_by: User.UpdatedWith) -> tuple[User, bool]:
    with changing():
        user, is_new = User.objects.get_or_create(
            id=actor.id,
            defaults={
                "name": actor.name or actor.id,
                "email": actor.email,
                "user_type": actor.kind,
                "last_updated_with": seen_by,
            },
        )
        if is_new:
            record(Change("createUser", "user", user.id, data={"type": actor.kind}), context)
    return user, is_new
