"""Requests to the API of Cloudflare R2: there is no emulator of it."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.interface import StorageError
from lakewarden.storage.s3.credentials import CloudflareR2
from lakewarden.storage.s3.r2 import R2TokenService
from tests.unit.storage.s3.profiles import profile

if TYPE_CHECKING:
    import urllib3

CREDENTIAL = CloudflareR2.model_validate(
    {"account-id": "acc", "access-key-id": "parent", "secret-access-key": "hidden-key", "token": "hidden-token"}
)
ANSWER = {"success": True, "result": {"accessKeyId": "a", "secretAccessKey": "s", "sessionToken": "t"}}


class Api:
    """Answers every request with the same."""

    def __init__(self, status: int, body: bytes) -> None:
        self.answer = SimpleNamespace(status=status, data=body)
        self.asked: list[tuple[str, str, dict[str, Any], dict[str, str]]] = []

    def request(self, method: str, url: str, *, body: str, headers: dict[str, str], redirect: bool) -> SimpleNamespace:
        assert not redirect
        self.asked.append((method, url, json.loads(body), headers))
        return self.answer

    def service(self) -> R2TokenService:
        return R2TokenService(profile(), CREDENTIAL, http=cast("urllib3.PoolManager", self))


@pytest.mark.parametrize(
    ("level", "permission"), [(AccessLevel.READ, "object-read-only"), (AccessLevel.WRITE, "object-read-write")]
)
def test_keys_are_limited_to_the_location(level: AccessLevel, permission: str) -> None:
    api = Api(200, json.dumps(ANSWER).encode())
    before = datetime.now(UTC)
    keys = api.service().issue("s3://lake/wh/t", level)
    assert (keys.access_key_id, keys.secret_access_key, keys.session_token) == ("a", "s", "t")
    assert before + timedelta(hours=1) <= keys.expires_at <= datetime.now(UTC) + timedelta(hours=1)
    ((method, url, body, headers),) = api.asked
    assert (method, url) == ("POST", "https://api.cloudflare.com/client/v4/accounts/acc/r2/temp-access-credentials")
    assert headers["Authorization"] == "Bearer hidden-token"
    assert body == {
        "bucket": "lake",
        "parentAccessKeyId": "parent",
        "permission": permission,
        "ttlSeconds": 3600,
        "prefixes": ["wh/t/"],
    }


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, b"{}", "set a new storage credential"),
        (403, b"hidden-token", "permission to edit R2"),
        (404, b"", "check account-id and bucket"),
        (500, b"", "answered 500"),
        (200, b'{"result": {"accessKeyId": "hidden-key"}}', "does not know"),
    ],
)
def test_a_refusal_says_what_to_change(status: int, body: bytes, says: str) -> None:
    with pytest.raises(StorageError, match=says) as refused:
        Api(status, body).service().issue("s3://lake/wh/t", AccessLevel.READ)
    assert "hidden" not in f"{refused.value!r} {refused.value.__cause__!r}"
