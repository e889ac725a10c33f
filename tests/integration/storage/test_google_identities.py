"""What is sent to Google's token services, and what becomes of their answers."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from joserfc import jwt
from joserfc.jwk import RSAKey

from lakewarden.config import GcsConfig
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.gcs.credentials import GcpSystemIdentity, ServiceAccountKey
from lakewarden.storage.gcs.identities import tokens_of
from lakewarden.storage.gcs.vending import DownscopedTokens
from lakewarden.storage.interface import StorageError
from tests.servers.cloud_stub import Answer, CloudStub

PRIVATE = rsa.generate_private_key(65_537, 2048)
PEM = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
KEY = ServiceAccountKey.model_validate(
    {
        "key": {
            "type": "service_account",
            "project_id": "a-project",
            "private_key_id": "an-id",
            "private_key": PEM,
            "client_email": "lake@a-project.iam.gserviceaccount.com",
            "token_uri": "http://127.0.0.1:1/never-asked",
        }
    }
)


def token(value: str, *, lasts_s: int | None) -> Answer:
    return Answer(json.dumps({"access_token": value} | ({"expires_in": lasts_s} if lasts_s is not None else {})))


def settings(cloud: CloudStub) -> GcsConfig:
    return GcsConfig(
        token_endpoint=f"{cloud.url}/token",
        exchange_endpoint=f"{cloud.url}/exchange",
        identity_endpoint=f"{cloud.url}/identity",
    )


def issuer(cloud: CloudStub) -> DownscopedTokens:
    return DownscopedTokens(
        tokens_of(KEY, settings=settings(cloud), timeout_s=5),
        bucket="lake",
        project="a-project",
        exchange_endpoint=f"{cloud.url}/exchange",
        timeout_s=5,
    )


def test_a_service_account_asks_with_an_assertion_that_it_has_signed(cloud: CloudStub) -> None:
    cloud.answer("/token", token("source", lasts_s=3600))
    assert tokens_of(KEY, settings=settings(cloud), timeout_s=5).current().value == "source"
    form = cloud.asked[0].form
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    found = jwt.decode(
        form["assertion"],
        RSAKey.import_key(PRIVATE.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)),
    )
    assert found.header == {"typ": "JWT", "alg": "RS256", "kid": "an-id"}
    issued = found.claims.pop("iat")
    assert found.claims == {
        "iss": "lake@a-project.iam.gserviceaccount.com",
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "aud": f"{cloud.url}/token",
        "exp": issued + 3600,
    }


def test_a_machine_asks_its_metadata_server(cloud: CloudStub) -> None:
    cloud.answer("/identity", token("source", lasts_s=3600))
    assert tokens_of(GcpSystemIdentity(), settings=settings(cloud), timeout_s=5).current().value == "source"
    assert (cloud.asked[0].method, cloud.asked[0].headers["Metadata-Flavor"]) == ("GET", "Google")


def test_engines_receive_a_token_for_one_table_that_ends_with_its_source(cloud: CloudStub) -> None:
    cloud.answer("/token", token("source", lasts_s=3000))
    cloud.answer("/exchange", token("for-a-table", lasts_s=None), token("for-another", lasts_s=9999))
    tokens = issuer(cloud)
    issued = [tokens.issue(f"wh/{name}", AccessLevel.READ) for name in ("a", "b")]
    assert [asked.path for asked in cloud.asked] == ["/token", "/exchange", "/exchange"]
    assert cloud.asked[1].form["subject_token"] == "source"
    conditions = [json.loads(unquote(asked.form["options"])) for asked in cloud.asked[1:]]
    assert ["objects/wh/a/'" in json.dumps(each) for each in conditions] == [True, False]
    assert [properties["gcs.oauth2.token"] for properties, _ in issued] == ["for-a-table", "for-another"]
    for properties, end in issued:
        assert timedelta(seconds=2900) < end - datetime.now(UTC) <= timedelta(seconds=3000)
        assert properties["gcs.oauth2.token-expires-at"] == str(int(end.timestamp() * 1000))
        assert properties["gcs.project-id"] == "a-project"


def test_a_source_that_ends_soon_is_replaced_before_it_is_exchanged(cloud: CloudStub) -> None:
    cloud.answer("/token", token("old", lasts_s=0), token("new", lasts_s=3600))
    cloud.answer("/exchange", token("t", lasts_s=None))
    tokens = issuer(cloud)
    for _ in range(2):
        tokens.issue("wh/a", AccessLevel.WRITE)
    assert [asked.form["subject_token"] for asked in cloud.asked if asked.path == "/exchange"] == ["old", "new"]


def test_a_refused_exchange_issues_nothing_and_shows_no_token(cloud: CloudStub) -> None:
    cloud.answer("/token", token("the-source", lasts_s=3600))
    refusal = {"error": "invalid_request", "error_description": "the-source is not valid"}
    cloud.answer("/exchange", Answer(json.dumps(refusal), 400))
    with pytest.raises(StorageError, match=r"Google's Security Token Service refused .*400, invalid_request") as error:
        issuer(cloud).issue("wh/a", AccessLevel.READ)
    assert "the-source" not in str(error.value)


def test_nothing_is_issued_for_a_whole_bucket(cloud: CloudStub) -> None:
    with pytest.raises(StorageError, match="folder only"):
        issuer(cloud).issue("", AccessLevel.READ)
    assert cloud.asked == []
