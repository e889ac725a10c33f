"""Issues shared access signatures for one directory, under the names by which engines know them."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from lakewarden.config import StorageConfig
from lakewarden.storage.adls.credentials import SharedAccessKey
from lakewarden.storage.adls.delegation import LONGEST, DelegationKeys
from lakewarden.storage.adls.sas import Directory, Grant, signed_by_account, signed_by_identity
from lakewarden.storage.bearer_tokens import BearerTokens
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.interface import StorageError

Sign = Callable[[Directory, Callable[[datetime], Grant]], tuple[str, datetime]]
"""Signs a grant that ends no later than the time which the function of grants is asked for; returns its end, too."""


class Signatures:
    """Issues signatures for directories of one filesystem."""

    def __init__(
        self,
        *,
        account: str,
        host: str,
        filesystem: str,
        validity: timedelta,
        skew: timedelta,
        schemes: str,
        sign: Sign,
    ) -> None:
        self._account, self._host, self._filesystem = account, host, filesystem
        self._validity, self._skew, self._schemes = min(validity, LONGEST - skew), skew, schemes
        self._sign = sign

    def issue(self, path: str, level: AccessLevel) -> tuple[Mapping[str, str], datetime]:
        """The properties of engines and the end of what they hold. Raises StorageError.

        `path` is that of a directory, not of the whole filesystem.
        """
        if not path:
            raise StorageError("Credentials are issued for a folder only, not for a whole filesystem")
        now = datetime.now(UTC).replace(microsecond=0)

        def grant(limit: datetime) -> Grant:
            return Grant(level, now - self._skew, min(now + self._validity, limit), self._schemes)

        token, end = self._sign(Directory(self._account, self._filesystem, path), grant)
        return self._properties(token, end), end

    def _properties(self, token: str, end: datetime) -> dict[str, str]:
        host, at = f"{self._account}.{self._host}", str(int(end.timestamp() * 1000))
        return {
            f"adls.sas-token.{host}": token,
            f"adls.sas-token-expires-at-ms.{host}": at,
            # PyArrow in PyIceberg reads these only. PyIceberg up to 0.10.0 takes whatever begins with adls.sas-token
            # for a token of an account, the time above included, unless both of these are there.
            "adls.account-name": self._account,
            "adls.sas-token": token,
            "expiration-time": at,
        }


def by_account(credential: SharedAccessKey) -> Sign:
    key = credential.key.get_secret_value()

    def sign(directory: Directory, grant: Callable[[datetime], Grant]) -> tuple[str, datetime]:
        granted = grant(datetime.max.replace(tzinfo=UTC))
        return signed_by_account(directory, granted, key=key), granted.expiry

    return sign


def by_identity(tokens: BearerTokens, *, endpoint: str, validity: timedelta, settings: StorageConfig) -> Sign:
    skew = timedelta(seconds=settings.azure.clock_skew_s)
    keys = DelegationKeys(tokens, endpoint=endpoint, validity=validity, skew=skew, timeout_s=settings.token_timeout_s)

    def sign(directory: Directory, grant: Callable[[datetime], Grant]) -> tuple[str, datetime]:
        key, end = keys.current()
        granted = grant(end)
        return signed_by_identity(directory, granted, key=key), granted.expiry

    return sign
