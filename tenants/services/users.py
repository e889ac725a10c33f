"""Registers users: at a caller's first request, by themselves, or by an administrator."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from django.utils import timezone

from lakewarden.authz.interface import Granted
from lakewarden.context import Caller, PrincipalId, RequestContext
from lakewarden.db_transaction import changing
from lakewarden.errors import AlreadyExists, BadRequest, Forbidden, InvalidArgument
from lakewarden.events.change_recording import Change, record
from lakewarden.names import check_name
from lakewarden.paging import Page
from tenants.models import Server, User
from tenants.services import user_removal

T = TypeVar("T")

MAX_EMAIL_LENGTH = 255
_USER_ID = re.compile(r"(?!system~)[a-z0-9-]{1,64}~.{1,255}")
_SEEN_CAPACITY = 100_000
_seen: set[PrincipalId] = set()


def is_user_id(text: str) -> bool:
    return _USER_ID.fullmatch(text) is not None and text.isprintable()


def user_id(text: str) -> PrincipalId:
    """Parse a user id, `<provider>~<subject>`. Raises InvalidArgument if it is not valid."""
    if not is_user_id(text):
        raise InvalidArgument(
            f"Invalid user id {text[:80]!r}: '<provider>~<subject>' is expected, as in 'oidc~4f1c', "
            "with a subject of 1 to 255 printable characters; the provider 'system' is the server itself"
        )
    return PrincipalId(text)


def provision(context: RequestContext, *, seen_by: User.UpdatedWith) -> User:
    """The caller's row, created if it does not exist; a missing email is added. Idempotent.

    It does not restore a deleted user.
    """
    caller = context.caller
    user = User.objects.filter(id=caller.id).first()
    if user is None:
        user, _ = _create(caller, context, seen_by=seen_by)
    elif user.email is None and caller.email is not None:
        _describe(user, {"email": caller.email}, context, seen_by=seen_by)
    if len(_seen) >= _SEEN_CAPACITY:
        _seen.clear()
    _seen.add(caller.id)
    return user


def is_known(principal: PrincipalId) -> bool:
    """Whether this process has seen the user's row. Safe to remember, because rows are never removed."""
    return principal in _seen


def ensure_not_deleted(user: User) -> User:
    """Returns `user`, who is the caller. Raises Forbidden if they were deleted."""
    if user.deleted_at is not None:
        raise Forbidden(f"The user {user.id} was deleted: only an administrator of the server can restore this user")
    return user


def register_self(
    context: RequestContext, *, name: str | None, email: str | None, kind: str | None, update: bool
) -> tuple[User, bool]:
    """Register the caller; returns the row and whether it is new. Omitted values are taken from their token.

    Raises InvalidArgument for an invalid name or email, Forbidden for a deleted user, AlreadyExists for an existing
    user if `update` is false.
    """
    _check(name, email)
    caller = context.caller
    described: Any = {"name": name or caller.name, "email": email or caller.email, "kind": kind or caller.kind}
    caller = replace(caller, **described)
    user, is_new = register(caller, context)
    if is_new:
        return user, True
    _ensure_update(user, update=update)
    return refresh(caller, context), False


def make_known(granted: Granted[Server], described: Caller, *, update: bool) -> tuple[User, bool]:
    """Register a user on behalf of an administrator; returns the row and whether it is new. Restores a deleted user.

    A restored user counts as new and has none of their former rights. Raises InvalidArgument for an invalid id, name or
    email, AlreadyExists for an existing user if `update` is false.
    """
    user_id(described.id)
    _check(described.name, described.email)
    context = granted.context
    user, is_new = _create(described, context, seen_by=User.UpdatedWith.CREATE_ENDPOINT)
    if is_new:
        return user, True
    if user.deleted_at is not None:
        return user_removal.bring_back(described, context), True
    _ensure_update(user, update=update)
    return refresh(described, context), False


def register(caller: Caller, context: RequestContext) -> tuple[User, bool]:
    """The caller's row and whether it is new; an existing row is not changed. Raises Forbidden for a deleted user."""
    user, is_new = _create(caller, context, seen_by=User.UpdatedWith.CREATE_ENDPOINT)
    return ensure_not_deleted(user), is_new


def refresh(caller: Caller, context: RequestContext) -> User:
    """Update an existing user from `caller`; values that are None are kept, and a deleted user is not changed."""
    user = User.objects.get(id=caller.id)
    described = {"name": caller.name or user.name, "email": caller.email or user.email, "user_type": caller.kind}
    return _describe(user, described, context, seen_by=User.UpdatedWith.UPDATE_ENDPOINT)


def rewrite(granted: Granted[User], *, name: str, email: str | None, kind: str) -> User:
    """Replace name, email (None removes it) and type. Raises InvalidArgument for an invalid name or email."""
    _check(name, email)
    described = {"name": name, "email": email, "user_type": kind}
    return _describe(granted.target, described, granted.context, seen_by=User.UpdatedWith.UPDATE_ENDPOINT)


def listed(
    granted: Granted[Server],  # noqa: ARG001 proves the right
    page: Page,
    *,
    name: str | None,
) -> tuple[list[User], str | None]:
    """A page of the server's users, sorted by id, and the key of the next page; `name`: only those whose name contains
    it.
    """
    found = User.objects.filter(deleted_at__isnull=True).order_by("id")
    if name is not None:
        found = found.filter(name__icontains=name)
    if page.after is not None:
        found = found.filter(id__gt=page.after)
    return page.cut([(user, user.id) for user in found[: page.limit]])


def _check(name: str | None, email: str | None) -> None:
    if name is not None:
        check_name(name, what="user")
    # any text: it is only shown, and identity providers have names of accounts in it
    if email is not None and not (len(email) <= MAX_EMAIL_LENGTH and email.isprintable()):
        raise InvalidArgument(
            f"Invalid email {email[:80]!r}: at most {MAX_EMAIL_LENGTH} printable characters are expected"
        )


def _ensure_update(user: User, *, update: bool) -> None:
    if not update:
        raise AlreadyExists(f"The user {user.id} exists already: send 'update-if-exists': true to bring it up to date")


def _describe(
    user: User, described: Mapping[str, str | None], context: RequestContext, *, seen_by: User.UpdatedWith
) -> User:
    changed = [field for field, value in described.items() if getattr(user, field) != value]
    if user.deleted_at is not None or not changed:
        return user
    values = {field: described[field] for field in changed}
    with changing():
        # the filter is repeated here because the user may have been deleted since: a deleted row must not get a name
        alive = User.objects.filter(id=user.id, deleted_at__isnull=True)
        if alive.update(**values, updated_at=timezone.now(), last_updated_with=seen_by):
            record(Change("updateUser", "user", user.id, data={"fields": changed}), context)
        user.refresh_from_db()
    return user


def _create(caller: Caller, context: RequestContext, *, seen_by: User.UpdatedWith) -> tuple[User, bool]:
    """Returns the row and whether it is new. If several requests create the same user at once, only one does."""
    with changing():
        user, is_new = User.objects.get_or_create(
            id=caller.id,
            defaults={
                "name": caller.name or caller.id,
                "email": caller.email,
                "user_type": caller.kind,
                "last_updated_with": seen_by,
            },
        )
        if is_new:
            record(Change("createUser", "user", user.id, data={"type": caller.kind}), context)
    return user, is_new


def required(value: T | None, *, member: str) -> T:
    """Returns `value`; raises BadRequest if the body lacks it, which is allowed only for the caller's own row."""
    if value is None:
        raise BadRequest(f"Invalid request body: {member}: it is required to describe a user other than yourself")
    return value
