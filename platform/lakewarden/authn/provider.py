"""What an operator says about one OpenID provider; built from the configuration, read by oidc.py."""

import re
from dataclasses import dataclass
from typing import Final

_ID: Final = re.compile(r"[a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class OidcProvider:
    """One trusted issuer.

    `id` is the prefix of its principals (`oidc` for the primary one). A token is accepted when its `iss` is
    `issuer` or one of `additional_issuers`, and its `aud` holds any of `audiences` (none given: not checked).
    `scope`, if given, must be among the token's scopes. The first of `subject_claims` that holds text is the
    subject. `jwks_uri` replaces discovery.

    Raises:
        ValueError: a setting is impossible; the sentence names it.

    """

    id: str
    issuer: str
    audiences: tuple[str, ...]
    additional_issuers: tuple[str, ...] = ()
    scope: str | None = None
    subject_claims: tuple[str, ...] = ("oid", "sub")
    jwks_uri: str | None = None

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

    @property
    def issuers(self) -> tuple[str, ...]:
        """All accepted issuers without a trailing slash: providers differ in it, and so do operators."""
        return tuple(issuer.rstrip("/") for issuer in (self.issuer, *self.additional_issuers))

    def trusts(self, issuer: str) -> bool:
        return issuer.rstrip("/") in self.issuers

    def accepts_audience(self, audiences: tuple[str, ...]) -> bool:
        return not self.audiences or not set(self.audiences).isdisjoint(audiences)

    @property
    def discovery_uri(self) -> str:
        """OpenID Connect Discovery 1.0, section 4."""
        return f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
