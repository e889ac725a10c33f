"""Issues tokens for one prefix of a bucket, under the names by which engines know them."""

from collections.abc import Mapping
from datetime import UTC, datetime

from lakewarden.storage.bearer_tokens import BearerTokens, TokenService
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.gcs.boundary import boundary, exchange_form
from lakewarden.storage.interface import StorageError


class DownscopedTokens:
    """Exchanges the server's token of one identity for tokens that reach one prefix."""

    def __init__(
        self, tokens: BearerTokens, *, bucket: str, project: str | None, exchange_endpoint: str, timeout_s: float
    ) -> None:
        self._tokens = tokens
        self._bucket, self._project = bucket, project
        self._address = exchange_endpoint
        self._service = TokenService("Google's Security Token Service", timeout_s=timeout_s)

    def issue(self, key: str, level: AccessLevel) -> tuple[Mapping[str, str], datetime]:
        """The properties of engines and the end of what they hold. Raises StorageError.

        `key` is that of a folder, without slashes around it, not of the whole bucket.
        """
        if not key:
            raise StorageError("Credentials are issued for a folder only, not for a whole bucket")
        source = self._tokens.current()
        limits = boundary(bucket=self._bucket, prefix=f"{key}/", level=level)
        left = int((source.expires_at - datetime.now(UTC)).total_seconds())
        token = self._service.ask("POST", self._address, form=exchange_form(source.value, limits), lasts_s=left)
        # a token does not live longer than the one that it was exchanged for
        end = min(token.expires_at, source.expires_at)
        return self._properties(token.value, end), end

    def _properties(self, token: str, end: datetime) -> dict[str, str]:
        at = str(int(end.timestamp() * 1000))
        properties = {"gcs.oauth2.token": token, "gcs.oauth2.token-expires-at": at, "expiration-time": at}
        return properties | ({"gcs.project-id": self._project} if self._project else {})
