"""With https, the cookie of the token in forms can be set by this host only."""

import re
from urllib.parse import urlencode

import pytest

from lakewarden import config
from tests.integration.console.visitor import Visitor
from tests.servers.asgi_client import Answer, AsgiClient

HTTPS = "https://catalog.test"


@pytest.fixture
def browser(visitor: Visitor, admin: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> AsgiClient:
    now = config.current()
    changed = now.model_copy(update={"server": now.server.model_copy(update={"base_uri": HTTPS})})
    monkeypatch.setattr(config, "current", lambda: changed)
    monkeypatch.setattr("django.conf.settings.CSRF_TRUSTED_ORIGINS", [HTTPS])
    return AsgiClient({"cookie": f"__Host-{visitor('admin').headers['cookie']}", "origin": HTTPS})


def sent(browser: AsgiClient, token: str, cookie: str) -> Answer:
    return browser.post(
        "/console/choice",
        body=urlencode({"csrfmiddlewaretoken": token}).encode(),
        headers={
            "cookie": f"{browser.headers['cookie']}; {cookie}",
            "content-type": "application/x-www-form-urlencoded",
        },
    )


def test_the_cookie_of_forms_is_of_this_host_alone(browser: AsgiClient) -> None:
    page = browser.get("/console/design")
    given = page.headers["set-cookie"].strip()
    assert given.startswith("__Host-lakewarden-csrf=")
    for attribute in ("Secure", "HttpOnly", "Path=/", "SameSite=Strict"):
        assert attribute in given
    assert "Domain" not in given
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.body.decode())[0]
    cookie = given.partition(";")[0]
    assert sent(browser, token, cookie).status == 302
    planted = cookie.removeprefix("__Host-")
    assert sent(browser, token, planted).status == 403, "another host of the domain can set this one"


def test_without_https_it_has_its_plain_name(visitor: Visitor, admin: AsgiClient) -> None:
    assert visitor("admin").get("/console/design").headers["set-cookie"].strip().startswith("lakewarden-csrf=")
