"""The type of the fixture `visitor`, how a visitor sends a form, and what they read on a page."""

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import urlencode

from tests.servers.asgi_client import Answer, AsgiClient

MISSING = "00000000-0000-4000-8000-000000000000"
Visitor = Callable[[str], AsgiClient]


def text_of(answer: Answer) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.body.decode())))


def links_of(answer: Answer) -> list[str]:
    return [unescape(each) for each in re.findall(r'href="([^"]+)"', answer.body.decode())]


def send(browser: AsgiClient, page: str, form: str, **fields: str) -> Answer:
    """Load `page` and send its form `form` with the token of the page."""
    loaded = browser.get(page)
    assert loaded.status == 200, loaded.body
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', loaded.body.decode())[0]
    given = loaded.headers["set-cookie"].partition(";")[0]
    body = urlencode({"csrfmiddlewaretoken": token, **fields}).encode()
    return browser.call(
        "POST",
        form,
        body=body,
        headers={
            "cookie": f"{browser.headers['cookie']}; {given}",
            "content-type": "application/x-www-form-urlencoded",
        },
    )
