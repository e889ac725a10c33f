"""Signatures of ours on a real verifier. Azurite knows none for folders: whole containers stand for them."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import ContainerClient
from joserfc import jwt
from joserfc.jwk import OctKey

from lakewarden.config import AzureConfig
from lakewarden.storage.adls.credentials import ClientCredentials
from lakewarden.storage.adls.delegation import DelegationKeys
from lakewarden.storage.adls.identities import tokens_of
from lakewarden.storage.adls.sas import Directory, Grant, signed_by_account, signed_by_identity
from lakewarden.storage.client_access import AccessLevel
from tests.servers import azurite as servers
from tests.servers import cloud_stub
from tests.servers.azurite import ACCOUNT, AzuriteServer
from tests.servers.cloud_stub import Answer

READ, WRITE = AccessLevel.READ, AccessLevel.WRITE
SCHEMES = "https,http"

Sign = Callable[[str, Grant], str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzuriteServer]:
    """With TLS: it reads tokens of identities only there."""
    with servers.start(tls=tmp_path_factory.mktemp("tls")) as running:
        yield running


def by_account(server: AzuriteServer) -> Sign:
    return lambda container, grant: signed_by_account(Directory(ACCOUNT, container, ""), grant, key=server.key)


def by_identity(server: AzuriteServer) -> Sign:
    """An application's token (Azurite reads its claims, and not its signature), a key for that, and signatures."""
    now = int(datetime.now(UTC).timestamp())
    claims = {
        "aud": "https://storage.azure.com",
        "iss": "https://sts.windows.net/a-tenant/",
        "iat": now,
        "nbf": now - 60,
        "exp": now + 3600,
        "oid": "an-object",
        "tid": "a-tenant",
    }
    token = jwt.encode({"alg": "HS256"}, claims, OctKey.generate_key())
    credential = ClientCredentials.model_validate({"client-id": "a", "client-secret": "s", "tenant-id": "t"})
    with cloud_stub.start() as entra:
        entra.answer("/t/oauth2/v2.0/token", Answer(json.dumps({"access_token": token, "expires_in": 3600})))
        tokens = tokens_of(credential, authority=entra.url, settings=AzureConfig(), timeout_s=5)
        hour, skew = timedelta(hours=1), timedelta(minutes=5)
        keys = DelegationKeys(tokens, endpoint=server.endpoint, validity=hour, skew=skew, timeout_s=10)
        key, _ = keys.current()
    return lambda container, grant: signed_by_identity(Directory(ACCOUNT, container, ""), grant, key=key)


@pytest.fixture(params=[by_account, by_identity])
def sign(request: pytest.FixtureRequest, server: AzuriteServer, monkeypatch: pytest.MonkeyPatch) -> Sign:
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    return request.param(server)  # type: ignore[no-any-return]


def grant(level: AccessLevel, *, lasts: timedelta = timedelta(minutes=30), begins: timedelta = timedelta(0)) -> Grant:
    now = datetime.now(UTC)
    return Grant(level, now - timedelta(minutes=5) + begins, now + lasts, SCHEMES)


USES: dict[str, Callable[[ContainerClient], object]] = {
    "read": lambda client: client.download_blob("wh/a b/é+%2F").readall(),
    "list": lambda client: [each.name for each in client.list_blobs()],
    "write": lambda client: client.upload_blob("wh/new", b"two"),
    "replace": lambda client: client.upload_blob("wh/a b/é+%2F", b"two", overwrite=True),
    "delete": lambda client: client.delete_blob("wh/a b/é+%2F"),
}
READS = {"read", "list"}


@pytest.fixture
def container(server: AzuriteServer) -> str:
    name = server.new_container()
    server.client(name).upload_blob("wh/a b/é+%2F", b"one")
    return name


@pytest.mark.parametrize("use", USES)
def test_a_writer_does_all_and_a_reader_reads(server: AzuriteServer, container: str, sign: Sign, use: str) -> None:
    reader = server.client(container, sign(container, grant(READ)))
    if use in READS:
        USES[use](reader)
    else:
        with pytest.raises(HttpResponseError, match="ErrorCode:AuthorizationPermissionMismatch"):
            USES[use](reader)
    USES[use](server.client(container, sign(container, grant(WRITE))))


@pytest.mark.parametrize("use", USES)
def test_a_thief_gets_nothing(server: AzuriteServer, container: str, sign: Sign, use: str) -> None:
    """With a writer's signature for another place, or one that is over, not yet valid, widened or changed."""
    mine = sign(container, grant(WRITE))
    reader = sign(container, grant(READ))
    stolen = {
        "of another container": sign(server.new_container(), grant(WRITE)),
        "that is over": sign(container, grant(WRITE, lasts=timedelta(seconds=-30))),
        "not yet valid": sign(container, grant(WRITE, begins=timedelta(minutes=10))),
        "widened": reader.replace("sp=rl", "sp=racwdl"),
        "prolonged": mine.replace("&se=20", "&se=21"),
        "of a folder, without it": mine.replace("sr=c", "sr=d&sdd=0"),
        "with another signature": mine.rpartition("sig=")[0] + "sig=" + "A" * 43 + "%3D",
        "of another key": signed_by_account(Directory(ACCOUNT, container, ""), grant(WRITE), key="bm90IHRoZSBrZXk="),
    }
    assert mine not in stolen.values()
    passed = []
    for name, token in stolen.items():
        try:
            USES[use](server.client(container, token))
        except HttpResponseError as error:
            assert error.status_code in {400, 403}, name  # noqa: PT017 each must be refused
            continue
        passed.append(name)
    assert passed == []
    assert server.client(container).download_blob("wh/a b/é+%2F").readall() == b"one"
