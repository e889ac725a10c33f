"""The database falls silent and the server is killed: what was acknowledged as `fallback` is in the log once."""

import asyncio
import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from tests.integration.ingest.messages import batch, connect
from tests.integration.replicas.change_streams import numbers, say, socket_of
from tests.integration.replicas.pair import Lake, Pair
from tests.servers.silent_proxy import SilentProxy, silent_proxy

BEFORE, LAST = 5, 60


@pytest.fixture
def proxy(pair: Pair, tmp_path: Path) -> Iterator[SilentProxy]:
    """Between server `a` and its database; the server has a fallback file."""
    server = pair.a.server
    url = server.settings["LAKEWARDEN__DATABASE__URL"]
    port = urlsplit(url).port
    assert port is not None
    with silent_proxy(port) as between:
        changed = {
            "LAKEWARDEN__DATABASE__URL": url.replace(f":{port}/", f":{between.port}/"),
            "LAKEWARDEN__DATABASE__STATEMENT_TIMEOUT_S": "2",
            "LAKEWARDEN__DATABASE__CONNECT_TIMEOUT_S": "2",
            "LAKEWARDEN__INGEST__FALLBACK_FOLDER": str(tmp_path / "fallback"),
        }
        server.restart(changed)
        yield between
        between.speak()
        for name in changed:
            del server.settings[name]
        server.restart({"LAKEWARDEN__DATABASE__URL": url})


async def stream(socket: ClientConnection, first: int, last: int) -> list[str]:
    """The statuses of the batches, which are sent in windows of five."""
    statuses: list[str] = []
    for begin in range(first, last + 1, 5):
        chosen = range(begin, min(begin + 5, last + 1))
        for number in chosen:
            await socket.send(json.dumps(batch(number)))
        for _ in chosen:
            async with asyncio.timeout(30):
                answer = json.loads(await socket.recv())
            statuses.append(str(answer.get("status", answer)))
    return statuses


def test_what_was_acknowledged_from_the_file_is_in_the_log_once_after_a_kill(
    pair: Pair, lake: Lake, proxy: SilentProxy
) -> None:
    """It is killed while the database is silent, and again soon after its start, while it replays or has replayed."""
    lake.add_namespace("default")

    async def before() -> list[str]:
        async with socket_of(pair.a, lake, pair.admin) as socket:
            await say(socket, connect(lastAckSequence=0))
            assert await stream(socket, 1, BEFORE) == ["ok"] * BEFORE
            proxy.fall_silent()
            found = await stream(socket, BEFORE + 1, LAST)
            os.kill(pair.a.server.process.pid, signal.SIGKILL)
            return found

    async def after() -> tuple[dict[str, Any], list[str]]:
        for _ in range(100):
            try:
                async with socket_of(pair.a, lake, pair.admin) as socket:
                    state = await say(socket, connect(lastAckSequence=LAST))
                    return state, await stream(socket, LAST + 1, LAST + 5)
            except InvalidStatus:  # the lease of the killed server has not ended yet
                await asyncio.sleep(random.uniform(0.2, 0.4))  # noqa: S311
        raise AssertionError("No connection")

    assert set(pair.run(before())) == {"fallback"}
    proxy.speak()
    pair.a.server.restart()
    pair.run(asyncio.sleep(random.uniform(0, 0.5)))  # noqa: S311
    os.kill(pair.a.server.process.pid, signal.SIGKILL)
    pair.a.server.restart()
    state, statuses = pair.run(after())
    assert state["lastAckedSequence"] == LAST
    assert set(statuses) <= {"ok"}
    assert numbers(pair, lake) == [(number, number) for number in range(1, LAST + 6)]
