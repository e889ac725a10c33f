"""The device flow (RFC 8628) at the development issuer: a terminal asks, a person decides in the browser."""

import time
from typing import Any

import pytest
import requests
from joserfc import jwt
from joserfc.jwk import KeySet

from standalone.issuer.seed import DEVICE_CODE_GRANT
from tests.integration.authn.browser import Browser
from tests.servers.issuer import RunningIssuer


@pytest.fixture
def device(issuer: RunningIssuer) -> dict[str, Any]:
    answer = requests.post(
        f"{issuer.url}/device_authorization",
        data={"client_id": "lakewarden-cli", "scope": "openid catalog"},
        timeout=10,
    )
    assert answer.status_code == 200, answer.text
    started: dict[str, Any] = answer.json()
    return started


def poll(issuer: RunningIssuer, device: dict[str, Any], **changed: str) -> requests.Response:
    form = {"client_id": "lakewarden-cli", "device_code": device["device_code"]} | changed
    return issuer.post_token(grant_type=DEVICE_CODE_GRANT, **form)


def decide(issuer: RunningIssuer, browser: Browser, device: dict[str, Any], **fields: str) -> requests.Response:
    user = issuer.identities.user
    form = {"username": user.username, "password": user.password, "user_code": device["user_code"]} | fields
    return browser.submit(browser.open(device["verification_uri_complete"]), **form)


def test_approved_device_gets_tokens_once(issuer: RunningIssuer, browser: Browser, device: dict[str, Any]) -> None:
    assert device["verification_uri"] == f"{issuer.url}/device"
    assert device["user_code"] in browser.open(device["verification_uri_complete"]).text
    pending = poll(issuer, device)
    assert (pending.status_code, pending.json()["error"]) == (400, "authorization_pending")

    page = decide(issuer, browser, device, decision="approve")
    assert "Your device is signed in" in page.text
    answer = poll(issuer, device)

    assert answer.status_code == 200, answer.text
    keys = KeySet.import_key_set(requests.get(f"{issuer.url}/jwks", timeout=10).json())
    claims = jwt.decode(answer.json()["access_token"], keys, algorithms=["RS256"]).claims
    assert (claims["sub"], claims["client_id"]) == (issuer.identities.user.subject, "lakewarden-cli")
    assert answer.json()["id_token"]
    assert answer.json()["refresh_token"]
    again = poll(issuer, device)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")


def test_code_is_accepted_as_people_type_it(issuer: RunningIssuer, browser: Browser, device: dict[str, Any]) -> None:
    typed = " " + device["user_code"].lower().replace("-", " ")

    assert "Your device is signed in" in decide(issuer, browser, device, user_code=typed, decision="approve").text


def test_refused_device_gets_access_denied(issuer: RunningIssuer, browser: Browser, device: dict[str, Any]) -> None:
    assert "Your device was refused" in decide(issuer, browser, device, decision="refuse").text

    answer = poll(issuer, device)
    assert (answer.status_code, answer.json()["error"]) == (400, "access_denied")


def test_decision_is_final(issuer: RunningIssuer, browser: Browser, device: dict[str, Any]) -> None:
    decide(issuer, browser, device, decision="refuse")

    assert decide(issuer, browser, device, decision="approve").status_code == 400


def test_wrong_code_or_password_decides_nothing(
    issuer: RunningIssuer, browser: Browser, device: dict[str, Any]
) -> None:
    wrong_code = decide(issuer, browser, device, user_code="BBBB-BBBB", decision="approve")
    assert wrong_code.status_code == 400
    assert "This code is unknown or has expired" in wrong_code.text
    wrong_password = decide(issuer, browser, device, password="x", decision="approve")
    assert "The user name or the password is wrong" in wrong_password.text

    assert poll(issuer, device).json()["error"] == "authorization_pending"


def test_device_that_polls_too_often_is_slowed_down(issuer: RunningIssuer, device: dict[str, Any]) -> None:
    assert poll(issuer, device).json()["error"] == "authorization_pending"
    assert poll(issuer, device).json()["error"] == "slow_down"


def test_device_that_keeps_the_interval_is_not(issuer: RunningIssuer, device: dict[str, Any]) -> None:
    poll(issuer, device)
    time.sleep(device["interval"] + 0.1)
    assert poll(issuer, device).json()["error"] == "authorization_pending"


def test_device_code_of_another_client_is_refused(issuer: RunningIssuer, device: dict[str, Any]) -> None:
    answer = poll(issuer, device, client_id="lakewarden-console")
    assert (answer.status_code, answer.json()["error"]) == (400, "unauthorized_client")
    assert poll(issuer, device, device_code="x").json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("form", "status", "error"),
    [
        ({"client_id": "lakewarden-cli", "scope": "root"}, 400, "invalid_scope"),
        ({"client_id": "lakewarden-console"}, 400, "invalid_request"),
        ({"client_id": "nobody"}, 401, "invalid_client"),
        ({}, 401, "invalid_client"),
    ],
)
def test_bad_device_request_is_refused(issuer: RunningIssuer, form: dict[str, str], status: int, error: str) -> None:
    answer = requests.post(f"{issuer.url}/device_authorization", data=form, timeout=10)

    assert (answer.status_code, answer.json()["error"]) == (status, error)
