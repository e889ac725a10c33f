"""Begins, finds, refreshes and ends sessions.

A session is known by a random cookie. The database has only its digest, and the tokens encrypted with a key that is
derived from it, so a copy of the database opens no session.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final
from uuid import UUID

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.db import transaction
from django.utils import timezone

from console.models import ConsoleSession
from lakewarden import config
from lakewarden.context import PrincipalId

_NONCE: Final = 12  # bytes
_EARLY: Final = timedelta(seconds=30)
"""An access token is replaced this long before it expires, so that it lasts for the request."""
_NOTED_EVERY: Final = timedelta(minutes=1)


class Tokens(msgspec.Struct, frozen=True):
    """What the provider issued. `lifetime_s` is that of the access token."""

    access: str
    lifetime_s: int
    refresh: str | None = None
    identity: str | None = None


Refresh = Callable[[str], Tokens | None]
"""Exchanges a refresh token for new tokens; None if the provider refuses it."""


@dataclass(frozen=True, slots=True)
class Session:
    cookie: str
    principal: str
    tokens: Tokens
    project_id: str | None
    role_id: str | None


def begin(principal: PrincipalId, tokens: Tokens) -> str:
    """A new session of the user; returns the value of its cookie. The user's oldest ones and expired ones end."""
    cookie, now, settings = secrets.token_urlsafe(32), timezone.now(), config.current().console
    with transaction.atomic():
        ConsoleSession.objects.filter(created_at__lt=now - timedelta(seconds=settings.max_session_s)).delete()
        own = ConsoleSession.objects.filter(principal=principal).order_by("-created_at")
        kept = own.values_list("id", flat=True)[: settings.sessions_of_a_user - 1]
        ConsoleSession.objects.filter(principal=principal).exclude(id__in=list(kept)).delete()
        ConsoleSession.objects.create(
            id=_digest(cookie),
            principal=principal,
            tokens=_sealed(cookie, tokens, principal),
            refresh_at=_refresh_at(now, tokens),
        )
    return cookie


def find(cookie: str, *, refresh: Refresh, is_used: bool = True) -> Session | None:
    """The session of a cookie with an access token that is not expired; None if the user must sign in again.

    A look that the user has not asked for (`is_used`) keeps no session open. Raises what `refresh` raises.
    """
    row = ConsoleSession.objects.filter(id=_digest(cookie)).first()
    now = timezone.now()
    if row is None or not _is_open(row, now):
        return None
    if row.refresh_at <= now:
        return _refreshed(cookie, refresh)
    if is_used and row.used_at <= now - _NOTED_EVERY:
        ConsoleSession.objects.filter(id=row.id).update(used_at=now)
    return _opened(cookie, row)


def choose(session: Session, *, project_id: str | None, role_id: UUID | None) -> None:
    """Which project the session's pages show, and the role that its user acts as (None: as themselves)."""
    ConsoleSession.objects.filter(id=_digest(session.cookie)).update(project_id=project_id or "", role_id=role_id)


def end(cookie: str) -> Session | None:
    """End the session of a cookie and return it; None if there was none."""
    row = ConsoleSession.objects.filter(id=_digest(cookie)).first()
    if row is None:
        return None
    row.delete()
    return _opened(cookie, row)


def _refreshed(cookie: str, refresh: Refresh) -> Session | None:
    # a provider may accept a refresh token once only, so requests of one session take turns
    with transaction.atomic():
        row = ConsoleSession.objects.select_for_update().filter(id=_digest(cookie)).first()
        session = None if row is None else _opened(cookie, row)
        if row is None or session is None:
            return None
        now = timezone.now()
        if row.refresh_at > now:
            return session
        current = session.tokens
        renewed = None if current.refresh is None else refresh(current.refresh)
        if renewed is None:
            row.delete()
            return None
        kept = msgspec.structs.replace(
            renewed, refresh=renewed.refresh or current.refresh, identity=renewed.identity or current.identity
        )
        row.tokens, row.refresh_at, row.used_at = _sealed(cookie, kept, row.principal), _refresh_at(now, kept), now
        row.save(update_fields=["tokens", "refresh_at", "used_at"])
    return _opened(cookie, row)


def _is_open(row: ConsoleSession, now: datetime) -> bool:
    settings = config.current().console
    return now - row.used_at < timedelta(seconds=settings.idle_s) and now - row.created_at < timedelta(
        seconds=settings.max_session_s
    )


def _refresh_at(now: datetime, tokens: Tokens) -> datetime:
    return now + max(timedelta(seconds=tokens.lifetime_s) - _EARLY, timedelta(0))


def _opened(cookie: str, row: ConsoleSession) -> Session | None:
    content = bytes(row.tokens)
    try:
        plain = AESGCM(_key(cookie)).decrypt(content[:_NONCE], content[_NONCE:], row.principal.encode())
        tokens = msgspec.json.decode(plain, type=Tokens)
    except (InvalidTag, msgspec.DecodeError):
        return None
    role = None if row.role_id is None else str(row.role_id)
    return Session(cookie, row.principal, tokens, row.project_id or None, role)


def _sealed(cookie: str, tokens: Tokens, principal: str) -> bytes:
    nonce = secrets.token_bytes(_NONCE)
    return nonce + AESGCM(_key(cookie)).encrypt(nonce, msgspec.json.encode(tokens), principal.encode())


def _digest(cookie: str) -> bytes:
    return sha256(b"id" + cookie.encode()).digest()


def _key(cookie: str) -> bytes:
    # the cookie is random and as long as the key, so a plain hash derives one
    return sha256(b"key" + cookie.encode()).digest()
