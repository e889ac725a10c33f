"""No caller can pretend to have another address, or to be a proxy, by sending headers."""

import pytest

from lakewarden import asgi
from lakewarden.audit import refusals
from lakewarden.http.proxies import TrustedProxies
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import AsgiClient

CLIENT = "127.0.0.1"
CONFIG = "/catalog/v1/config?warehouse=lake"


def test_a_caller_does_not_choose_their_address(lake: Lake) -> None:
    """Rights: none, not even a token; and they call from the server's own machine."""
    refusals.PENDING.take()
    for number in range(20):
        told = {"x-forwarded-for": f"198.51.100.{number}", "forwarded": f"for=198.51.100.{number}"}
        assert AsgiClient(told).get(lake.path("namespaces")).status == 401
    noted, _ = refusals.PENDING.take()
    assert [(each.source, each.count) for each in noted] == [(CLIENT, 20)]


def test_a_caller_does_not_choose_the_address_that_clients_are_told(lake: Lake) -> None:
    """Rights: those of any engine."""
    told = {"x-forwarded-host": "evil.example", "x-forwarded-proto": "https", "x-forwarded-prefix": "x"}
    for _ in range(2):  # the second time a hot route answers
        answer = lake.client.get(CONFIG, headers=told)
        assert b"http://catalog.test/catalog" in answer.body
        assert b"evil" not in answer.body


def test_what_a_trusted_proxy_says_is_believed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights: the operator's, who trusts the proxy at 127.0.0.1; the first address was made up by the client."""
    monkeypatch.setattr(asgi, "_proxies", TrustedProxies([CLIENT]))
    refusals.PENDING.take()
    proxied = {"x-forwarded-for": "198.51.100.1, 192.0.2.9", "x-forwarded-host": "lake.example"}
    assert AsgiClient(proxied).get(lake.path("namespaces")).status == 401
    noted, _ = refusals.PENDING.take()
    assert [each.source for each in noted] == ["192.0.2.9"]
    answer = lake.client.get(CONFIG, headers=proxied)
    assert b"https://lake.example/catalog" in answer.body
