"""Where a request comes from, as coarsely as one sender can choose it; for audit and authn."""

import ipaddress
from typing import Final

_PREFIX: Final = 64  # bits: what one customer of a provider has of IPv6


def network_of(address: str) -> str:
    """The /64 network of an IPv6 address; any other address as it is."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.IPv6Network((address, _PREFIX), strict=False))
    except ValueError:
        return address
