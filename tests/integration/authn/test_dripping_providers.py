"""Servers that send a byte now and then, to keep a thread that waits for them: identity providers."""

import time
from collections.abc import Callable, Iterator
from itertools import repeat

import pytest

from lakewarden.authn.json_fetch import JsonClient, ServesNobody
from tests.servers import raw_server
from tests.servers.raw_server import Connection, RawServer

LONGEST_S = 6.0
DROPS = {
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-Drop: 1\r\n"),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{", b" "),
}


@pytest.fixture
def server() -> Iterator[RawServer]:
    with raw_server.start() as running:
        yield running


USES: dict[str, Callable[[str], object]] = {
    "keys of a provider": lambda url: JsonClient().get(url),
    "introspection": lambda url: JsonClient().post(url, b"token=t", {}),
}


@pytest.mark.parametrize("part", DROPS)
@pytest.mark.parametrize("name", USES)
def test_an_answer_in_drops_is_given_up_in_time(server: RawServer, name: str, part: str) -> None:
    def drip(connection: Connection) -> None:
        head, drop = DROPS[part]
        connection.send(head, *repeat(drop, 100), pause_s=0.2)

    server.answer = drip
    started = time.monotonic()
    with pytest.raises(ServesNobody):
        USES[name](server.url)
    assert time.monotonic() - started < LONGEST_S
