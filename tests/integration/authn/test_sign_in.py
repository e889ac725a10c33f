"""A person signs in at the development issuer: code flow with PKCE, refresh, user info, sign out."""

from dataclasses import dataclass

import pytest
import requests
from authlib.integrations.requests_client import OAuth2Session
from joserfc import jwt
from joserfc.jwk import KeySet

from standalone.issuer.seed import TOKEN_EXCHANGE_GRANT
from standalone.issuer.state import StateDir
from tests.integration.authn.browser import Browser, redirect_parameters
from tests.servers.issuer import RunningIssuer

REDIRECT = "http://127.0.0.1:45678/console/callback"
VERIFIER = "v" * 64


@dataclass
class Console:
    """The public client `lakewarden-console`, with authlib's client doing its part."""

    issuer: RunningIssuer
    browser: Browser

    def __post_init__(self) -> None:
        self.session = OAuth2Session(
            "lakewarden-console",
            scope="openid profile email offline_access catalog",
            redirect_uri=REDIRECT,
            code_challenge_method="S256",
            token_endpoint_auth_method="none",
        )

    def sign_in_page(self, **extra: str) -> requests.Response:
        url, self.state = self.session.create_authorization_url(
            f"{self.issuer.url}/authorize", code_verifier=VERIFIER, nonce="n-1", **extra
        )
        return self.browser.open(url)

    def sign_in(self) -> requests.Response:
        user = self.issuer.identities.user
        return self.browser.submit(self.sign_in_page(), username=user.username, password=user.password)

    def fetch_token(self, redirect: requests.Response, *, verifier: str = VERIFIER) -> dict[str, str]:
        token: dict[str, str] = self.session.fetch_token(
            f"{self.issuer.url}/token",
            authorization_response=redirect.headers["Location"],
            state=self.state,
            code_verifier=verifier,
        )
        return token


@pytest.fixture
def console(issuer: RunningIssuer, browser: Browser) -> Console:
    return Console(issuer, browser)


def keys_of(issuer: RunningIssuer) -> KeySet:
    return KeySet.import_key_set(requests.get(f"{issuer.url}/jwks", timeout=10).json())


def test_sign_in_page_is_complete_and_locked_down(console: Console) -> None:
    page = console.sign_in_page()

    assert page.status_code == 200
    assert "lakewarden-console" in page.text
    assert 'type="password"' in page.text
    assert "http" not in page.text.split("<style>")[0] + page.text.split("</style>")[1]  # no outside asset
    assert page.headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["Cache-Control"] == "no-store"


def test_code_flow_gives_access_id_and_refresh_tokens(issuer: RunningIssuer, console: Console) -> None:
    user = issuer.identities.user
    redirect = console.sign_in()
    assert redirect.headers["Location"].startswith(REDIRECT + "?")
    token = console.fetch_token(redirect)

    access = jwt.decode(token["access_token"], keys_of(issuer), algorithms=["RS256"]).claims
    assert (access["sub"], access["client_id"], access["aud"]) == (user.subject, "lakewarden-console", "lakewarden")
    assert (access["name"], access["email"], access["preferred_username"]) == (user.name, user.email, user.username)
    identity = jwt.decode(token["id_token"], keys_of(issuer), algorithms=["RS256"]).claims
    assert (identity["iss"], identity["aud"], identity["nonce"]) == (issuer.url, ["lakewarden-console"], "n-1")
    assert (identity["sub"], identity["name"], identity["email"]) == (user.subject, user.name, user.email)
    assert token["refresh_token"]

    info = requests.get(
        f"{issuer.url}/userinfo", headers={"Authorization": f"Bearer {token['access_token']}"}, timeout=10
    )
    assert info.json() == {
        "sub": user.subject,
        "name": user.name,
        "preferred_username": user.username,
        "email": user.email,
    }


def test_wrong_password_shows_the_form_again(issuer: RunningIssuer, console: Console) -> None:
    page = console.browser.submit(console.sign_in_page(), username='<b>"da', password="wrong")

    assert page.status_code == 401
    assert "The user name or the password is wrong." in page.text
    assert "&lt;b&gt;&quot;da" in page.text
    user = issuer.identities.user
    again = console.browser.submit(page, username=user.username, password=user.password)
    assert "code" in redirect_parameters(again)


