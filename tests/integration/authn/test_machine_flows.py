"""Client credentials and token exchange at the development issuer, as engines use them."""

import time
from pathlib import Path

import pytest
from authlib.integrations.requests_client import OAuth2Session
from joserfc import jws, jwt
from joserfc.jwk import KeySet

from standalone.issuer.seed import TOKEN_EXCHANGE_GRANT
from tests.servers.issuer import RunningIssuer, run_issuer

ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


def claims_of(issuer: RunningIssuer, token: str) -> dict[str, object]:
    keys = KeySet.import_key_set(OAuth2Session().get(f"{issuer.url}/jwks", withhold_token=True, timeout=10).json())
    return jwt.decode(token, keys, algorithms=["RS256"]).claims


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic"])
def test_client_credentials_give_an_access_token(issuer: RunningIssuer, method: str) -> None:
    engine = issuer.identities.engine
    session = OAuth2Session(engine.client_id, engine.client_secret, scope="catalog", token_endpoint_auth_method=method)
    token = session.fetch_token(f"{issuer.url}/token", grant_type="client_credentials")

    assert (token["token_type"], token["expires_in"], token["scope"]) == ("Bearer", 3600, "catalog")
    assert "refresh_token" not in token
    claims = claims_of(issuer, token["access_token"])
    assert {name: claims[name] for name in ("iss", "aud", "sub", "client_id", "azp", "scope")} == {
        "iss": issuer.url,
        "aud": "lakewarden",
        "sub": engine.subject,
        "client_id": engine.client_id,
        "azp": engine.client_id,
        "scope": "catalog",
    }
    assert claims["exp"] == claims["iat"] + 3600  # type: ignore[operator]
    assert jws.extract_compact(token["access_token"].encode()).headers()["typ"] == "at+jwt"


def test_wrong_secret_is_401_in_words(issuer: RunningIssuer) -> None:
    for client_id in (issuer.identities.engine.client_id, "nobody"):
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": "wrong"}
        answer = issuer.post_token(**form)
        assert answer.status_code == 401
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["WWW-Authenticate"].startswith("Basic ")
        assert answer.json() == {
            "error": "invalid_client",
            "error_description": "The client id or the client secret is wrong: "
            "compare them with the credential that you were given.",
        }


@pytest.mark.parametrize("header", ["Basic !!!", "Basic /////w==", "Basic bm9jb2xvbg==", "Negotiate x"])
def test_unreadable_client_credentials_are_401(issuer: RunningIssuer, header: str) -> None:
    session = OAuth2Session()
    answer = session.post(
        f"{issuer.url}/token",
        data={"grant_type": "client_credentials"},
        headers={"Authorization": header},
        withhold_token=True,
        timeout=10,
    )
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


def test_missing_secret_says_how_to_send_it(issuer: RunningIssuer) -> None:
    answer = issuer.post_token(grant_type="client_credentials", client_id="lakewarden-engine")
    assert answer.status_code == 401
    assert "send client_id and client_secret" in answer.json()["error_description"]


@pytest.mark.parametrize(
    ("scope", "said"), [("openid", "This client may ask for"), ('x"ñ\\', "An unknown scope was asked for")]
)
def test_wrong_scope_is_invalid_scope(issuer: RunningIssuer, scope: str, said: str) -> None:
    engine = issuer.identities.engine
    answer = issuer.post_token((engine.client_id, engine.client_secret), grant_type="client_credentials", scope=scope)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_scope")
    assert said in answer.json()["error_description"]


def test_unknown_or_missing_grant_type_is_named(issuer: RunningIssuer) -> None:
    answer = issuer.post_token(grant_type='password"')
    assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_grant_type")
    assert "client_credentials" in answer.json()["error_description"]

    answer = issuer.post_token(scope="catalog")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert "grant_type is missing" in answer.json()["error_description"]


def test_public_client_gets_no_client_credentials(issuer: RunningIssuer) -> None:
    answer = issuer.post_token(grant_type="client_credentials", client_id="lakewarden-console")
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


def test_exchange_with_the_old_token_renews_it(issuer: RunningIssuer) -> None:
    old = issuer.engine_token()
    answer = issuer.post_token(
        None,
        old,
        grant_type=TOKEN_EXCHANGE_GRANT,
        subject_token=old,
        subject_token_type=ACCESS_TOKEN,
        scope="sign",
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["issued_token_type"] == ACCESS_TOKEN
    before, after = claims_of(issuer, old), claims_of(issuer, answer.json()["access_token"])
    assert (after["sub"], after["scope"]) == (before["sub"], "sign")
    assert after["jti"] != before["jti"]


def test_exchange_of_an_expired_token_needs_the_client_secret(tmp_path: Path) -> None:
    with run_issuer(tmp_path / "state", token_lifetime_s=1) as issuer:
        engine, admin = issuer.identities.engine, issuer.identities.admin
        old = issuer.engine_token()
        form = {"grant_type": TOKEN_EXCHANGE_GRANT, "subject_token": old, "subject_token_type": ACCESS_TOKEN}
        time.sleep(1.2)

        by_token = issuer.post_token(None, old, **form)
        by_secret = issuer.post_token((engine.client_id, engine.client_secret), **form)
        by_other = issuer.post_token((admin.client_id, admin.client_secret), **form)

    assert (by_token.status_code, by_token.json()["error"]) == (401, "invalid_client")
    assert "has expired" in by_token.json()["error_description"]
    assert (by_secret.status_code, by_secret.json()["scope"]) == (200, "catalog")
    assert (by_other.status_code, by_other.json()["error"]) == (400, "invalid_grant")


def test_exchange_of_somebody_elses_token_is_refused(issuer: RunningIssuer) -> None:
    admin = issuer.identities.admin
    mine = issuer.post_token((admin.client_id, admin.client_secret), grant_type="client_credentials").json()
    form = {"grant_type": TOKEN_EXCHANGE_GRANT, "subject_token_type": ACCESS_TOKEN}

    for subject_token in (issuer.engine_token(), "not-a-token", issuer.engine_token() + "x"):
        answer = issuer.post_token(None, mine["access_token"], subject_token=subject_token, **form)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize(
    "changed",
    [
        {"subject_token_type": "urn:ietf:params:oauth:token-type:saml2"},
        {"subject_token": ""},
        {"actor_token": "x"},
        {"requested_token_type": "urn:ietf:params:oauth:token-type:id_token"},
    ],
)
def test_exchange_of_another_kind_is_invalid(issuer: RunningIssuer, changed: dict[str, str]) -> None:
    old = issuer.engine_token()
    form = {"grant_type": TOKEN_EXCHANGE_GRANT, "subject_token": old, "subject_token_type": ACCESS_TOKEN} | changed

    answer = issuer.post_token(None, old, **form)

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
