"""What is sent to Microsoft Entra ID and to a storage account, and what becomes of their answers."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from lakewarden.config import AzureConfig, StorageConfig
from lakewarden.storage.adls.credentials import AzureSystemIdentity, ClientCredentials
from lakewarden.storage.adls.identities import tokens_of
from lakewarden.storage.adls.vending import Signatures, by_identity
from lakewarden.storage.bearer_tokens import BearerToken, BearerTokens
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.interface import StorageError, StorageUnavailable
from tests.servers.cloud_stub import Answer, CloudStub

TOKEN = "/a-tenant/oauth2/v2.0/token"
SECRET = "a secret & more"
KEY = """<?xml version="1.0" encoding="utf-8"?><UserDelegationKey><SignedOid>an-object</SignedOid>
<SignedTid>a-tenant</SignedTid><SignedStart>2026-11-22T00:00:00Z</SignedStart><SignedExpiry>2026-11-23T00:00:00Z
</SignedExpiry><SignedService>b</SignedService><SignedVersion>2025-01-05</SignedVersion><Value>a2V5</Value>
</UserDelegationKey>""".replace("\n", "")


def token(value: str = "a-token", *, lasts_s: int = 3600) -> Answer:
    return Answer(json.dumps({"access_token": value, "expires_in": lasts_s, "token_type": "Bearer"}))


def application(cloud: CloudStub, *, timeout_s: float = 5) -> BearerTokens:
    credential = ClientCredentials.model_validate(
        {"client-id": "an-app", "client-secret": SECRET, "tenant-id": "a-tenant"}
    )
    return tokens_of(credential, authority=cloud.url, settings=AzureConfig(), timeout_s=timeout_s)


def test_an_application_asks_with_its_secret(cloud: CloudStub) -> None:
    cloud.answer(TOKEN, token())
    found = application(cloud).current()
    assert found.value == "a-token"
    assert timedelta(minutes=59) < found.expires_at - datetime.now(UTC) <= timedelta(hours=1)
    (asked,) = cloud.asked
    assert (asked.method, asked.headers["Content-Type"]) == ("POST", "application/x-www-form-urlencoded")
    assert asked.form == {
        "grant_type": "client_credentials",
        "client_id": "an-app",
        "client_secret": SECRET,
        "scope": "https://storage.azure.com/.default",
    }


def test_a_pod_asks_with_the_token_of_its_service_account(cloud: CloudStub, tmp_path: Path) -> None:
    cloud.answer(TOKEN, token(lasts_s=1), token("a-second"))
    file = tmp_path / "token"
    file.write_text("assertion-1\n")
    settings = AzureConfig(federated_token_file=str(file), client_id="an-app", tenant_id="a-tenant")
    tokens = tokens_of(AzureSystemIdentity(), authority=cloud.url, settings=settings, timeout_s=5)
    tokens.current()
    assert cloud.asked[0].form == {
        "grant_type": "client_credentials",
        "client_id": "an-app",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": "assertion-1",
        "scope": "https://storage.azure.com/.default",
    }
    file.unlink()
    with pytest.raises(StorageError, match="federated_token_file cannot be read"):
        tokens_of(AzureSystemIdentity(), authority=cloud.url, settings=settings, timeout_s=5).current()


def test_a_machine_asks_for_the_token_of_its_identity(cloud: CloudStub) -> None:
    cloud.answer("/identity", token())
    settings = AzureConfig(identity_endpoint=f"{cloud.url}/identity", client_id="an-app")
    tokens_of(AzureSystemIdentity(), authority="", settings=settings, timeout_s=5).current()
    (asked,) = cloud.asked
    assert (asked.method, asked.headers["Metadata"]) == ("GET", "true")
    assert asked.query == {
        "api-version": "2018-02-01",
        "resource": "https://storage.azure.com/",
        "client_id": "an-app",
    }


def test_a_token_is_shared_and_kept_until_shortly_before_its_end(cloud: CloudStub) -> None:
    cloud.answer(TOKEN, token())
    tokens = application(cloud)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: tokens.current().value, range(32)))
    assert (set(found), len(cloud.asked)) == ({"a-token"}, 1)


def test_a_token_that_has_ended_is_replaced() -> None:
    ends = iter([timedelta(seconds=-1), timedelta(hours=1)])
    tokens = BearerTokens(lambda: BearerToken("t", datetime.now(UTC) + next(ends)), margin=timedelta(minutes=5))
    first = tokens.current()
    assert tokens.current() != first


REFUSAL = json.dumps(
    {"error": "invalid_client", "error_description": f"AADSTS7000215: Invalid client secret {SECRET} provided."}
)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            Answer(REFUSAL, 401),
            "Microsoft Entra ID refused the request for a token: 401, invalid_client, AADSTS7000215",
        ),
        (Answer("<html>", 502), "refused the request for a token: 502"),
        (Answer("<html>"), "answered without a token"),
        (Answer('{"access_token": 1, "expires_in": 2}'), "answered without a token"),
        (Answer('{"access_token": "t"}'), "answered without a token and its duration"),
        (Answer("", 302, {"Location": "http://127.0.0.1:1/"}), "refused the request for a token: 302"),
    ],
)
def test_a_refusal_says_its_codes_and_no_secret(cloud: CloudStub, answer: Answer, words: str) -> None:
    cloud.answer(TOKEN, answer)
    with pytest.raises(StorageError, match=words) as error:
        application(cloud).current()
    assert isinstance(error.value, StorageUnavailable) is (answer.status >= 500)
    assert SECRET not in str(error.value)


def test_a_service_that_hangs_or_is_away_is_not_waited_for(cloud: CloudStub) -> None:
    cloud.silent.set()
    with pytest.raises(StorageUnavailable, match="Microsoft Entra ID cannot be reached"):
        application(cloud, timeout_s=0.1).current()
    cloud.silent.clear()
    away = tokens_of(
        ClientCredentials.model_validate({"client-id": "a", "client-secret": SECRET, "tenant-id": "t"}),
        authority="http://127.0.0.1:1",
        settings=AzureConfig(),
        timeout_s=5,
    )
    with pytest.raises(StorageUnavailable, match="cannot be reached"):
        away.current()


@pytest.fixture
def signatures(cloud: CloudStub) -> Callable[[timedelta], Signatures]:
    def at(validity: timedelta) -> Signatures:
        sign = by_identity(application(cloud), endpoint=cloud.url, validity=validity, settings=StorageConfig())
        return Signatures(
            account="lakehouse",
            host="dfs.core.windows.net",
            filesystem="data",
            validity=validity,
            skew=timedelta(minutes=5),
            schemes="https",
            sign=sign,
        )

    cloud.answer(TOKEN, token())
    cloud.answer("/", Answer(KEY))
    return at


def test_one_key_signs_for_many_tables(cloud: CloudStub, signatures: Callable[[timedelta], Signatures]) -> None:
    issuer = signatures(timedelta(hours=1))
    issued = [issuer.issue(f"lake/t{number}", level) for number in range(3) for level in AccessLevel]
    keys = [asked for asked in cloud.asked if asked.path == "/"]
    assert len(keys) == 1
    assert keys[0].query == {"restype": "service", "comp": "userdelegationkey"}
    assert keys[0].headers["Authorization"] == "Bearer a-token"
    assert keys[0].headers["x-ms-version"] == "2025-01-05"
    host = "lakehouse.dfs.core.windows.net"
    assert len({properties[f"adls.sas-token.{host}"] for properties, _ in issued}) == len(issued)
    properties, end = issued[0]
    told = parse_qs(properties["adls.sas-token"])
    assert (told["skoid"], told["sdd"], told["sp"]) == (["an-object"], ["2"], ["rl"])
    assert datetime.fromisoformat(told["se"][0]) == end
    assert timedelta(minutes=59) < end - datetime.now(UTC) <= timedelta(hours=1)
    assert properties[f"adls.sas-token-expires-at-ms.{host}"] == str(int(end.timestamp() * 1000))


def test_no_key_and_no_signature_lasts_longer_than_seven_days(
    cloud: CloudStub, signatures: Callable[[timedelta], Signatures]
) -> None:
    properties, _ = signatures(timedelta(days=7)).issue("t", AccessLevel.READ)
    body = next(asked.body for asked in cloud.asked if asked.path == "/")
    start, expiry = (
        datetime.fromisoformat(body.partition(f"<{name}>")[2].partition("<")[0]) for name in ("Start", "Expiry")
    )
    assert expiry - start <= timedelta(days=7)
    told = {
        name: datetime.fromisoformat(values[0])
        for name, values in parse_qs(properties["adls.sas-token"]).items()
        if name in {"st", "se"}
    }
    assert told["se"] <= expiry
    assert told["se"] - told["st"] <= timedelta(days=7)


def test_an_identity_without_the_role_is_told_which_one_it_needs(
    cloud: CloudStub, signatures: Callable[[timedelta], Signatures]
) -> None:
    cloud.answer("/", Answer("<Error/>", 403, {"x-ms-error-code": "AuthorizationPermissionMismatch"}))
    with pytest.raises(StorageError, match=r"403, AuthorizationPermissionMismatch.*Storage Blob Delegator"):
        signatures(timedelta(hours=1)).issue("t", AccessLevel.READ)


def test_a_key_with_fields_missing_is_not_used(cloud: CloudStub, signatures: Callable[[timedelta], Signatures]) -> None:
    cloud.answer("/", Answer("<UserDelegationKey/>"))
    with pytest.raises(StorageError, match="lacks 'SignedOid'"):
        signatures(timedelta(hours=1)).issue("t", AccessLevel.READ)


def test_nothing_is_issued_for_a_whole_filesystem(signatures: Callable[[timedelta], Signatures]) -> None:
    with pytest.raises(StorageError, match="folder only"):
        signatures(timedelta(hours=1)).issue("", AccessLevel.READ)
