"""Builds `OidcProvider` from the configuration; for lakewarden.backends and doctor."""

from lakewarden.authn.provider import Introspection, OidcProvider
from lakewarden.config import IntrospectionConfig, OidcConfig


def provider(identifier: str, settings: OidcConfig) -> OidcProvider:
    """The provider with this id. Raises ValueError, whose message is a sentence, if a setting is invalid."""
    return OidcProvider(
        id=identifier,
        issuer=settings.issuer,
        audiences=settings.audience,
        additional_issuers=settings.additional_issuers,
        scope=settings.scope,
        subject_claims=settings.subject_claim,
        jwks_uri=settings.jwks_uri,
        roles_claim=settings.roles_claim,
        name_claim=settings.name_claim,
        email_claim=settings.email_claim,
        clock_skew_s=settings.clock_skew_s,
        max_roles=settings.max_roles,
        introspection=_introspection(settings.introspection),
    )


def _introspection(settings: IntrospectionConfig) -> Introspection | None:
    if settings.client_id is None or settings.client_secret is None:
        return None
    return Introspection(
        client_id=settings.client_id,
        client_secret=settings.client_secret.get_secret_value(),
        uri=settings.uri,
        all_tokens=settings.all_tokens,
        recheck_after_s=settings.recheck_after_s,
        max_missed_rechecks=settings.max_missed_rechecks,
    )
