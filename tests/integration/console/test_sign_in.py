"""Somebody signs in, looks around and signs out: a real provider, a real server, a browser without JavaScript."""

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests

from tests.integration.authn.browser import Browser
from tests.servers.issuer import RunningIssuer, run_issuer
from tests.servers.lakewarden_serve import LakewardenServer, serve


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningIssuer]:
    with run_issuer(tmp_path_factory.mktemp("issuer") / "state") as running:
        yield running


@pytest.fixture(scope="module")
def server(issuer: RunningIssuer) -> Iterator[LakewardenServer]:
    settings = {
        "LAKEWARDEN__OPENID__OIDC__ISSUER": issuer.url,
        "LAKEWARDEN__OPENID__OIDC__AUDIENCE": "lakewarden",
        "LAKEWARDEN__CONSOLE__CLIENT_ID": "lakewarden-console",
    }
    with serve(settings) as running:
        running.bootstrap(f"oidc~{issuer.identities.user.subject}")
        yield running


@pytest.fixture
def browser() -> Browser:
    return Browser()


def sign_in(browser: Browser, server: LakewardenServer, issuer: RunningIssuer, *, page: str) -> requests.Response:
    """What the server answers when the provider has sent the browser back."""
    user = issuer.identities.user
    departure = browser.open(f"{server.uri}/console/sign-in?{urlencode({'next': page})}")
    assert departure.status_code == 302, departure.text
    form = browser.open(departure.headers["location"])
    arrival = browser.submit(form, username=user.username, password=user.password)
    return browser.open(arrival.headers["location"])


def test_sign_in_look_around_and_sign_out(browser: Browser, server: LakewardenServer, issuer: RunningIssuer) -> None:
    back = sign_in(browser, server, issuer, page="/console/warehouses?pageToken=")
    assert (back.status_code, back.headers["location"]) == (302, "/console/warehouses?pageToken=")
    cookie = back.headers["set-cookie"].partition("lakewarden-session=")[2]
    assert re.match(r"[^;]{40,}; expires=[^;]+; HttpOnly; Max-Age=86400; Path=/; SameSite=Lax", cookie), cookie
    page = browser.open(f"{server.uri}/console/warehouses")
    assert page.status_code == 200
    assert "Dana Waters" in page.text
    assert "There is no warehouse yet" in page.text
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[0]
    out = browser.session.post(f"{server.uri}/console/sign-out", data={"csrfmiddlewaretoken": token}, timeout=10)
    assert "You are signed out" in out.text
    assert f"{issuer.url}/" in out.text
    assert browser.open(f"{server.uri}/console/warehouses").status_code == 302


def test_a_copied_cookie_is_worth_nothing_after_the_end_of_the_session(
    browser: Browser, server: LakewardenServer, issuer: RunningIssuer
) -> None:
    sign_in(browser, server, issuer, page="/console")
    copied = Browser()
    copied.session.cookies.update(browser.session.cookies)
    assert copied.open(f"{server.uri}/console/warehouses").status_code == 200
    page = browser.open(f"{server.uri}/console/warehouses")
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[0]
    out = browser.session.post(f"{server.uri}/console/sign-out", data={"csrfmiddlewaretoken": token}, timeout=10)
    assert out.status_code == 200
    assert copied.open(f"{server.uri}/console/warehouses").status_code == 302


@pytest.mark.parametrize(
    "page",
    ["https://evil.example", "//evil.example", "/console\\evil", "/management", "/consolex", "/console/\r\nx: y"],
)
def test_nobody_is_sent_to_another_site(
    browser: Browser, server: LakewardenServer, issuer: RunningIssuer, page: str
) -> None:
    assert sign_in(browser, server, issuer, page=page).headers["location"] == "/console"


def test_an_attempt_that_was_altered_leads_to_no_other_site(
    browser: Browser, server: LakewardenServer, issuer: RunningIssuer
) -> None:
    user = issuer.identities.user
    departure = browser.open(f"{server.uri}/console/sign-in")
    form = browser.open(departure.headers["location"])
    arrival = browser.submit(form, username=user.username, password=user.password)
    (kept,) = [each for each in browser.session.cookies if each.name == "lakewarden-sign-in"]
    attempt = json.loads(base64.urlsafe_b64decode((kept.value or "").strip('"')))
    altered = base64.urlsafe_b64encode(json.dumps(attempt | {"next_page": "https://evil.example"}).encode()).decode()
    kept.value = altered
    browser.session.cookies.set_cookie(kept)
    back = browser.open(arrival.headers["location"])
    assert (back.status_code, back.headers["location"]) == (302, "/console")


def test_the_answer_to_another_attempt_is_refused(
    browser: Browser, server: LakewardenServer, issuer: RunningIssuer
) -> None:
    user, victim = issuer.identities.user, Browser()
    departure = browser.open(f"{server.uri}/console/sign-in")
    form = browser.open(departure.headers["location"])
    arrival = browser.submit(form, username=user.username, password=user.password)
    # who lures somebody to an address with a code of theirs does not sign them in as themselves
    assert victim.open(arrival.headers["location"]).status_code == 400
    victim.open(f"{server.uri}/console/sign-in")
    assert victim.open(arrival.headers["location"]).status_code == 400
    assert not any(cookie.name == "lakewarden-session" for cookie in victim.session.cookies)


def test_a_code_is_worth_nothing_without_the_verifier_of_its_browser(
    browser: Browser, server: LakewardenServer, issuer: RunningIssuer
) -> None:
    user, thief = issuer.identities.user, Browser()
    departure = browser.open(f"{server.uri}/console/sign-in")
    form = browser.open(departure.headers["location"])
    arrival = browser.submit(form, username=user.username, password=user.password)
    code = parse_qs(urlsplit(arrival.headers["location"]).query)["code"][0]
    own = thief.open(f"{server.uri}/console/sign-in").headers["location"]
    state = parse_qs(urlsplit(own).query)["state"][0]
    stolen = thief.open(f"{server.uri}/console/callback?{urlencode({'code': code, 'state': state})}")
    assert stolen.status_code == 400
    assert "did not accept the code" in stolen.text


def test_the_provider_says_why_it_did_not_sign_in(browser: Browser, server: LakewardenServer) -> None:
    departure = browser.open(f"{server.uri}/console/sign-in").headers["location"]
    state = parse_qs(urlsplit(departure).query)["state"][0]
    told = {"state": state, "error": "access_denied", "error_description": "<b>ask the owner</b>"}
    answer = browser.open(f"{server.uri}/console/callback?{urlencode(told)}")
    assert answer.status_code == 403
    assert "access_denied: &lt;b&gt;ask the owner&lt;/b&gt;" in answer.text
