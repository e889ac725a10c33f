"""Service account tokens against an HTTP server that plays the API server; the real one has a lane of its own."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from lakewarden.authn.chain import AuthenticatorChain
from lakewarden.authn.kubernetes import service_accounts
from lakewarden.authn.provider_keys import RefreshLimits
from lakewarden.authn.remote_verification import RemoteVerificationLimits
from lakewarden.errors import NotAuthorized, Unavailable
from tests.integration.authn.api_server import (
    ISSUER,
    OWN_TOKEN,
    ApiServer,
    run_api_server,
    settings_for,
    write_certificate,
)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with run_api_server() as server:
        yield server


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{OWN_TOKEN}\n")
    return file


def chain_for(api: ApiServer, token_file: Path, **changed: Any) -> AuthenticatorChain:
    settings = settings_for(api, token_file, **changed)
    limits = RemoteVerificationLimits(refusal=0.2, pause=0.2)
    cluster = service_accounts(settings, key_limits=RefreshLimits(unknown_key=0), verification_limits=limits)
    return AuthenticatorChain([], cluster=cluster)


@pytest.mark.parametrize("method", ["token-review", "keys"])
@pytest.mark.parametrize(
    ("subject", "id_"),
    [("uid", "kubernetes~5d3f0c1e-uid"), ("name", "kubernetes~system:serviceaccount:lake:spark")],
)
def test_account_is_an_application(api: ApiServer, token_file: Path, *, method: str, subject: str, id_: str) -> None:
    chain = chain_for(api, token_file, method=method, subject=subject)
    header = f"Bearer {api.token()}"

    principal = chain.authenticate(header)

    assert (principal.id, principal.kind, principal.name) == (id_, "application", "lake/spark")
    assert (principal.issuer, principal.token_roles, principal.email) == (ISSUER, (), None)
    assert time.time() + 3500 < principal.expires_at < time.time() + 3601
    assert chain.find_known(header) is principal
    assert len(api.reviews) == (1 if method == "token-review" else 0)


@pytest.mark.parametrize("method", ["token-review", "keys"])
@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"audience": "other"}, "another audience"),
        ({"exp": 1_000_000_000}, "has expired"),
        ({"sub": "system:node:worker-1"}, "not active|not one of a Kubernetes service account"),
        ({"sub": "system:serviceaccount:lake"}, "not active|not one of a Kubernetes service account"),
        ({"sub": 7}, "not active|'sub' is not valid"),
    ],
)
def test_token_that_will_not_do_is_refused(
    api: ApiServer, token_file: Path, *, method: str, changed: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(NotAuthorized, match=sentence):
        chain_for(api, token_file, method=method).authenticate(f"Bearer {api.token(**changed)}")


def test_hopeless_token_reaches_no_api_server(api: ApiServer, token_file: Path) -> None:
    chain = chain_for(api, token_file)
    for token in (api.token(audience="other"), api.token(exp=1_000_000_000), "opaque"):
        with pytest.raises(NotAuthorized):
            chain.authenticate(f"Bearer {token}")
    no_account: dict[str, Any] = {"sub": "ada", "kubernetes.io": None}
    foreign = api.token(iss="https://id.example.org", **no_account)
    with pytest.raises(NotAuthorized, match="is not trusted"):
        chain.authenticate(f"Bearer {foreign}")
    assert (api.reviews, api.fetched) == ([], [])


def test_review_names_the_audience_and_our_own_token(api: ApiServer, token_file: Path) -> None:
    token = api.token()
    chain_for(api, token_file).authenticate(f"Bearer {token}")
    assert api.reviews == [{"token": token, "audiences": ["lakewarden"]}]

    unlimited = chain_for(api, token_file, audience=())
    assert unlimited.authenticate(f"Bearer {api.token(audience=ISSUER)}").kind == "application"
    assert "audiences" not in api.reviews[-1]


USER = {"username": "system:serviceaccount:lake:spark", "uid": "u1"}


@pytest.mark.parametrize(
    "status",
    [
        {"authenticated": False, "user": USER, "audiences": ["lakewarden"]},
        {"authenticated": "true", "user": USER, "audiences": ["lakewarden"]},
        {"user": USER, "audiences": ["lakewarden"]},
        {"authenticated": True, "user": USER},
        {"authenticated": True, "user": USER, "audiences": []},
        {"authenticated": True, "user": USER, "audiences": ["other"]},
        {"authenticated": True, "user": USER, "audiences": "lakewarden"},
        {"authenticated": True, "user": "system:serviceaccount:lake:spark", "audiences": ["lakewarden"]},
        {"authenticated": True, "user": USER | {"username": "kubernetes-admin"}, "audiences": ["lakewarden"]},
        {"authenticated": True, "user": USER | {"username": "system:node:w1"}, "audiences": ["lakewarden"]},
        {"authenticated": True, "user": USER | {"uid": ""}, "audiences": ["lakewarden"]},
        {"authenticated": True, "user": {"uid": "u1"}, "audiences": ["lakewarden"]},
    ],
)
def test_review_that_does_not_vouch_for_an_account_refuses_once(
    api: ApiServer, token_file: Path, status: dict[str, Any]
) -> None:
    api.status_override = status
    chain = chain_for(api, token_file)
    header = f"Bearer {api.token()}"
    for _ in range(10):
        with pytest.raises(NotAuthorized, match=r"not active|not one of a Kubernetes service account"):
            chain.authenticate(header)
    assert len(api.reviews) == 1


def test_deleted_account_soon_loses_access(api: ApiServer, token_file: Path) -> None:
    chain = chain_for(api, token_file, recheck_after_s=1)
    header = f"Bearer {api.token()}"
    chain.authenticate(header)
    del api.accounts["lake/spark"]

    time.sleep(1.1)
    chain.authenticate(header)  # it is due: this one is answered from memory, and asks aside
    deadline = time.monotonic() + 60
    while chain.find_known(header) is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(NotAuthorized, match="not active"):
        chain.authenticate(header)


def test_api_server_that_goes_away_delays_no_known_account(token_file: Path) -> None:
    with run_api_server() as api:
        chain = chain_for(api, token_file, recheck_after_s=1)
        known, fresh = f"Bearer {api.token()}", f"Bearer {api.token(jti='2')}"
        chain.authenticate(known)

    time.sleep(1.1)
    for _ in range(3):
        before = time.monotonic()
        assert chain.authenticate(known).kind == "application"
        assert time.monotonic() - before < 2  # it does not wait for a time-out
        time.sleep(0.05)
    with pytest.raises(Unavailable, match="cannot be asked"):
        chain.authenticate(fresh)


def test_own_token_is_read_again_when_it_was_renewed(
    api: ApiServer, token_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chain = chain_for(api, token_file)
    header = f"Bearer {api.token()}"
    api.let_in = {"own-token-2"}
    with pytest.raises(Unavailable):
        chain.authenticate(header)
    assert "answered with status 401" in caplog.text
    assert OWN_TOKEN not in caplog.text

    token_file.write_text("own-token-2")
    time.sleep(0.25)
    assert chain.authenticate(header).kind == "application"


@pytest.mark.parametrize("content", [None, b"", b"two words", b"\xff\xfe", b"a\x00b"])
def test_own_token_that_cannot_be_used_is_said_in_the_log(
    api: ApiServer, token_file: Path, caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    if content is None:
        token_file.unlink()
    else:
        token_file.write_bytes(content)
    with pytest.raises(Unavailable):
        chain_for(api, token_file).authenticate(f"Bearer {api.token()}")
    assert str(token_file) in caplog.text


def test_keys_are_those_of_this_api_server_whatever_discovery_names(api: ApiServer, token_file: Path) -> None:
    chain_for(api, token_file, method="keys").authenticate(f"Bearer {api.token()}")
    assert api.fetched == ["/.well-known/openid-configuration", "/openid/v1/jwks"]


def test_keys_believe_a_deleted_account_and_no_forger(api: ApiServer, token_file: Path) -> None:
    chain = chain_for(api, token_file, method="keys")
    assert chain.authenticate(f"Bearer {api.token('lake/deleted')}").id == "kubernetes~gone"

    forged_issuer = api.token(iss="https://elsewhere.example.org")
    with pytest.raises(NotAuthorized, match="is not trusted"):
        chain.authenticate(f"Bearer {forged_issuer}")
    api.key = RSAKey.generate_key(2048, parameters={"use": "sig", "alg": "RS256", "kid": "cluster-1"})
    with pytest.raises(NotAuthorized, match="signature is not valid"):
        chain.authenticate(f"Bearer {api.token()}")


def test_keys_with_an_api_server_that_is_down_at_start(token_file: Path) -> None:
    with run_api_server() as api:
        token = api.token()
        chain = chain_for(api, token_file, method="keys")
    with pytest.raises(Unavailable, match="cannot be reached"):
        chain.authenticate(f"Bearer {token}")


def test_api_server_is_believed_only_with_the_configured_certificates(
    token_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own, other = tmp_path / "own.pem", tmp_path / "other.pem"
    for file in (own, other):
        write_certificate(file)
    with run_api_server(own) as api:
        header = f"Bearer {api.token()}"
        assert chain_for(api, token_file, ca_file=own).authenticate(header).kind == "application"
        assert chain_for(api, token_file, ca_file=own, method="keys").authenticate(header).kind == "application"
        for ca_file in (other, token_file, tmp_path / "none"):
            with pytest.raises(Unavailable):
                chain_for(api, token_file, ca_file=ca_file).authenticate(header)
        assert len(api.reviews) == 1
    assert "certificate verify failed" in caplog.text
