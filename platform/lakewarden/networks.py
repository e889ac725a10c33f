"""Where a request comes from: what is an address, and as coarsely as one sender can choose it; for audit and authn."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

_PREFIX: Final = 64  # bits: what one customer of a provider has of IPv6
_MOST: Final = 64  # characters of an address

Address = IPv4Address | IPv6Address


def address_of(text: str) -> Address | None:
    """The address that `text` is; None when it is not one. A socket for both families writes IPv4 as IPv6."""
    try:
        found = ip_address(text) if len(text) <= _MOST else None
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


def network_of(address: str) -> str:
    """The /64 network of an IPv6 address, any other address as it is, and nothing for what is not an address."""
    found = address_of(address)
    if isinstance(found, IPv6Address):
        return str(IPv6Network((int(found), _PREFIX), strict=False))
    return "" if found is None else str(found)
