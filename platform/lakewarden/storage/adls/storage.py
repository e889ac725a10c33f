"""Opens the storage of a filesystem, by the account's blob service."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import parse_qsl

from lakewarden.config import StorageConfig
from lakewarden.storage.adls.advice import advice
from lakewarden.storage.adls.credentials import AdlsCredential, AzureSystemIdentity, ClientCredentials, SharedAccessKey
from lakewarden.storage.adls.identities import tokens_of
from lakewarden.storage.adls.listing import HEADERS, AdlsListing, fault_of
from lakewarden.storage.adls.sas import Directory, Grant, signed_by_account
from lakewarden.storage.adls.vending import Signatures, by_account, by_identity
from lakewarden.storage.bearer_tokens import BearerToken, BearerTokens
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientAccess, Delegation
from lakewarden.storage.interface import StorageError, StorageUnavailable
from lakewarden.storage.issued_credentials import Issued, of_this_process
from lakewarden.storage.object_removal import in_pages
from lakewarden.storage.object_requests import ObjectRequests
from lakewarden.storage.object_store import ObjectStorage
from lakewarden.storage.removal import Found, Removed

if TYPE_CHECKING:
    from lakewarden.storage.adls.profile import AdlsProfile

_NOT_AS_FOUND: Final = {"ConditionNotMet", "DirectoryIsNotEmpty"}
"""Codes of refusals that leave what has changed since it was found."""


@dataclass(frozen=True, slots=True)
class IssuedSignature:
    """What an engine has received, to try what it can do."""

    token: str = field(repr=False)

    @classmethod
    def of(cls, access: ClientAccess) -> Self:
        return cls(access.credentials["adls.sas-token"])


class AdlsStorage(ObjectStorage):
    """Files, and the folders of accounts with a hierarchical namespace: they stay behind when their files go."""

    def __init__(
        self, profile: "AdlsProfile", credential: AdlsCredential | IssuedSignature, settings: StorageConfig
    ) -> None:
        # whatever is issued belongs to the profile and the credential with which this was opened
        self._identity = object()
        endpoint = _endpoint(profile, settings)
        access = _Access(profile, credential, endpoint, settings)
        address = f"{endpoint}/{profile.filesystem}"
        requests = ObjectRequests(
            address, authorize=lambda *_: access.for_requests(), fault_of=fault_of, settings=settings
        )
        self._blobs = AdlsListing(requests)
        super().__init__(
            requests,
            self._blobs,
            base=profile.location,
            normal=profile.normal,
            advice=advice,
            settings=settings,
            prepare=access.for_requests,
        )
        self._signatures = access.signatures() if profile.sas_enabled else None
        self._service = None if isinstance(credential, SharedAccessKey) else endpoint  # a key signs without a request

    def _get(self, key: str, most: int) -> bytes:
        return self._requests.send("GET", key, headers=HEADERS, most=most).data

    def _send_new(self, key: str, content: bytes) -> None:
        headers = {**HEADERS, "x-ms-blob-type": "BlockBlob", "If-None-Match": "*"}
        self._requests.send("PUT", key, headers=headers, body=content, retries=0)

    def _delete(self, key: str) -> None:
        self._requests.send("DELETE", key, headers={**HEADERS, "x-ms-delete-snapshots": "include"})

    def survey(self, location: str, *, within: str) -> Iterator[Found]:
        """Files; when none is left, folders."""
        has_files = False
        for each in super().survey(location, within=within):
            has_files = True
            yield each
        if not has_files:
            start = len(self._key(within)) + 1 if self._key(within) else 0
            with self._translating("listing", location):
                for folder in self._blobs.folders(self._key(location)):
                    yield Found(folder.key[start:], 0, folder.version, is_folder=True)

    def remove(self, found: Sequence[Found], *, within: str, at_once: int) -> Removed:
        """Each by a request of its own, which fails if it has changed: the service cannot list a range."""
        prefix = f"{self._key(within)}/".removeprefix("/")

        def clear(page: Sequence[Found]) -> Removed:
            outcome = Removed()
            try:
                with self._translating("deleting", within):
                    for each in page:
                        self._remove_one(each, prefix, outcome)
            except StorageError as error:
                outcome.error, outcome.is_unclear = error, isinstance(error, StorageUnavailable)
            return outcome

        # a folder goes after those in it
        return in_pages(found, clear, at_once=1 if any(each.is_folder for each in found) else at_once)

    def client_access(self, request: AccessRequest) -> ClientAccess:
        path, signatures = self._key(request.location), self._signatures
        if signatures is None or request.wanted == {Delegation.CLIENT_MANAGED}:
            return ClientAccess()
        issued = of_this_process().get(
            (self._identity, path, request.level),
            lambda: Issued(*signatures.issue(path, request.level)),
            service=self._service,
        )
        config = {"adls.refresh-credentials-endpoint": request.routes.credentials}
        return ClientAccess(config, issued.properties, issued.expires_at, issued.fresh_until)

    def _remove_one(self, found: Found, prefix: str, outcome: Removed) -> None:
        code = self._blobs.remove_one(f"{prefix}{found.path}", found.version)
        if code is None:
            outcome.gone.append(found)
        elif not code:
            outcome.missing.append(found)
        elif code not in _NOT_AS_FOUND:
            raise StorageError(f"{prefix}{found.path} could not be deleted: {code}")


class _Access:
    """How the server proves its identity to one account, and signs for engines."""

    def __init__(
        self,
        profile: "AdlsProfile",
        credential: AdlsCredential | IssuedSignature,
        endpoint: str,
        settings: StorageConfig,
    ) -> None:
        self._profile, self._credential, self._endpoint, self._settings = profile, credential, endpoint, settings
        self._tokens = None
        if isinstance(credential, ClientCredentials | AzureSystemIdentity):
            self._tokens = tokens_of(
                credential,
                authority=profile.authority_host,
                settings=settings.azure,
                timeout_s=settings.token_timeout_s,
            )
        self._own = BearerTokens(self._own_signature, margin=timedelta(minutes=5))
        self._schemes = "https,http" if endpoint.startswith("http:") else "https"
        self._skew = timedelta(seconds=settings.azure.clock_skew_s)

    def signatures(self) -> Signatures | None:
        """None: what an engine has received cannot sign."""
        validity = timedelta(seconds=self._profile.sas_token_validity_seconds)
        if self._tokens is not None:
            sign = by_identity(self._tokens, endpoint=self._endpoint, validity=validity, settings=self._settings)
        elif isinstance(self._credential, SharedAccessKey):
            sign = by_account(self._credential)
        else:
            return None
        return Signatures(
            account=self._profile.account_name,
            host=self._profile.host,
            filesystem=self._profile.filesystem,
            validity=validity,
            skew=self._skew,
            schemes=self._schemes,
            sign=sign,
        )

    def for_requests(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Query and headers. With a key: a signature of our own, which is less work than one for each request."""
        if self._tokens is not None:
            return {}, {"Authorization": f"Bearer {self._tokens.current().value}"}
        if isinstance(self._credential, IssuedSignature):
            return dict(parse_qsl(self._credential.token)), {}
        return dict(parse_qsl(self._own.current().value)), {}

    @property
    def _key(self) -> str:
        assert isinstance(self._credential, SharedAccessKey)  # noqa: S101 the others are asked first
        return self._credential.key.get_secret_value()

    def _own_signature(self) -> BearerToken:
        now = datetime.now(UTC)
        grant = Grant(AccessLevel.WRITE, now - self._skew, now + timedelta(hours=1), self._schemes)
        whole = Directory(self._profile.account_name, self._profile.filesystem, "")
        return BearerToken(signed_by_account(whole, grant, key=self._key), grant.expiry)


def _endpoint(profile: "AdlsProfile", settings: StorageConfig) -> str:
    """Of the account's blob service, which also issues the keys of signatures."""
    if settings.azure.blob_endpoint:
        return settings.azure.blob_endpoint.replace("{account}", profile.account_name).rstrip("/")
    host = profile.host.replace("dfs.", "blob.", 1)
    return f"https://{profile.account_name}.{host}"
