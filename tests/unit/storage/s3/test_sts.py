"""Requests to STS and what is made of its answers; that a real store obeys is shown in `contracts/storage`."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.stub import Stubber

from lakewarden.config import StorageConfig
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.interface import StorageError, StorageUnavailable
from lakewarden.storage.s3.profile import S3Profile
from lakewarden.storage.s3.sts import TokenService, sts_client
from tests.unit.storage.s3.profiles import KEY, ROLE, SECRET, profile

TABLE = "s3://lake/wh/t"
ENDS = datetime(2026, 1, 1, tzinfo=UTC)
ANSWER = {
    "Credentials": {
        "AccessKeyId": "ASIA1-of-16-chars",
        "SecretAccessKey": "secret",
        "SessionToken": "token",
        "Expiration": ENDS,
    }
}


class Asked:
    """A token service with a stubbed client."""

    def __init__(self, of: S3Profile) -> None:
        client = sts_client(of, KEY, StorageConfig())
        self.stub = Stubber(client)
        self.service = TokenService(of, external_id=KEY.external_id, client=client)
        self.requests: list[dict[str, Any]] = []
        client.meta.events.register("provide-client-params.sts.AssumeRole", self._note)

    def _note(self, params: dict[str, Any], **_: object) -> None:
        self.requests.append(params)


@pytest.fixture
def asked() -> Iterator[Asked]:
    made = Asked(profile(sts_session_tags={"team": "sales"}, sts_token_validity_seconds=900))
    with made.stub:
        yield made


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("Throttling", 400, StorageUnavailable),
        ("InternalFailure", 500, StorageUnavailable),
        ("ServiceUnavailable", 503, StorageUnavailable),
        ("AccessDenied", 403, StorageError),
        ("ValidationError", 400, StorageError),
    ],
)
def test_what_passes_by_itself_is_told_apart(asked: Asked, code: str, status: int, kind: type[StorageError]) -> None:
    asked.stub.add_client_error("assume_role", code, http_status_code=status)
    with pytest.raises(StorageError) as refused:
        asked.service.issue(TABLE, AccessLevel.READ)
    assert type(refused.value) is kind


def test_a_request_names_role_policy_time_and_tags(asked: Asked) -> None:
    asked.stub.add_response("assume_role", ANSWER)
    keys = asked.service.issue(TABLE, AccessLevel.READ)
    assert (keys.access_key_id, keys.secret_access_key, keys.session_token) == ("ASIA1-of-16-chars", "secret", "token")
    assert keys.expires_at == ENDS
    assert "secret" not in repr(keys)
    (request,) = asked.requests
    policy = json.loads(request.pop("Policy"))
    assert policy["Statement"][0]["Action"] == ["s3:GetObject"]
    assert request == {
        "RoleArn": ROLE,
        "RoleSessionName": "lakewarden",
        "DurationSeconds": 900,
        "ExternalId": "tenant-1",
        "Tags": [{"Key": "team", "Value": "sales"}],
    }


def test_compatible_stores_are_asked_for_no_role() -> None:
    asked = Asked(profile(flavor="s3-compat", endpoint="http://127.0.0.1:9000"))
    with asked.stub:
        asked.stub.add_response("assume_role", ANSWER)
        asked.service.issue(TABLE, AccessLevel.WRITE)
    assert asked.requests[0].keys() == {"RoleSessionName", "Policy", "DurationSeconds", "ExternalId"}


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("AccessDenied", "trust policy"),
        ("InvalidClientTokenId", "set a new storage credential"),
        ("SignatureDoesNotMatch", "set a new storage credential"),
        ("RequestExpired", "clock differs"),
        ("NoSuchEntity", "check sts-role-arn"),
        ("ValidationError", "sts-token-validity-seconds"),
        ("NotImplemented", "set sts-enabled to false"),
        ("SomethingNew", "answered 'SomethingNew'"),
    ],
)
def test_a_refusal_says_what_to_change(asked: Asked, code: str, says: str) -> None:
    asked.stub.add_client_error("assume_role", code, "of account 123456789012", 403)
    with pytest.raises(StorageError, match=says) as refused:
        asked.service.issue(TABLE, AccessLevel.READ)
    assert ROLE in str(refused.value)
    assert SECRET not in str(refused.value)
    assert "of account" not in str(refused.value)
