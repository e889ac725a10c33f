"""Builds the configured authorizer, authenticator, secret store and storage.

Nothing else may choose or import a backend.
"""

from functools import cache, lru_cache, partial
from uuid import UUID

from lakewarden import config
from lakewarden.authn.interface import Authenticator
from lakewarden.authz.interface import Authorizer
from lakewarden.secrets.database import DatabaseStore, installation
from lakewarden.secrets.either import EitherStore
from lakewarden.secrets.interface import SecretError, SecretMissing, SecretsNotConfigured, SecretStore
from lakewarden.secrets.key_ring import KeyRing
from lakewarden.storage.bounded import BoundedStorage, Places
from lakewarden.storage.breaker import Breaker
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import CredentialMissing, Storage, StorageUnavailable
from lakewarden.storage.opened import OpenedStorages
from lakewarden.storage.profile import StorageProfile
from lakewarden.storage.request_signing import RequestSigner


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


def is_authorization_lost() -> bool:
    """Whether the store in which rights were checked is gone, which only OpenFGA has. Raises Unavailable."""
    if not config.current().authorization.by_openfga or not authorizer.cache_info().currsize:
        return False
    from lakewarden.authz.openfga.authorizer import OpenFgaAuthorizer  # noqa: PLC0415 its SDK takes time to load

    chosen = authorizer()
    return isinstance(chosen, OpenFgaAuthorizer) and chosen.is_lost()


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


def secrets() -> SecretStore:
    """Raises SecretsNotConfigured if its settings cannot be used."""
    settings = config.current().secrets
    if settings.vault.url is None:
        return secrets_in_database()
    return EitherStore(*secret_stores(in_vault=settings.in_vault))


def secret_stores(*, in_vault: bool) -> tuple[SecretStore, SecretStore]:
    """That in Vault, which must be configured, and that in the database, or the other way round."""
    stores: tuple[SecretStore, SecretStore] = (_secrets_in_vault(), secrets_in_database())
    return stores if in_vault else stores[::-1]


def secrets_problem() -> str | None:
    """Why secrets in the database cannot be read with the keys that are configured; None: they can."""
    try:
        return secrets_in_database().problem()
    except SecretsNotConfigured as error:
        return str(error)


def key_ring() -> KeyRing:
    """Of the secrets in the database. Raises SecretsNotConfigured if it cannot be read."""
    return KeyRing.read(config.current().secrets)


@cache
def secrets_in_database() -> DatabaseStore:
    return DatabaseStore(key_ring())


@cache
def _secrets_in_vault() -> SecretStore:
    from lakewarden.secrets.vault import VaultStore  # noqa: PLC0415 its client takes time to load

    return VaultStore(config.current().secrets.vault, installation=installation)


def storage(profile: StorageProfile, credential: StorageCredential | None = None) -> Storage:
    """The storage that `profile` describes, opened anew: for a credential that is not kept, or not yet."""
    return BoundedStorage(profile.open(credential), _places(profile.location), _breaker(profile.location))


def storage_of(profile: StorageProfile, reference: UUID | None) -> Storage:
    """A warehouse's storage, with the credential that `reference` refers to. It is remembered: secrets never change.

    Raises StorageUnavailable if the credential cannot be read, CredentialMissing if it was deleted.
    """
    if not profile.CREDENTIALS:
        return storage(profile)  # of directories, which are opened faster than they are found
    return _opened().get((profile, reference), partial(_open, profile, reference))


def request_signer(profile: StorageProfile, reference: UUID | None) -> RequestSigner | None:
    """What signs engines' requests to a warehouse's storage, remembered like the storage; None: they are not signed.

    Raises StorageUnavailable if the credential cannot be read.
    """
    if not profile.signs_requests:
        return None
    return _signers().get((profile, reference), lambda: profile.signer(_credential(profile, reference)))


def _open(profile: StorageProfile, reference: UUID | None) -> Storage:
    return storage(profile, _credential(profile, reference))


def _credential(profile: StorageProfile, reference: UUID | None) -> StorageCredential | None:
    try:
        values = None if reference is None else secrets().get(reference)
    except SecretError as error:
        kind = CredentialMissing if isinstance(error, SecretMissing) else StorageUnavailable
        raise kind(f"The credential of the warehouse's storage cannot be read: {error}") from error
    return profile.parse_credential(values)


@cache
def _opened() -> OpenedStorages[Storage]:
    return OpenedStorages(config.current().storage.max_open)


@cache
def _signers() -> OpenedStorages[RequestSigner]:
    return OpenedStorages(config.current().storage.max_open)


@lru_cache(maxsize=1000)
def _places(location: str) -> Places:  # noqa: ARG001 each storage has its own
    return Places(config.current().storage.max_calls_at_once)


@lru_cache(maxsize=1000)
def _breaker(location: str) -> Breaker:
    settings = config.current().storage
    return Breaker(location, most=settings.failures_before_pause, pause_s=settings.pause_s)
