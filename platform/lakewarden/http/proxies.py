"""Applies the headers of trusted proxies (`x-forwarded-…`) and removes those of all others; called by asgi.py."""

from collections.abc import Iterable, MutableMapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

from lakewarden.networks import Address, address_of

_TOLD: Final = b"x-forwarded-"
_FOR: Final = b"x-forwarded-for"
_PROTO: Final = b"x-forwarded-proto"

Scope = MutableMapping[str, Any]


class TrustedProxies:
    """`networks` are addresses or networks (CIDR) from which only trusted proxies send."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(each, strict=False) for each in networks]

    def heard(self, scope: Scope) -> Scope:
        """The request as the client sent it to the outermost trusted proxy; headers of
        untrusted senders are removed.
        """
        headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        for name, _ in headers:
            if name.startswith(_TOLD):
                return self._corrected(scope, headers)
        return scope

    def _corrected(self, scope: Scope, headers: Sequence[tuple[bytes, bytes]]) -> Scope:
        peer = address_of((scope.get("client") or ("", 0))[0])
        if peer is None or not self._trusts(peer):
            return {**scope, "headers": [each for each in headers if not each[0].startswith(_TOLD)]}
        client = self._client(peer, b",".join(value for name, value in headers if name == _FOR))
        schemes = [value.partition(b",")[0].strip() for name, value in headers if name == _PROTO]
        scheme = "https" if schemes == [b"https"] else scope.get("scheme", "http")
        return {**scope, "client": (str(client), 0), "scheme": scheme}

    def _client(self, peer: Address, forwarded_for: bytes) -> Address:
        """The client's address. Each proxy appends the address that called it, so the list is read from its end up to
        the first address that is not a trusted proxy; everything before that may be invented.
        """
        client = peer
        for each in reversed(forwarded_for.decode("latin-1").split(",")):
            found = address_of(_without_port(each.strip()))
            if found is None:
                break
            client = found
            if not self._trusts(found):
                break
        return client

    def _trusts(self, address: Address) -> bool:
        return any(address in each for each in self._networks)


def _without_port(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text
