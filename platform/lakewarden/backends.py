"""Builds the configured authorizer, authenticator and storage; nothing else may choose or import a backend."""

from functools import cache, lru_cache

from lakewarden import config
from lakewarden.authn.interface import Authenticator
from lakewarden.authz.interface import Authorizer
from lakewarden.storage.bounded import BoundedStorage, Places
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import Storage
from lakewarden.storage.profile import StorageProfile


@cache
def authorizer() -> Authorizer:
    settings = config.current()
    if settings.authorization.by_openfga:
        from lakewarden.authz.openfga.authorizer import OpenFgaAuthorizer  # noqa: PLC0415 its SDK takes time to load

        return OpenFgaAuthorizer(settings.openfga)
    if settings.authorization.is_off:
        from lakewarden.authz.allow_all import AllowAllAuthorizer  # noqa: PLC0415 it warns when it is built

        return AllowAllAuthorizer()
    from lakewarden.authz.database import DatabaseAuthorizer  # noqa: PLC0415 loaded by servers only

    return DatabaseAuthorizer()


@cache
def authenticator() -> Authenticator:
    from lakewarden.authn import provider_settings  # noqa: PLC0415 loaded by servers only
    from lakewarden.authn.chain import AuthenticatorChain  # noqa: PLC0415
    from lakewarden.authn.kubernetes import service_accounts  # noqa: PLC0415

    settings = config.current()
    return AuthenticatorChain(
        [provider_settings.provider(name, provider) for name, provider in settings.openid.items()],
        cluster=service_accounts(settings.kubernetes) if settings.kubernetes.enabled else None,
    )


def storage(profile: StorageProfile, credential: StorageCredential | None = None) -> Storage:
    """The storage that `profile` describes."""
    return BoundedStorage(profile.open(credential), _places(profile.location))


@lru_cache(maxsize=1000)
def _places(location: str) -> Places:  # noqa: ARG001 each storage has its own
    return Places(config.current().storage.max_calls_at_once)
