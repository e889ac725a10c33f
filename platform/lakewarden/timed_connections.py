"""Connections whose whole answer, headers included, must arrive within the time-out of reads.

Libraries for HTTP begin that time anew with each byte: a server that sends one now and then would never be given up.
"""

import io
import socket
import time
from collections.abc import Mapping
from http.client import HTTPResponse
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection


class _TimedReads(io.RawIOBase):
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        timeout = sock.gettimeout()
        self._until = None if timeout is None else time.monotonic() + timeout

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:  # noqa: ANN401 as its base has it
        if self._until is not None:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedSocket:
    """What an answer needs of a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def makefile(self, *_: object) -> io.BufferedReader:
        return io.BufferedReader(_TimedReads(self._sock))


class TimedResponse(HTTPResponse):
    def __init__(
        self, sock: socket.socket, debuglevel: int = 0, method: str | None = None, url: str | None = None
    ) -> None:
        timed: Any = _TimedSocket(sock)
        super().__init__(timed, debuglevel, method, url)


class _Connection(HTTPConnection):
    response_class = TimedResponse


class _SecureConnection(HTTPSConnection):
    response_class = TimedResponse


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


Pools = TypeVar("Pools", bound=PoolManager)

_POOLS: Final[Mapping[str, Any]] = {"http": _Pool, "https": _SecurePool}


def timed_pools(address: str | None = None, **options: Any) -> PoolManager:  # noqa: ANN401 as urllib3 has them
    """Connections to `address`, by the proxy that the environment names for it; None: to any, by none."""
    proxy = None
    if address is not None:
        parts = urlsplit(address)
        proxy = None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)
    return timed(PoolManager(**options) if proxy is None else ProxyManager(proxy, **options))


def timed(pools: Pools) -> Pools:
    """The same, before it has made its first connection."""
    pools.pool_classes_by_scheme = dict(_POOLS)
    return pools
