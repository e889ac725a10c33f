"""What engines receive for a table on S3."""

from datetime import UTC, datetime
from itertools import count

import pytest

from lakewarden.config import StorageConfig
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientRoutes, Delegation
from lakewarden.storage.issued_credentials import IssuedCredentials
from lakewarden.storage.s3 import client_access
from lakewarden.storage.s3.client_access import S3ClientAccess, chosen
from lakewarden.storage.s3.credentials import AccessKey
from lakewarden.storage.s3.profile import S3Profile
from lakewarden.storage.s3.temporary_keys import TemporaryKeys
from tests.unit.storage.s3.profiles import KEY, SECRET, profile

VENDED, SIGNED, OWN = Delegation.VENDED_CREDENTIALS, Delegation.REMOTE_SIGNING, Delegation.CLIENT_MANAGED
READ, WRITE = AccessLevel.READ, AccessLevel.WRITE
ENDS = datetime(2100, 1, 1, tzinfo=UTC)
ROUTES = ClientRoutes("https://catalog.example.org/catalog", "v1/credentials", "v1/sign")


class Issuer:
    def __init__(self) -> None:
        self.numbers = count()

    def issue(self, location: str, level: AccessLevel) -> TemporaryKeys:
        return TemporaryKeys(f"{level}-{next(self.numbers)}", "temporary", location, ENDS)


@pytest.fixture(autouse=True)
def issuer(monkeypatch: pytest.MonkeyPatch) -> Issuer:
    made = Issuer()
    monkeypatch.setattr(client_access, "_issuer", lambda *_, **__: made)
    return made


@pytest.fixture(autouse=True)
def nothing_issued_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    issued = IssuedCredentials(100)
    monkeypatch.setattr(client_access, "of_this_process", lambda: issued)


def access(of: S3Profile | None = None, key: AccessKey = KEY) -> S3ClientAccess:
    return S3ClientAccess(of or profile(), key, StorageConfig())


def request(*wanted: Delegation, location: str = "s3://lake/wh/t", level: AccessLevel = READ) -> AccessRequest:
    return AccessRequest(location, level, frozenset(wanted), ROUTES)


@pytest.mark.parametrize("wanted", [[], [VENDED], [SIGNED], [OWN], [VENDED, SIGNED], [OWN, SIGNED], [OWN, VENDED]])
def test_the_means_of_access(wanted: list[Delegation]) -> None:
    asked = frozenset(wanted)
    only_own = asked == {OWN}
    prefers_signing = SIGNED in asked and VENDED not in asked
    expected = None if only_own else SIGNED if prefers_signing else VENDED
    assert chosen(asked, vends=True, signs=True) is expected
    assert chosen(asked, vends=True, signs=False) is (None if only_own else VENDED)
    assert chosen(asked, vends=False, signs=True) is (None if only_own else SIGNED)
    assert chosen(asked, vends=False, signs=False) is None


def test_keys_come_with_their_end_and_the_way_to_new_ones() -> None:
    of = profile(endpoint="https://internal:9000", client_endpoint="https://s3.example.org", path_style_access=True)
    found = access(of).of(request())
    assert found.credentials == {
        "s3.access-key-id": "read-0",
        "s3.secret-access-key": "temporary",
        "s3.session-token": "s3://lake/wh/t",
        "s3.session-token-expires-at-ms": "4102444800000",
        "expiration-time": "4102444800000",
    }
    assert found.expires_at == ENDS
    assert found.config["client.refresh-credentials-endpoint"] == "v1/credentials"
    assert found.config["s3.endpoint"] == "https://s3.example.org"
    assert found.config["s3.path-style-access"] == "true"
    assert found.config["s3.region"] == found.config["client.region"] == "eu-west-1"
    assert SECRET not in f"{found} {found.config} {found.credentials}"


def test_keys_are_shared_by_location_level_profile_and_credential() -> None:
    def key(of: S3ClientAccess, **asked: object) -> str:
        return of.of(request(**asked)).credentials["s3.access-key-id"]  # type: ignore[arg-type]

    first = access()
    assert key(first) == key(first) == key(access()) == "read-0"
    assert key(first, level=WRITE) == "write-1"
    assert key(first, location="s3://lake/wh/t2") == "read-2"
    assert key(access(profile(sts_role_arn="arn:aws:iam::123456789012:role/other"))) == "read-3"
    other = KEY.model_copy(update={"access_key_id": "AKIA2"})
    assert key(access(key=other)) == "read-4"


@pytest.mark.parametrize("wanted", [[SIGNED], [OWN]])
def test_without_vending_nothing_is_secret(wanted: list[Delegation]) -> None:
    found = access().of(request(*wanted))
    assert (found.credentials, found.expires_at) == ({}, None)
    assert "client.refresh-credentials-endpoint" not in found.config
    assert ("s3.remote-signing-enabled" in found.config) is (wanted == [SIGNED])
    assert found.config["s3.region"] == "eu-west-1"
