"""The only place that picks concrete backends: authorizer, authenticator, storage."""

from functools import cache

from lakewarden import config
from lakewarden.authn.interface import Authenticator
from lakewarden.authz.interface import Authorizer
from lakewarden.storage.interface import Storage
from lakewarden.storage.local import LocalStorage
from lakewarden.storage.profiles import StorageProfile


@cache
def authorizer() -> Authorizer:
    if config.current().authorization.backend == "allow-all":
        from lakewarden.authz.allow_all import AllowAllAuthorizer  # noqa: PLC0415 it warns when it is built

        return AllowAllAuthorizer()
    from lakewarden.authz.database import DatabaseAuthorizer  # noqa: PLC0415 loaded by servers only

    return DatabaseAuthorizer()


@cache
def authenticator() -> Authenticator:
    from lakewarden.authn.oidc import OidcAuthenticator  # noqa: PLC0415 loaded by servers only
    from lakewarden.authn.provider import OidcProvider  # noqa: PLC0415

    providers = [
        OidcProvider(
            id=name,
            issuer=provider.issuer,
            audiences=provider.audience,
            additional_issuers=provider.additional_issuers,
            scope=provider.scope,
            subject_claims=provider.subject_claim,
        )
        for name, provider in config.current().openid.items()
    ]
    return OidcAuthenticator(providers)


def storage(profile: StorageProfile) -> Storage:
    """The storage that `profile` describes."""
    return LocalStorage(profile)
