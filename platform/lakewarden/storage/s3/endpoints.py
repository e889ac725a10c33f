"""Which addresses a profile may name: the server sends requests there for everybody who may create a warehouse."""

import math
import re
import socket
import time
from collections.abc import Callable, Collection, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from lakewarden.errors import InvalidArgument
from lakewarden.storage.interface import StorageError

_WRITTEN: Final = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(?:/[A-Za-z0-9._~/-]*)?"
)
LOOK_AGAIN_S: Final = 10.0
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


class EndpointsInUse:
    """Those of an opened storage. A name that led to a store when it was checked may lead elsewhere by now."""

    def __init__(
        self, named: Mapping[str, str], allowed: Collection[str], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`named` are the endpoints by their fields. Those that the operator has `allowed` are not looked up again."""
        self._named = {} if allowed else dict(named)
        self._clock = clock
        self._allowed_until = -math.inf

    def ensure_allowed(self) -> None:
        """Look the names up, unless that was done some seconds ago. Raises StorageError."""
        if not self._named or self._clock() < self._allowed_until:
            return
        for field, endpoint in self._named.items():
            try:
                ensure_allowed(field, endpoint, ())
            except InvalidArgument as error:
                raise StorageError(error.message) from None
        self._allowed_until = self._clock() + LOOK_AGAIN_S


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
