"""A person signs in at Keycloak without a browser: its pages are fetched and its forms sent back, as one would."""

import html
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import requests

from tests.servers.keycloak import Realm

CLIENT = "notebook"
REDIRECT = "http://127.0.0.1:8250/callback"
_FORM = re.compile(r"<form\b(?P<attributes>[^>]*)>(?P<inside>.*?)</form>", re.DOTALL)
_INPUT = re.compile(r"<(?:input|button)\b([^>]*)>")
_ATTRIBUTE = re.compile(r'([a-z-]+)="([^"]*)"')


@dataclass
class Browser:
    """Keeps cookies over requests; follows redirects inside Keycloak and stops at the one that leaves it."""

    realm: Realm
    session: requests.Session = field(default_factory=requests.Session)

    def open(self, url: str) -> requests.Response:
        return self._follow(self.session.get(url, allow_redirects=False, timeout=30))

    def submit(self, page: requests.Response, **values: str) -> requests.Response:
        """Send the page's form with these values; a value for a button presses it."""
        found = _FORM.search(page.text)
        assert found, f"There is no form at {page.url}: {page.text[:2000]}"
        action = _attributes(found["attributes"])["action"]
        fields = {}
        for tag in _INPUT.findall(found["inside"]):
            one = _attributes(tag)
            if one.get("type") == "hidden":
                fields[one["name"]] = one.get("value", "")
        answer = self.session.post(urljoin(page.url, action), data=fields | values, allow_redirects=False, timeout=30)
        return self._follow(answer)

    def sign_in(self, page: requests.Response, user: str) -> requests.Response:
        return self.submit(page, username=user, password=f"{user}-password")

    def _follow(self, answer: requests.Response) -> requests.Response:
        self._keep_cookies()
        while answer.is_redirect and answer.headers["Location"].startswith(self.realm.issuer):
            answer = self.session.get(answer.headers["Location"], allow_redirects=False, timeout=30)
            self._keep_cookies()
        return answer

    def _keep_cookies(self) -> None:
        # marked Secure, even over http on 127.0.0.1, where a browser sends them all the same
        for cookie in self.session.cookies:
            cookie.secure = False


def _attributes(tag: str) -> dict[str, str]:
    return {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(tag)}


@dataclass(frozen=True)
class Verifier:
    """A secret of one sign-in and what is shown of it beforehand (RFC 7636)."""

    secret: str = field(default_factory=lambda: token_urlsafe(48))

    @property
    def challenge(self) -> dict[str, str]:
        digest = urlsafe_b64encode(sha256(self.secret.encode()).digest()).rstrip(b"=").decode()
        return {"code_challenge": digest, "code_challenge_method": "S256"}


def tokens_by_code(realm: Realm, user: str) -> dict[str, Any]:
    """The token answer for a person who signs in by authorization code with PKCE (RFC 6749 section 4.1)."""
    verifier, state = Verifier(), token_urlsafe(8)
    asked = {
        "response_type": "code",
        "client_id": CLIENT,
        "redirect_uri": REDIRECT,
        "scope": "openid",
        "state": state,
        **verifier.challenge,
    }
    with requests.Session() as session:
        browser = Browser(realm, session)
        left = browser.sign_in(browser.open(f"{realm.endpoint('auth')}?{urlencode(asked)}"), user)
    location = left.headers["Location"]
    assert location.startswith(REDIRECT), location
    given = parse_qs(urlsplit(location).query)
    assert given["state"] == [state]
    return realm.tokens(
        grant_type="authorization_code",
        client_id=CLIENT,
        redirect_uri=REDIRECT,
        code=given["code"][0],
        code_verifier=verifier.secret,
    )
