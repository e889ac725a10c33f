"""The settings of one OpenID provider; built by provider_settings.py, read by the verifiers."""

import re
from dataclasses import dataclass, field
from typing import Final

DEFAULT_CLOCK_SKEW_S: Final = 60

_ID: Final = re.compile(r"[a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class TokenRules:
    """The rules for a token's claims. `issuers` have no trailing slash; without `audiences`, all are accepted."""

    issuers: tuple[str, ...]
    audiences: tuple[str, ...] = ()
    scope: str | None = None
    clock_skew_s: int = DEFAULT_CLOCK_SKEW_S

    def trusts(self, issuer: str) -> bool:
        return issuer.rstrip("/") in self.issuers

    def accepts_audience(self, audiences: tuple[str, ...]) -> bool:
        return not self.audiences or not set(self.audiences).isdisjoint(audiences)


@dataclass(frozen=True, slots=True)
class Introspection:
    """How to introspect tokens at a provider (RFC 7662). Without `uri`, the endpoint is discovered.

    `all_tokens`: signed tokens are introspected as well. An accepted token is introspected again every
    `recheck_after_s`, and refused after `max_missed_rechecks` such intervals without an answer.
    """

    client_id: str
    client_secret: str = field(repr=False)
    uri: str | None = None
    all_tokens: bool = False
    recheck_after_s: float = 60.0
    max_missed_rechecks: int = 5


@dataclass(frozen=True, slots=True)
class OidcProvider:
    """One trusted issuer.

    `id` is the prefix of its principals (`oidc` for the primary one). A token is accepted when its `iss` is
    `issuer` or one of `additional_issuers`, and its `aud` has one of `audiences` (none given: not checked).
    `scope`, if given, must be among the token's scopes. The first of `subject_claims` that is a string is the
    subject. `roles_claim`, `name_claim` and `email_claim` are dotted paths into the claims; a token with more than
    `max_roles` roles is refused. `jwks_uri` replaces discovery.

    Raises:
        ValueError: a setting is invalid; the message names it.

    """

    id: str
    issuer: str
    audiences: tuple[str, ...]
    additional_issuers: tuple[str, ...] = ()
    scope: str | None = None
    subject_claims: tuple[str, ...] = ("oid", "sub")
    jwks_uri: str | None = None
    roles_claim: str | None = None
    name_claim: str | None = None
    email_claim: str | None = None
    clock_skew_s: int = DEFAULT_CLOCK_SKEW_S
    max_roles: int = 256
    introspection: Introspection | None = None
    rules: TokenRules = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id) or self.id == "kubernetes":
            raise ValueError(
                f"The provider id '{self.id}' is not allowed: use lower-case letters, digits and '-'"
                " ('kubernetes' is taken)."
            )
        if not self.issuer.startswith(("https://", "http://")):
            raise ValueError(f"The issuer '{self.issuer}' of provider '{self.id}' must be an http or https address.")
        if not self.subject_claims:
            raise ValueError(f"Provider '{self.id}' needs at least one subject claim, for example 'sub'.")
        # a trailing slash is ignored: providers and operators write issuers with and without it
        issuers = tuple(issuer.rstrip("/") for issuer in (self.issuer, *self.additional_issuers))
        rules = TokenRules(issuers, self.audiences, self.scope, self.clock_skew_s)
        object.__setattr__(self, "rules", rules)

    def trusts(self, issuer: str) -> bool:
        return self.rules.trusts(issuer)

    def accepts(self, audiences: tuple[str, ...]) -> bool:
        """Whether a signed token for these audiences belongs to this provider.

        One without audiences does if every token is introspected, because the answer will contain them.
        """
        is_checked_later = not audiences and self.introspection is not None and self.introspection.all_tokens
        return is_checked_later or self.rules.accepts_audience(audiences)

    @property
    def discovery_uri(self) -> str:
        """The address of the discovery document (OpenID Connect Discovery 1.0, section 4)."""
        return f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
