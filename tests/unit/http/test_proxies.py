from typing import Any

import pytest

from lakewarden.config import ConfigError, read
from lakewarden.http.proxies import TrustedProxies

NAME = "LAKEWARDEN__SERVER__TRUSTED_PROXIES"
TRUSTED = TrustedProxies(["10.0.0.0/8", "fd00::1"])


def heard(peer: str, *told: tuple[str, str]) -> dict[str, Any]:
    headers = [(b"host", b"a"), *((f"x-forwarded-{name}".encode(), value.encode()) for name, value in told)]
    return dict(TRUSTED.heard({"client": (peer, 40000), "scheme": "http", "headers": headers}))


@pytest.mark.parametrize("peer", ["192.0.2.7", "127.0.0.1", "", "fd00::2"])
def test_nothing_is_believed_of_anybody_else(peer: str) -> None:
    scope = heard(peer, ("for", "198.51.100.1"), ("host", "evil"), ("proto", "https"), ("prefix", "x"))
    assert scope == {"client": (peer, 40000), "scheme": "http", "headers": [(b"host", b"a")]}


@pytest.mark.parametrize(
    ("told", "client"),
    [
        ("198.51.100.1", "198.51.100.1"),
        ("203.0.113.9, 198.51.100.1", "198.51.100.1"),  # the first was written by the client itself
        ("203.0.113.9, 198.51.100.1, 10.2.0.1", "198.51.100.1"),
        ("10.3.0.1, 10.2.0.1", "10.3.0.1"),
        ("198.51.100.1:4711", "198.51.100.1"),
        ("[2001:db8::7]:4711", "2001:db8::7"),
        ("::ffff:198.51.100.1", "198.51.100.1"),
        ("unknown", "10.1.0.1"),
        ("198.51.100.1, x y", "10.1.0.1"),
        ("9" * 10_000, "10.1.0.1"),
        ("", "10.1.0.1"),
    ],
)
def test_the_client_is_who_called_the_outermost_trusted_proxy(told: str, client: str) -> None:
    assert heard("10.1.0.1", ("for", told))["client"] == (client, 0)


def test_several_lines_are_one_list() -> None:
    assert heard("fd00::1", ("for", "203.0.113.9"), ("for", "198.51.100.1"))["client"] == ("198.51.100.1", 0)


@pytest.mark.parametrize(("told", "scheme"), [("https", "https"), ("https, http", "https"), ("gopher", "http")])
def test_the_scheme_is_the_outermost_proxys(told: str, scheme: str) -> None:
    assert heard("10.1.0.1", ("proto", told))["scheme"] == scheme


def test_a_network_is_checked_at_the_start() -> None:
    assert read({}).server.trusted_proxies == ()
    assert read({NAME: "10.0.0.7, fd00::/8"}).server.trusted_proxies == ("10.0.0.7", "fd00::/8")
    with pytest.raises(ConfigError, match=f"{NAME}: .*'proxy.example' is not an address"):
        read({NAME: "proxy.example"})
