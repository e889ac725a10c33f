"""Visitors of the console: people with a session, as the callback would have begun it."""

import pytest

from console.services import sessions
from console.services.sessions import Tokens
from lakewarden.context import PrincipalId
from tests.integration.console.visitor import Visitor
from tests.servers.asgi_client import AsgiClient


@pytest.fixture
def visitor(client: AsgiClient) -> Visitor:
    """`visitor("alice")` is a browser in which alice (`oidc~alice`) is signed in."""

    def signed_in(name: str) -> AsgiClient:
        cookie = sessions.begin(PrincipalId(f"oidc~{name}"), Tokens(access=name, lifetime_s=3600))
        return AsgiClient({"cookie": f"lakewarden-session={cookie}"})

    return signed_in
