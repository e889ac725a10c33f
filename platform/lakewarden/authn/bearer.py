"""Parses bearer tokens (RFC 6750, RFC 7515) before any of their content is trusted; for chain.py."""

import re
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from lakewarden.errors import NotAuthorized

MAX_TOKEN_BYTES: Final = 16 * 1024

SERVICE_ACCOUNT: Final = "system:serviceaccount:"

_FAR_FUTURE: Final = 253_402_300_799  # the last second of the year 9999
_SEND: Final = "send 'Authorization: Bearer <access token>'"
_DOTS_OF_JWE: Final = 4  # RFC 7516 section 3.1
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750 section 2.1
_COMPACT_JWS: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class UnverifiedToken:
    """Unverified header and claims of a token, used only to choose a provider and a key.

    `expires_at` is its `exp` in Unix seconds, if that is a number. `is_service_account`: it looks like a token of a
    Kubernetes service account.
    """

    compact: str
    algorithm: str
    key_id: str | None
    issuer: str
    audiences: tuple[str, ...]
    expires_at: float | None = None
    is_service_account: bool = False


class _Header(msgspec.Struct):
    alg: str
    kid: str | None = None


class _Payload(msgspec.Struct):
    iss: str
    aud: str | list[str] | None = None
    sub: Any = None
    exp: Any = None
    kubernetes: Any = msgspec.field(default=None, name="kubernetes.io")


def token_of(authorization: str | None) -> str:
    """Return the token of a raw Authorization header, at most 16 KiB of ASCII.

    Raises:
        NotAuthorized: no header, another scheme, nothing after the scheme, or too long.

    """
    if not authorization:
        raise NotAuthorized(f"The request has no Authorization header: {_SEND}.")
    scheme, _, token = authorization.strip().partition(" ")
    token = token.lstrip()
    if scheme.lower() != "bearer":
        raise NotAuthorized(f"The Authorization header does not use the Bearer scheme: {_SEND}.")
    if not token:
        raise NotAuthorized(f"The Authorization header has no token after 'Bearer': {_SEND}.")
    if len(token) > MAX_TOKEN_BYTES:
        raise NotAuthorized(f"The token is longer than {MAX_TOKEN_BYTES} bytes: ask for one with fewer claims.")
    if not token.isascii():
        raise NotAuthorized("The token contains characters that access tokens cannot have: it was damaged in transit.")
    return token


def digest_of(token: str) -> bytes:
    """SHA-256 of the token, the key of all caches: a dump of the process's memory must not contain valid tokens."""
    return sha256(token.encode()).digest()


def is_opaque(token: str) -> bool:
    """Whether the token is opaque, so only its issuer can read it: it does not have the form of a signed JWT.

    Raises:
        NotAuthorized: it has characters that are not allowed in access tokens.

    """
    if _COMPACT_JWS.fullmatch(token):
        return False
    if not _TOKEN.fullmatch(token):
        raise NotAuthorized("The token contains characters that access tokens cannot have: it was damaged in transit.")
    return True


def peek(token: str) -> UnverifiedToken:
    """Decode header and payload of a compact JWS without verifying it.

    Raises:
        NotAuthorized: it is not a JWT, or it has no `iss`.

    """
    if token.count(".") == _DOTS_OF_JWE:
        raise NotAuthorized("The token is encrypted; this server accepts signed tokens (JWT) only.")
    if not _COMPACT_JWS.fullmatch(token):
        raise NotAuthorized("The token is not a JWT; this server accepts JWT access tokens.")
    header_part, payload_part, _ = token.split(".")
    try:
        header = msgspec.json.decode(_decoded(header_part), type=_Header)
        payload = msgspec.json.decode(_decoded(payload_part), type=_Payload)
    except (ValueError, RecursionError) as error:
        raise NotAuthorized("The token is malformed: its header or its claims cannot be read.") from error
    audiences = (payload.aud,) if isinstance(payload.aud, str) else tuple(payload.aud or ())
    return UnverifiedToken(
        compact=token,
        algorithm=header.alg,
        key_id=header.kid,
        issuer=payload.iss,
        audiences=audiences,
        expires_at=_expiry(payload.exp),
        is_service_account=payload.kubernetes is not None
        or (isinstance(payload.sub, str) and payload.sub.startswith(SERVICE_ACCOUNT)),
    )


def _expiry(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(min(max(value, 0), _FAR_FUTURE))  # limited first: a JSON integer may exceed the range of a float


def _decoded(segment: str) -> bytes:
    return urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
