"""Which addresses a profile may name: the server sends requests there for everybody who may create a warehouse."""

import re
import socket
from collections.abc import Collection
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from lakewarden.errors import InvalidArgument

_WRITTEN: Final = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(?:/[A-Za-z0-9._~/-]*)?"
)
_HIGHEST_PORT: Final = 65_535
_OF_AWS: Final = (".amazonaws.com", ".amazonaws.com.cn")
_METADATA: Final = frozenset(map(ip_address, ("fd00:ec2::254", "100.100.100.200", "168.63.129.16")))
"""Of AWS, Alibaba Cloud and Azure: services of the machine at other addresses than link-local ones."""


def one_reading(endpoint: str) -> str:
    """The endpoint, if all libraries read the same address in it; otherwise ValueError."""
    found = _WRITTEN.fullmatch(endpoint)
    if found is None or any(part in {".", ".."} for part in endpoint.split("/")):
        raise ValueError(f"{endpoint[:200]!r} is not a valid endpoint, for example https://s3.example.org")
    if found[1] and not 0 < int(found[1]) <= _HIGHEST_PORT:
        raise ValueError(f"{endpoint[:200]!r} has an invalid port: 1 to {_HIGHEST_PORT} are valid")
    return endpoint


def ensure_allowed(field: str, endpoint: str, allowed: Collection[str]) -> None:
    """Raises InvalidArgument if the operator does not allow it: only `allowed` ones, if there are any.

    Otherwise it must not be the machine's own services, which give credentials to all who can reach them.
    """
    if allowed:
        if endpoint not in {each.rstrip("/") for each in allowed}:
            raise InvalidArgument(f"{field} {endpoint!r} is not one of the server's storage.aws.endpoints")
    elif _is_of_the_machine(urlsplit(endpoint).hostname or ""):
        raise InvalidArgument(f"{field} {endpoint!r} is not allowed: link-local addresses are not object stores")


def is_of_aws(endpoint: str) -> bool:
    return (urlsplit(endpoint).hostname or "").endswith(_OF_AWS)


def _is_of_the_machine(host: str) -> bool:
    """Names are looked up; one that is not known now is tried when it is used."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return any(_is_metadata(str(address[0])) for *_, address in found)


def _is_metadata(text: str) -> bool:
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_link_local or address in _METADATA
