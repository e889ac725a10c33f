"""Forms behind a proxy that ends TLS: accepted where the server knows its public address, else it says what to set."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.integration.console.visitor import text_of
from tests.servers.asgi_client import Answer
from tests.servers.certificates import Certificates
from tests.servers.lakewarden_serve import LakewardenServer, serve
from tests.servers.tls_front import front

TOKEN = "t" * 32


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.made(tmp_path_factory.mktemp("front") / "certificates")


@pytest.fixture(scope="module")
def server() -> Iterator[LakewardenServer]:
    """It trusts the proxies of this machine only, which send `x-forwarded-…`."""
    with serve({"LAKEWARDEN__SERVER__TRUSTED_PROXIES": "127.0.0.1"}) as running:
        yield running


def sign_out(address: str, authority: Path, *, origin: str) -> Answer:
    """Send a form as a browser does that has a page of `origin` open."""
    answer = requests.post(
        f"{address}/console/sign-out",
        data={"csrfmiddlewaretoken": TOKEN},
        cookies={"__Host-lakewarden-csrf": TOKEN, "lakewarden-csrf": TOKEN},
        headers={"origin": origin},
        verify=str(authority),
        timeout=30,
    )
    return Answer(answer.status_code, {}, answer.content)


def test_a_trusted_proxy_that_tells_the_public_address(server: LakewardenServer, certificates: Certificates) -> None:
    with front(server.uri, certificates, tells=True) as address:
        assert "You are signed out" in text_of(sign_out(address, certificates.authority, origin=address))
        foreign = sign_out(address, certificates.authority, origin="https://evil.example.org")
        assert foreign.status == 403
        assert "You are signed out" not in text_of(foreign)


def test_a_proxy_that_tells_nothing(server: LakewardenServer, certificates: Certificates) -> None:
    with front(server.uri, certificates, tells=False) as address:
        refused = sign_out(address, certificates.authority, origin=address)
    assert refused.status == 403
    shown = text_of(refused)
    assert f"sent from {address}, but this server takes its own address for {address.replace('https', 'http')}" in shown
    assert "LAKEWARDEN__SERVER__BASE_URI" in shown
    assert "LAKEWARDEN__SERVER__TRUSTED_PROXIES" in shown
