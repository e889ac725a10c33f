"""Checks claims whose signature is verified: time, issuer, audience and scope; for all verifiers."""

from collections.abc import Callable
from typing import Any, Final

from joserfc.errors import ExpiredTokenError, InvalidClaimError, MissingClaimError
from joserfc.jwt import JWTClaimsRegistry

from lakewarden.authn.claim_path import Claims
from lakewarden.authn.provider import TokenRules
from lakewarden.errors import NotAuthorized

WRONG_AUDIENCE: Final = "The token was issued for another audience: ask the identity provider for one for this server."
UNKNOWN_ISSUER: Final = "The token's issuer is not trusted by this server."
EXPIRED: Final = "The token has expired: get a new one from your identity provider."
INACTIVE: Final = "The token is not active (unknown, expired or revoked): get a new one from your identity provider."


def verify_claims(claims: Claims, rules: TokenRules, *, now: Callable[[], float], needs_expiry: bool = True) -> None:
    """Check `iss`, `aud`, `exp`, `nbf`, `iat` (RFC 7519 section 4.1, with clock skew) and the required scope.

    Raises:
        NotAuthorized: one of the checks fails; the message says which.

    """
    options: dict[str, Any] = {
        "iss": {"essential": True},
        "exp": {"essential": needs_expiry},
        "aud": {"essential": bool(rules.audiences), "values": list(rules.audiences), "allow_blank": True},
    }
    registry = JWTClaimsRegistry(now=lambda: int(now()), leeway=rules.clock_skew_s, **options)
    try:
        registry.validate(claims)
    except ExpiredTokenError as error:
        raise NotAuthorized(EXPIRED) from error
    except MissingClaimError as error:
        raise NotAuthorized(f"The token lacks the claim '{error.claim}'.") from error
    except InvalidClaimError as error:
        raise NotAuthorized(_invalid(error.claim)) from error
    if not rules.trusts(claims["iss"]):
        raise NotAuthorized(_invalid("iss"))
    if rules.scope is not None and rules.scope not in _scopes(claims):
        raise NotAuthorized(f"The token lacks the scope '{rules.scope}': ask the identity provider for it.")


def audiences_of(claims: Claims) -> tuple[str, ...]:
    """The `aud` of claims, without values that are not strings."""
    audience = claims.get("aud")
    named = audience if isinstance(audience, list) else [audience]
    return tuple(each for each in named if isinstance(each, str))


def _invalid(claim: str) -> str:
    clocks = "compare the clocks of this server and of the identity provider"
    sentences = {
        "nbf": f"The token is not valid yet: {clocks}.",
        "iat": f"The token was issued in the future: {clocks}.",
        "aud": WRONG_AUDIENCE,
        "iss": UNKNOWN_ISSUER,
    }
    return sentences.get(claim, f"The token's claim '{claim}' is not valid.")


def _scopes(claims: Claims) -> set[str]:
    granted: set[str] = set()
    for claim in ("scope", "scp"):
        value = claims.get(claim)
        if isinstance(value, str):
            granted.update(value.split())
        elif isinstance(value, list):
            granted.update(item for item in value if isinstance(item, str))
    return granted
