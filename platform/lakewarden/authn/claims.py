"""From verified JWT claims to a principal: time, issuer, audience and scope rules, names; for oidc.py."""

import math
from collections.abc import Callable
from typing import Any, Final

from joserfc.errors import ExpiredTokenError, InvalidClaimError, MissingClaimError
from joserfc.jwt import JWTClaimsRegistry

from lakewarden.authn.interface import Principal, PrincipalKind
from lakewarden.authn.provider import OidcProvider
from lakewarden.errors import NotAuthorized

Claims = dict[str, Any]

CLOCK_SKEW_S: Final = 60
_MAX_SUBJECT: Final = 255  # OpenID Connect Core 1.0, section 2, `sub`
_MAX_TEXT: Final = 255
_FAR_FUTURE: Final = 253_402_300_799.0  # the last second of the year 9999
_CLIENT_CLAIMS: Final = ("client_id", "azp", "appid", "cid")

WRONG_AUDIENCE: Final = "The token was issued for another audience: ask the identity provider for one for this server."
UNKNOWN_ISSUER: Final = "The token was issued by somebody whom this server does not trust."
EXPIRED: Final = "The token has expired: get a new one from your identity provider."


def verify_claims(claims: Claims, provider: OidcProvider, *, now: Callable[[], float]) -> None:
    """Check `iss`, `aud`, `exp`, `nbf`, `iat` (RFC 7519 section 4.1, 60 s of skew) and the required scope.

    Raises:
        NotAuthorized: one of them does not hold; the sentence says which.

    """
    options: dict[str, Any] = {
        "iss": {"essential": True},
        "exp": {"essential": True},
        "aud": {
            "essential": bool(provider.audiences),
            "values": list(provider.audiences),
            "allow_blank": True,
        },
    }
    registry = JWTClaimsRegistry(now=lambda: int(now()), leeway=CLOCK_SKEW_S, **options)
    try:
        registry.validate(claims)
    except ExpiredTokenError as error:
        raise NotAuthorized(EXPIRED) from error
    except MissingClaimError as error:
        raise NotAuthorized(f"The token lacks the claim '{error.claim}'.") from error
    except InvalidClaimError as error:
        raise NotAuthorized(_invalid(error.claim)) from error
    if not provider.trusts(claims["iss"]):
        raise NotAuthorized(_invalid("iss"))
    if provider.scope is not None and provider.scope not in _scopes(claims):
        raise NotAuthorized(f"The token lacks the scope '{provider.scope}': ask the identity provider for it.")


def principal_of(claims: Claims, provider: OidcProvider) -> Principal:
    """Describe the caller that verified claims speak of.

    Raises:
        NotAuthorized: none of the provider's subject claims holds a usable subject.

    """
    return Principal(
        id=f"{provider.id}~{_subject(claims, provider)}",
        name=_name(claims),
        email=_email(claims),
        kind=_kind(claims),
        issuer=claims["iss"],
        expires_at=_seconds(claims["exp"]),
    )


def _invalid(claim: str) -> str:
    clocks = "compare the clocks of this server and of the identity provider"
    sentences = {
        "nbf": f"The token is not valid yet: {clocks}.",
        "iat": f"The token was issued in the future: {clocks}.",
        "aud": WRONG_AUDIENCE,
        "iss": UNKNOWN_ISSUER,
    }
    return sentences.get(claim, f"The token's claim '{claim}' is not valid.")


def _subject(claims: Claims, provider: OidcProvider) -> str:
    for claim in provider.subject_claims:
        value = claims.get(claim)
        if isinstance(value, str) and 0 < len(value) <= _MAX_SUBJECT and value.isprintable():
            return value
    wanted = " or ".join(f"'{claim}'" for claim in provider.subject_claims)
    raise NotAuthorized(f"The token names no subject: it needs the claim {wanted} (1 to {_MAX_SUBJECT} characters).")


def _kind(claims: Claims) -> PrincipalKind:
    """A token that a client got for itself is an application's; providers show that in different ways."""
    if claims.get("idtyp") == "app" or claims.get("gty") == "client-credentials":
        return "application"
    username = _text(claims, "preferred_username")
    if username is not None and username.startswith("service-account-"):
        return "application"
    subject = claims.get("sub")
    is_own_subject = subject is not None and any(claims.get(claim) == subject for claim in _CLIENT_CLAIMS)
    return "application" if is_own_subject and username is None and _text(claims, "email") is None else "human"


def _name(claims: Claims) -> str | None:
    given_and_family = " ".join(filter(None, (_text(claims, "given_name"), _text(claims, "family_name"))))
    fallbacks = ("app_displayname", "preferred_username", *_CLIENT_CLAIMS)
    return (
        _text(claims, "name")
        or given_and_family
        or next(filter(None, (_text(claims, claim) for claim in fallbacks)), None)
    )


def _email(claims: Claims) -> str | None:
    email = _text(claims, "email") or _text(claims, "upn")
    username = _text(claims, "preferred_username")
    return email or (username if username is not None and "@" in username else None)


def _text(claims: Claims, claim: str) -> str | None:
    """A claim as text that a database and a page can hold: no control characters, at most 255 long."""
    value = claims.get(claim)
    if not isinstance(value, str):
        return None
    printable = "".join(character for character in value if character.isprintable())
    return printable.strip()[:_MAX_TEXT] or None


def _scopes(claims: Claims) -> set[str]:
    granted: set[str] = set()
    for claim in ("scope", "scp"):
        value = claims.get(claim)
        if isinstance(value, str):
            granted.update(value.split())
        elif isinstance(value, list):
            granted.update(item for item in value if isinstance(item, str))
    return granted


def _seconds(value: float) -> float:
    """`exp` may be any JSON number, an integer beyond the range of a float among them."""
    return _FAR_FUTURE if value > _FAR_FUTURE else math.floor(value) * 1.0
