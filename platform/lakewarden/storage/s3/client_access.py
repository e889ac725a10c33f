"""What engines receive for a table on S3: temporary keys, the address of a signer, or only where the bucket is."""

import hashlib
import json
from functools import partial
from typing import Final

from lakewarden.config import StorageConfig
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientAccess, Delegation
from lakewarden.storage.issued_credentials import Issued, of_this_process
from lakewarden.storage.s3.client_settings import client_settings
from lakewarden.storage.s3.credentials import CloudflareR2, S3Credential
from lakewarden.storage.s3.endpoints import EndpointsInUse
from lakewarden.storage.s3.profile import S3Profile
from lakewarden.storage.s3.r2 import API, R2TokenService
from lakewarden.storage.s3.signer_settings import signer_settings
from lakewarden.storage.s3.sts import TokenService, sts_client
from lakewarden.storage.s3.temporary_keys import KeyIssuer, TemporaryKeys
from lakewarden.timed_connections import timed_pools

VENDED, SIGNED = Delegation.VENDED_CREDENTIALS, Delegation.REMOTE_SIGNING
REFRESH: Final = "client.refresh-credentials-endpoint"


class S3ClientAccess:
    """For one opened storage; what is issued is shared by all of a process."""

    def __init__(self, profile: S3Profile, credential: S3Credential, settings: StorageConfig) -> None:
        self._profile = profile
        self._credential = credential
        self._limits = settings
        self._endpoints = EndpointsInUse(profile.own_endpoints, settings.aws.endpoints)
        self._issued = of_this_process()
        self._settings = client_settings(profile)
        self._identity = _identity(profile, credential)
        self._service = API if isinstance(credential, CloudflareR2) else profile.sts_url
        self._issuer: KeyIssuer | None = None

    def of(self, request: AccessRequest) -> ClientAccess:
        """Raises StorageError when the store issues no keys."""
        means = chosen(request.wanted, vends=self._profile.sts_enabled, signs=self._profile.remote_signing_enabled)
        if means is VENDED:
            key = (self._identity, request.location, request.level)
            issued = self._issued.get(key, partial(self._issue, request.location, request.level), service=self._service)
            config = {**self._settings, REFRESH: request.routes.credentials}
            return ClientAccess(config, issued.properties, issued.expires_at, issued.fresh_until)
        if means is SIGNED:
            return ClientAccess({**self._settings, **signer_settings(request.routes)})
        return ClientAccess(self._settings)

    def _issue(self, location: str, level: AccessLevel) -> Issued:
        if self._issuer is None:
            self._issuer = _issuer(self._profile, self._credential, self._limits)
        self._endpoints.ensure_allowed()
        keys = self._issuer.issue(location, level)
        return Issued(_properties(keys), keys.expires_at)


def chosen(wanted: frozenset[Delegation], *, vends: bool, signs: bool) -> Delegation | None:
    """What the storage offers, preferably of what the engine wants; keys before signatures. None: no means of access.

    An engine that names only what is not on offer receives the other one: most do not name all that they can use.
    """
    if wanted == {Delegation.CLIENT_MANAGED}:
        return None
    on_offer = [means for means, offered in ((VENDED, vends), (SIGNED, signs)) if offered]
    preferred = [means for means in on_offer if means in wanted]
    return next(iter(preferred or on_offer), None)


def _properties(keys: TemporaryKeys) -> dict[str, str]:
    expires_at_ms = str(int(keys.expires_at.timestamp() * 1000))
    return {
        "s3.access-key-id": keys.access_key_id,
        "s3.secret-access-key": keys.secret_access_key,
        "s3.session-token": keys.session_token,
        "s3.session-token-expires-at-ms": expires_at_ms,
        "expiration-time": expires_at_ms,
    }


def _issuer(profile: S3Profile, credential: S3Credential, settings: StorageConfig) -> KeyIssuer:
    if isinstance(credential, CloudflareR2):
        http = timed_pools(API, timeout=settings.token_timeout_s, retries=False)
        return R2TokenService(profile, credential, http=http)
    client = sts_client(profile, credential, settings)
    return TokenService(profile, external_id=credential.external_id, client=client)


def _identity(profile: S3Profile, credential: S3Credential) -> bytes:
    """Differs where another profile or credential would make the store issue other keys."""
    known = [profile.dump(), credential.dump()]
    return hashlib.blake2b(json.dumps(known, sort_keys=True).encode(), digest_size=16).digest()
