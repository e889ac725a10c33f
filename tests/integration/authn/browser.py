"""A browser that has no JavaScript, for the pages of the development issuer."""

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import requests


class Browser:
    """Keeps cookies, fills the one form of a page, and stops before it would leave the issuer."""

    def __init__(self) -> None:
        self.session = requests.Session()

    def open(self, url: str) -> requests.Response:
        return self.session.get(url, allow_redirects=False, timeout=10)

    def submit(self, page: requests.Response, **fields: str) -> requests.Response:
        hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page.text)
        form = {name: unescape(value) for name, value in hidden} | fields
        return self.session.post(page.url, data=form, allow_redirects=False, timeout=10, headers={"Referer": page.url})


def redirect_parameters(response: requests.Response) -> dict[str, str]:
    assert response.status_code == 302, response.text
    return {name: values[0] for name, values in parse_qs(urlsplit(response.headers["Location"]).query).items()}
