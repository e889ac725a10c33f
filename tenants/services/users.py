"""Remembers who has been seen, so that rights can be given to them by name."""

from django.utils import timezone

from lakewarden.context import Actor
from tenants.models import User


def provision(actor: Actor, *, seen_by: User.UpdatedWith) -> User:
    """The actor's row, created at first sight; a name or e-mail that was unknown is completed. Idempotent.

    A deleted user is not brought back to life: his rights went with him, and stay gone.
    """
    user = User.objects.filter(id=actor.id).first()
    if user is None:
        user, _ = _create(actor, seen_by=seen_by)
    elif user.email is None and actor.email is not None and user.deleted_at is None:
        user.email = actor.email
        user.updated_at = timezone.now()
        user.last_updated_with = seen_by
        user.save(update_fields=["email", "updated_at", "last_updated_with"])
    return user


def register(actor: Actor) -> tuple[User, bool]:
    """The actor's row and whether it is new; a known one is left as it is."""
    return _create(actor, seen_by=User.UpdatedWith.CREATE_ENDPOINT)


def refresh(actor: Actor) -> User:
    """Describe a known user as `actor` does; what the actor does not say is kept, a deleted user stays as he is."""
    user = User.objects.get(id=actor.id)
    described = {"name": actor.name or user.name, "email": actor.email or user.email, "user_type": actor.kind}
    if user.deleted_at is None and any(getattr(user, field) != value for field, value in described.items()):
        for field, value in described.items():
            setattr(user, field, value)
        user.updated_at = timezone.now()
        user.last_updated_with = User.UpdatedWith.UPDATE_ENDPOINT
        user.save(update_fields=[*described, "updated_at", "last_updated_with"])
    return user


def _create(actor: Actor, *, seen_by: User.UpdatedWith) -> tuple[User, bool]:
    return User.objects.get_or_create(
        id=actor.id,
        defaults={
            "name": actor.name or actor.id,
            "email": actor.email,
            "user_type": actor.kind,
            "last_updated_with": seen_by,
        },
    )