def test_form_without_csrf_token_is_refused_in_words(issuer: RunningIssuer, console: Console) -> None:
    user = issuer.identities.user
    page = console.sign_in_page()
    answer = requests.post(
        page.url, data={"username": user.username, "password": user.password}, allow_redirects=False, timeout=10
    )
    assert answer.status_code == 403
    assert "This page is too old" in answer.text


def test_code_works_once(console: Console) -> None:
    redirect = console.sign_in()
    console.fetch_token(redirect)

    with pytest.raises(Exception, match=r"invalid_grant.*already used"):
        console.fetch_token(redirect)


def test_code_with_wrong_verifier_is_refused_and_burnt(console: Console) -> None:
    redirect = console.sign_in()

    with pytest.raises(Exception, match="invalid_grant"):
        console.fetch_token(redirect, verifier="w" * 64)
    with pytest.raises(Exception, match="invalid_grant"):
        console.fetch_token(redirect)


def test_code_for_another_client_is_refused(issuer: RunningIssuer, console: Console) -> None:
    code = redirect_parameters(console.sign_in())["code"]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT, "code_verifier": VERIFIER}

    engine = issuer.identities.engine
    answer = issuer.post_token((engine.client_id, engine.client_secret), **form)
    assert (answer.status_code, answer.json()["error"]) == (400, "unauthorized_client")

    state = StateDir(issuer.state_dir)
    clients = state.read("clients.json") or {}
    state.write("clients.json", clients | {"other-console": clients["lakewarden-console"]})
    answer = issuer.post_token(**form, client_id="other-console")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


def test_code_for_another_address_is_refused(issuer: RunningIssuer, console: Console) -> None:
    code = redirect_parameters(console.sign_in())["code"]
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}

    answer = issuer.post_token(**form, client_id="lakewarden-console", redirect_uri=REDIRECT + "x")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


def test_exchange_renews_a_persons_token_for_the_same_client_only(issuer: RunningIssuer, console: Console) -> None:
    token = console.fetch_token(console.sign_in())["access_token"]
    engine = issuer.identities.engine
    form = {
        "grant_type": TOKEN_EXCHANGE_GRANT,
        "subject_token": token,
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
    }

    by_engines_token = issuer.post_token(None, issuer.engine_token(), **form)
    by_engines_secret = issuer.post_token((engine.client_id, engine.client_secret), **form)
    renewed = issuer.post_token(None, token, **form, scope="catalog")

    assert by_engines_token.json()["error"] == by_engines_secret.json()["error"] == "invalid_grant"
    claims = jwt.decode(renewed.json()["access_token"], keys_of(issuer), algorithms=["RS256"]).claims
    assert (claims["sub"], claims["client_id"]) == (issuer.identities.user.subject, "lakewarden-console")


def test_signed_in_person_is_not_asked_again_unless_the_client_wants(console: Console) -> None:
    console.sign_in()

    assert "code" in redirect_parameters(console.sign_in_page())
    assert console.sign_in_page(prompt="login").status_code == 200


def test_nobody_signed_in_and_prompt_none_goes_back_with_an_error(console: Console) -> None:
    answer = redirect_parameters(console.sign_in_page(prompt="none"))

    assert (answer["error"], answer["state"]) == ("login_required", console.state)


@pytest.mark.parametrize(
    "changed",
    [
        {"redirect_uri": "https://evil.example.org/cb"},
        {"redirect_uri": 'http://evil"ñ/'},
        {"redirect_uri": ""},
        {"client_id": "nobody"},
        {"client_id": ""},
        {"response_type": '"ñ'},
    ],
)
def test_bad_sign_in_link_never_redirects(issuer: RunningIssuer, browser: Browser, changed: dict[str, str]) -> None:
    good = {"response_type": "code", "client_id": "lakewarden-console", "redirect_uri": REDIRECT, "scope": "openid"}
    query = requests.Request("GET", f"{issuer.url}/authorize", params=good | changed).prepare().url
    assert query is not None
    answer = browser.open(query)

    assert answer.status_code == 400
    assert "This sign-in link is not valid" in answer.text


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "root"}, "invalid_scope"),
        ({}, "invalid_request"),
        ({"code_challenge": "c" * 43}, "invalid_request"),
        ({"code_challenge": "c" * 43, "code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": "short", "code_challenge_method": "S256"}, "invalid_request"),
    ],
)
def test_bad_request_of_a_known_client_goes_back_to_it(
    issuer: RunningIssuer, browser: Browser, changed: dict[str, str], error: str
) -> None:
    good = {"response_type": "code", "client_id": "lakewarden-console", "redirect_uri": REDIRECT, "state": "s"}
    query = requests.Request("GET", f"{issuer.url}/authorize", params=good | changed).prepare().url
    assert query is not None
    answer = redirect_parameters(browser.open(query))

    assert (answer["error"], answer["state"]) == (error, "s")
    assert answer["error_description"]


