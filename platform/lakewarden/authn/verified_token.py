"""Builds a `VerifiedToken` from verified claims: subject, kind, name, email and roles; for the OpenID verifiers."""

import math
from typing import Final

from lakewarden.authn.claim_path import Claims, claim_at
from lakewarden.authn.interface import PrincipalKind, VerifiedToken
from lakewarden.authn.provider import OidcProvider
from lakewarden.errors import NotAuthorized

MAX_SUBJECT: Final = 255  # OpenID Connect Core 1.0, section 2, `sub`
_MAX_TEXT: Final = 255
_FAR_FUTURE: Final = 253_402_300_799.0  # the last second of the year 9999
_CLIENT_CLAIMS: Final = ("client_id", "azp", "appid", "cid")


def verified_token_of(claims: Claims, provider: OidcProvider, *, expires_at: float) -> VerifiedToken:
    """Extract the caller from verified claims.

    Raises:
        NotAuthorized: no subject claim has a usable subject, or there are too many roles.

    """
    return VerifiedToken(
        id=f"{provider.id}~{_subject(claims, provider)}",
        name=_configured_text(claims, provider.name_claim) or _name(claims),
        email=_configured_text(claims, provider.email_claim) or _email(claims),
        kind=_kind(claims),
        issuer=claims["iss"],
        expires_at=expires_at,
        token_roles=() if provider.roles_claim is None else _roles(claim_at(claims, provider.roles_claim), provider),
    )


def seconds(value: float) -> float:
    """A verified `exp` as Unix seconds; also accepts an integer that exceeds the range of a float."""
    return _FAR_FUTURE if value > _FAR_FUTURE else math.floor(value) * 1.0


def is_subject(value: object) -> bool:
    """Whether this can be the subject in a principal's id: 1 to 255 printable characters."""
    return isinstance(value, str) and 0 < len(value) <= MAX_SUBJECT and value.isprintable()


def _subject(claims: Claims, provider: OidcProvider) -> str:
    for claim in provider.subject_claims:
        value = claims.get(claim)
        if is_subject(value):
            return str(value)
    wanted = " or ".join(f"'{claim}'" for claim in provider.subject_claims)
    raise NotAuthorized(f"The token names no subject: it needs the claim {wanted} (1 to {MAX_SUBJECT} characters).")


def _kind(claims: Claims) -> PrincipalKind:
    """A token from the client credentials grant belongs to an application; providers mark it in different ways."""
    if claims.get("idtyp") == "app" or claims.get("gty") == "client-credentials":
        return "application"
    username = _text(claims.get("preferred_username"))
    if username is not None and username.startswith("service-account-"):
        return "application"
    subject = claims.get("sub")
    is_own_subject = subject is not None and any(claims.get(claim) == subject for claim in _CLIENT_CLAIMS)
    return "application" if is_own_subject and username is None and _text(claims.get("email")) is None else "human"


def _name(claims: Claims) -> str | None:
    parts = (_text(claims.get(claim)) for claim in ("given_name", "family_name"))
    given_and_family = " ".join(filter(None, parts))
    # `username` comes from introspection (RFC 7662, section 2.2)
    fallbacks = ("app_displayname", "preferred_username", "username", *_CLIENT_CLAIMS)
    return (
        _text(claims.get("name"))
        or given_and_family
        or next(filter(None, (_text(claims.get(claim)) for claim in fallbacks)), None)
    )


def _email(claims: Claims) -> str | None:
    email = _text(claims.get("email")) or _text(claims.get("upn"))
    username = _text(claims.get("preferred_username"))
    return email or (username if username is not None and "@" in username else None)


def _configured_text(claims: Claims, path: str | None) -> str | None:
    return None if path is None else _text(claim_at(claims, path))


def _text(value: object) -> str | None:
    """A claim as text that is safe to store and to show: no control characters, at most 255 characters."""
    if not isinstance(value, str):
        return None
    printable = "".join(character for character in value if character.isprintable())
    return printable.strip()[:_MAX_TEXT] or None


def _roles(found: object, provider: OidcProvider) -> tuple[str, ...]:
    """The distinct roles of a list of strings, or of one string; other values are ignored.

    A name that is too long is ignored rather than shortened, because the result could be the name of another role.
    """
    listed = found if isinstance(found, list) else [found]
    names = (each for each in listed if isinstance(each, str) and 0 < len(each) <= _MAX_TEXT and each.isprintable())
    roles = tuple(dict.fromkeys(names))
    if len(roles) > provider.max_roles:
        raise NotAuthorized(
            f"The token lists {len(roles)} roles in its claim '{provider.roles_claim}': at most {provider.max_roles} "
            "are accepted; have the identity provider list only those that this server needs."
        )
    return roles
