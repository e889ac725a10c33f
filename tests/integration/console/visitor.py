"""The type of the fixture `visitor`, and how a visitor sends a form."""

import re
from collections.abc import Callable
from urllib.parse import urlencode

from tests.servers.asgi_client import Answer, AsgiClient

Visitor = Callable[[str], AsgiClient]


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