def test_refresh_rotates_and_reuse_ends_the_family(issuer: RunningIssuer, console: Console) -> None:
    first = console.fetch_token(console.sign_in())["refresh_token"]
    form = {"grant_type": "refresh_token", "client_id": "lakewarden-console"}

    answer = issuer.post_token(**form, refresh_token=first)
    assert answer.status_code == 200, answer.text
    second = answer.json()["refresh_token"]
    assert second != first
    assert jwt.decode(answer.json()["id_token"], keys_of(issuer), algorithms=["RS256"]).claims["iss"] == issuer.url

    reused = issuer.post_token(**form, refresh_token=first)
    assert (reused.status_code, reused.json()["error"]) == (400, "invalid_grant")
    assert "already used" in reused.json()["error_description"]
    assert issuer.post_token(**form, refresh_token=second).status_code == 400


def test_refresh_narrows_the_scope_and_never_widens_it(issuer: RunningIssuer, console: Console) -> None:
    token = console.fetch_token(console.sign_in())
    form = {"grant_type": "refresh_token", "client_id": "lakewarden-console"}

    wide = issuer.post_token(**form, refresh_token=token["refresh_token"], scope="catalog sign")
    narrow = issuer.post_token(**form, refresh_token=token["refresh_token"], scope="catalog")

    assert (wide.status_code, wide.json()["error"]) == (400, "invalid_scope")
    assert (narrow.status_code, narrow.json()["scope"]) == (200, "catalog")


def test_refresh_token_of_another_client_is_refused(issuer: RunningIssuer, console: Console) -> None:
    token = console.fetch_token(console.sign_in())["refresh_token"]

    answer = issuer.post_token(grant_type="refresh_token", client_id="lakewarden-cli", refresh_token=token)

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


def test_userinfo_needs_a_persons_token_with_openid(issuer: RunningIssuer, console: Console) -> None:
    token = console.fetch_token(console.sign_in())
    form = {"grant_type": "refresh_token", "client_id": "lakewarden-console", "scope": "catalog"}
    without_openid = issuer.post_token(**form, refresh_token=token["refresh_token"]).json()["access_token"]

    def status(bearer: str) -> int:
        headers = {"Authorization": f"Bearer {bearer}"}
        return requests.get(f"{issuer.url}/userinfo", headers=headers, timeout=10).status_code

    assert requests.get(f"{issuer.url}/userinfo", timeout=10).headers["WWW-Authenticate"].startswith("Bearer ")
    assert status("x") == 401
    assert status(issuer.engine_token()) == 401
    assert status(token["id_token"]) == 401
    assert status(without_openid) == 403


def test_sign_out_ends_the_session_and_leads_back(issuer: RunningIssuer, console: Console, browser: Browser) -> None:
    token = console.fetch_token(console.sign_in())
    target = "http://localhost:1234/bye?x=1"
    parameters = {"id_token_hint": token["id_token"], "post_logout_redirect_uri": target, "state": "s 1"}
    url = requests.Request("GET", f"{issuer.url}/logout", params=parameters).prepare().url
    assert url is not None

    assert browser.open(url).headers["Location"] == target + "&state=s+1"
    assert console.sign_in_page().status_code == 200


def test_sign_out_does_not_lead_elsewhere(issuer: RunningIssuer, browser: Browser) -> None:
    for query in (
        "",
        "?post_logout_redirect_uri=http://localhost/",
        "?client_id=lakewarden-console&post_logout_redirect_uri=https://evil.example.org/",
        "?id_token_hint=x&post_logout_redirect_uri=http://localhost/",
    ):
        answer = browser.open(f"{issuer.url}/logout{query}")
        assert answer.status_code == 200
        assert "You are signed out" in answer.text


def test_home_page_names_the_issuer(issuer: RunningIssuer, browser: Browser) -> None:
    assert issuer.url in browser.open(f"{issuer.url}/").text
