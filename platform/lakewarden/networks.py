"""Parses client addresses and maps them to networks, to limit and audit senders; for audit, authn and http."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

_PREFIX: Final = 64  # bits: one customer of a provider can usually choose any address in a /64
_MOST: Final = 64  # characters of an address

Address = IPv4Address | IPv6Address


def address_of(text: str) -> Address | None:
    """Parse an address; None if it is not valid. IPv4 in IPv6 form (from dual-stack sockets) is returned as IPv4."""
    try:
        found = ip_address(text) if len(text) <= _MOST else None
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def network_of(address: str) -> str:
    """The /64 network of an IPv6 address; an IPv4 address as it is; empty for an invalid address."""
    found = address_of(address)
    if isinstance(found, IPv6Address):
        return str(IPv6Network((int(found), _PREFIX), strict=False))
    return "" if found is None else str(found)
