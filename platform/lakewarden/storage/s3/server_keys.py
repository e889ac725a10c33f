"""The keys with which the server uses a bucket: given, of the machine, of a role, or an engine's that it tries."""

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    CredentialProvider,
    CredentialResolver,
    Credentials,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import ClientError
from botocore.loaders import Loader, create_loader
from botocore.session import Session

from lakewarden.config import StorageConfig
from lakewarden.storage.interface import StorageError, StorageSilent
from lakewarden.storage.object_faults import plain_code
from lakewarden.storage.s3.bounded_answers import FAILURES, bounded
from lakewarden.storage.s3.credentials import AccessKey, AwsSystemIdentity, CloudflareR2, S3Credential
from lakewarden.storage.s3.issued_keys import IssuedKeys
from lakewarden.storage.s3.sigv4 import SigningKeys

if TYPE_CHECKING:
    from lakewarden.storage.s3.profile import S3Profile

SESSION_NAME: Final = "lakewarden"
_ROLE_LASTS_S: Final = 3600
"""What every role allows. botocore asks for new keys some minutes before the end."""
LOOK_AGAIN: Final = timedelta(seconds=30)


class ServerKeys:
    """Keys that stay valid: those of roles and machines are replaced before they end."""

    def __init__(self, credentials: Credentials, *, of: str) -> None:
        self._credentials, self._of = credentials, of

    def ensure_there(self) -> None:
        """Raises StorageError when there are none, or no further ones."""
        try:
            self._credentials.get_frozen_credentials()
        except ClientError as error:
            code = plain_code(error.response.get("Error", {}).get("Code")) or ""
            raise StorageError(
                f"The token service refused {self._of}: {code}; check the role, who may assume it, and the external id"
            ) from None
        except (*FAILURES, ValueError, KeyError) as error:
            raise StorageSilent(f"There are no keys for {self._of}: {type(error).__name__}") from None

    def for_signing(self) -> SigningKeys:
        """Raises as `ensure_there`, and may wait for the token service."""
        self.ensure_there()
        keys = self._credentials.get_frozen_credentials()
        return SigningKeys(keys.access_key or "", keys.secret_key or "", keys.token)

    @property
    def are_fixed(self) -> bool:
        """Whether they never change."""
        return type(self._credentials) is Credentials

    def client(self, service: str, *, region: str, endpoint: str | None, config: Config) -> Any:  # noqa: ANN401 made by botocore
        """A client of AWS's library that uses these keys."""
        session = _session(lambda: self._credentials)
        return bounded(session.create_client(service, region_name=region, endpoint_url=endpoint, config=config))


def own_keys(profile: "S3Profile", credential: S3Credential) -> ServerKeys:
    """Those of the credential itself, which may assume roles."""
    return ServerKeys(_own(credential), of=f"the storage credential of the bucket {profile.bucket}")


def server_keys(profile: "S3Profile", credential: S3Credential | IssuedKeys, settings: StorageConfig) -> ServerKeys:
    if isinstance(credential, IssuedKeys):
        keys = Credentials(credential.access_key_id, credential.secret_access_key, credential.session_token)
        return ServerKeys(keys, of=f"an engine that uses the bucket {profile.bucket}")
    if profile.assume_role_arn is None or isinstance(credential, CloudflareR2):
        return own_keys(profile, credential)
    own = _own(credential)
    role = profile.assume_role_arn
    arguments: dict[str, Any] = {"RoleSessionName": SESSION_NAME, "DurationSeconds": _ROLE_LASTS_S}
    if credential.external_id:
        arguments["ExternalId"] = credential.external_id
    if profile.sts_session_tags:
        arguments["Tags"] = [{"Key": key, "Value": value} for key, value in profile.sts_session_tags.items()]

    def sts(service: str, **keys: Any) -> Any:  # noqa: ANN401 called and made by botocore
        given = Credentials(keys["aws_access_key_id"], keys["aws_secret_access_key"], keys["aws_session_token"])
        return ServerKeys(given, of=role).client(
            service, region=profile.region, endpoint=profile.sts_url, config=request_config(settings)
        )

    fetcher = AssumeRoleCredentialFetcher(sts, own, role, extra_args=arguments)
    return ServerKeys(DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role"), of=f"the role {role}")


def request_config(settings: StorageConfig, **more: Any) -> Config:  # noqa: ANN401 as botocore names them
    """Time-outs and retries as the operator wants them; nothing of the machine's AWS files."""
    limits: dict[str, Any] = {
        "connect_timeout": settings.connect_timeout_s,
        "read_timeout": settings.request_timeout_s,
        "retries": {"mode": "standard", "total_max_attempts": settings.retries + 1},
        "ignore_configured_endpoint_urls": True,
    }
    return Config(**limits, **more)


def _own(credential: S3Credential) -> Credentials:
    if isinstance(credential, AwsSystemIdentity):
        found = _of_the_machine().get_credentials()
        if found is None:
            raise StorageError("The server's machine has no AWS identity; use another credential-type, or give it one")
        return found
    assert isinstance(credential, AccessKey | CloudflareR2)  # noqa: S101 the other kinds
    return Credentials(credential.access_key_id, credential.secret_access_key.get_secret_value())


@cache
def _of_the_machine() -> Session:
    return Session()


@cache
def _models() -> Loader:
    """The descriptions of AWS's services: large files, which are read once."""
    return create_loader()


class _Given(CredentialProvider):
    METHOD = "lakewarden"
    CANONICAL_NAME = "lakewarden"

    def __init__(self, keys: Callable[[], Credentials]) -> None:
        super().__init__()
        self._keys = keys

    def load(self) -> Credentials:
        return self._keys()


def _session(keys: Callable[[], Credentials]) -> Session:
    session = Session()
    session.register_component("data_loader", _models())
    session.register_component("credential_provider", CredentialResolver([_Given(keys)]))
    return session
