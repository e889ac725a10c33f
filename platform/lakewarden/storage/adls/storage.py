"""Opens the storage of a filesystem: obstore for bytes, plain requests for lists and removals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import parse_qsl

from obstore.store import AzureStore

from lakewarden.config import StorageConfig
from lakewarden.storage.adls.advice import advice
from lakewarden.storage.adls.credentials import AdlsCredential, AzureSystemIdentity, ClientCredentials, SharedAccessKey
from lakewarden.storage.adls.identities import tokens_of
from lakewarden.storage.adls.listing import AdlsListing, code_of
from lakewarden.storage.adls.sas import Directory, Grant, signed_by_account
from lakewarden.storage.adls.vending import Signatures, by_account, by_identity
from lakewarden.storage.bearer_tokens import BearerToken, BearerTokens
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientAccess, Delegation
from lakewarden.storage.interface import StorageError
from lakewarden.storage.issued_credentials import Issued, of_this_process
from lakewarden.storage.object_clients import client_options, retry_options
from lakewarden.storage.object_removal import in_pages
from lakewarden.storage.object_requests import ObjectRequests
from lakewarden.storage.object_store import ObjectStorage
from lakewarden.storage.removal import Found, Removed

if TYPE_CHECKING:
    from obstore.store import AzureCredential

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
        self._blobs = AdlsListing(
            ObjectRequests(address, authorize=access.for_requests, code_of=code_of, settings=settings)
        )
        super().__init__(
            _store(profile, access, endpoint, settings, retries=settings.retries),
            _store(profile, access, endpoint, settings, retries=0),
            self._blobs,
            base=profile.location,
            normal=profile.normal,
            advice=advice,
            settings=settings,
            # so that a refused identity is said in our words, and not in those of obstore
            prepare=access.for_requests,
        )
        self._signatures = access.signatures() if profile.sas_enabled else None

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
                outcome.error = error
            return outcome

        # a folder goes after those in it
        return in_pages(found, clear, at_once=1 if any(each.is_folder for each in found) else at_once)

    def client_access(self, request: AccessRequest) -> ClientAccess:
        path, signatures = self._key(request.location), self._signatures
        if signatures is None or request.wanted == {Delegation.CLIENT_MANAGED}:
            return ClientAccess()
        issued = of_this_process().get(
            (self._identity, path, request.level), lambda: Issued(*signatures.issue(path, request.level))
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

    def for_obstore(self) -> "AzureCredential":
        if self._tokens is not None:
            token = self._tokens.current()
            return {"token": token.value, "expires_at": token.expires_at}
        if isinstance(self._credential, IssuedSignature):
            return {"sas_token": self._credential.token, "expires_at": None}
        return {"access_key": self._key, "expires_at": None}

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
    """Of the account's blob service: obstore and the signatures' keys speak to it, and not to the one of ADLS."""
    if settings.azure.blob_endpoint:
        return settings.azure.blob_endpoint.replace("{account}", profile.account_name).rstrip("/")
    host = profile.host.replace("dfs.", "blob.", 1)
    return f"https://{profile.account_name}.{host}"


def _store(
    profile: "AdlsProfile", access: _Access, endpoint: str, settings: StorageConfig, *, retries: int
) -> AzureStore:
    return AzureStore(
        profile.filesystem,
        # each is given, because obstore takes from the server's environment what is not
        config={
            "account_name": profile.account_name,
            "endpoint": endpoint,
            "use_emulator": False,
            "use_fabric_endpoint": False,
            "skip_signature": False,
        },
        client_options=client_options(settings, url=endpoint),
        retry_config=retry_options(settings, retries=retries),
        credential_provider=access.for_obstore,
    )
