"""Temporary keys of Cloudflare R2, whose API issues them instead of STS (`r2/temp-access-credentials`)."""

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import urllib3

from lakewarden.storage.bearer_tokens import refused
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.interface import StorageError, StorageSilent
from lakewarden.storage.s3.credentials import CloudflareR2
from lakewarden.storage.s3.profile import S3Profile
from lakewarden.storage.s3.temporary_keys import TemporaryKeys

logger = logging.getLogger(__name__)

API: Final = "https://api.cloudflare.com/client/v4"
_PERMISSIONS: Final = {AccessLevel.READ: "object-read-only", AccessLevel.WRITE: "object-read-write"}
_OK: Final = 200
_REASONS: Final = {
    400: "it did not accept the bucket, the access key id or the time: check bucket and sts-token-validity-seconds",
    401: "the token is not valid: set a new storage credential",
    403: "the token may not do this: it needs the permission to edit R2, and the access key must be its own",
    404: "the account or the bucket does not exist: check account-id and bucket",
    429: "it has too many requests now; try again shortly",
}


class _Keys(msgspec.Struct, rename="camel"):
    access_key_id: str
    secret_access_key: str
    session_token: str


class _Answer(msgspec.Struct):
    result: _Keys


class R2TokenService:
    """Issues keys with the API token of a warehouse's credential."""

    def __init__(self, profile: S3Profile, credential: CloudflareR2, *, http: urllib3.PoolManager) -> None:
        self._profile = profile
        self._credential = credential
        self._url = f"{API}/accounts/{credential.account_id}/r2/temp-access-credentials"
        self._http = http

    def issue(self, location: str, level: AccessLevel) -> TemporaryKeys:
        seconds = self._profile.sts_token_validity_seconds
        expires_at = datetime.now(UTC) + timedelta(seconds=seconds)  # R2 does not say it: no later than this
        bucket, _, key = location.partition("://")[2].partition("/")
        body: dict[str, Any] = {
            "bucket": bucket,
            "parentAccessKeyId": self._credential.access_key_id,
            "permission": _PERMISSIONS[level],
            "ttlSeconds": seconds,
        }
        if key:
            body["prefixes"] = [f"{key}/"]
        keys = self._asked(body)
        return TemporaryKeys(keys.access_key_id, keys.secret_access_key, keys.session_token, expires_at)

    def _asked(self, body: dict[str, Any]) -> _Keys:
        token = self._credential.token.get_secret_value()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            answer = self._http.request("POST", self._url, body=json.dumps(body), headers=headers, redirect=False)
        except urllib3.exceptions.HTTPError as error:
            logger.warning("The API of Cloudflare does not answer: %s", type(error).__name__)
            raise StorageSilent("The API of Cloudflare does not answer: check the server's network") from error
        if answer.status != _OK:
            reason = _REASONS.get(answer.status, f"it answered {answer.status}")
            raise refused(answer.status, f"Cloudflare refused to issue temporary keys: {reason}")
        try:
            return msgspec.json.decode(answer.data, type=_Answer).result
        except msgspec.DecodeError:
            # without the error: the answer may hold keys
            raise StorageError("Cloudflare answered in a form that this server does not know") from None
