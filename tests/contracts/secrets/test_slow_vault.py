"""A Vault that sends a byte now and then is given up like one that is silent."""

import json
import time
from collections.abc import Callable, Iterator
from itertools import repeat

import pytest

from lakewarden.config import VaultConfig
from lakewarden.ids import new_id
from lakewarden.secrets.interface import SecretsUnavailable
from lakewarden.secrets.vault import VaultStore
from tests.servers import raw_server
from tests.servers.raw_server import Connection, RawServer

TIMEOUT_S = 0.5
LOGIN = json.dumps({"data": {"ttl": 3600, "renewable": False}})
DROPS = {
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-Drop: 1\r\n"),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", b" "),
}


@pytest.fixture
def server() -> Iterator[RawServer]:
    with raw_server.start() as running:
        yield running


def drip(connection: Connection, part: str) -> None:
    head, drop = DROPS[part]
    connection.send(head, *repeat(drop, 200), pause_s=0.1)


@pytest.mark.parametrize("part", DROPS)
@pytest.mark.parametrize("is_login_quick", [True, False], ids=["after the login", "at the login"])
def test_every_use_ends_within_the_time_out(server: RawServer, part: str, *, is_login_quick: bool) -> None:
    def answer(connection: Connection) -> None:
        if is_login_quick and connection.path.endswith("lookup-self"):
            connection.answer(LOGIN, Content_Type="application/json")
        else:
            drip(connection, part)

    server.answer = answer
    uses: list[Callable[[VaultStore], object]] = [
        lambda store: store.get(new_id()),
        lambda store: store.put({"key": "value"}),
        lambda store: store.delete(new_id()),
        lambda store: list(store.references()),
    ]
    settings = {"url": server.url, "auth": "token", "token": "t", "timeout_s": TIMEOUT_S}
    for use in uses:
        store = VaultStore(VaultConfig.model_validate(settings), installation=new_id)
        started = time.monotonic()
        with pytest.raises(SecretsUnavailable, match=r"Vault does not answer within 0\.5 seconds"):
            use(store)
        assert time.monotonic() - started < 4 * TIMEOUT_S
