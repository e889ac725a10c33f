"""Which readers of events are told that there is something new."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lakewarden.hot import connections as hot_connections
from lakewarden.http import log_watch
from lakewarden.http.log_watch import LogWatch

_PATIENCE_S = 60


class Log:
    """Of events with positions from 1; each has a project."""

    def __init__(self, *projects: str) -> None:
        self.projects = list(projects)
        self.looks: asyncio.Queue[int] = asyncio.Queue()

    async def fetch(self, _connection: object, _text: bytes, given: list[bytes], _formats: list[int]) -> Any:
        after = int(given[0])
        self.looks.put_nowait(after)
        positions = range(after + 1, len(self.projects) + 1)
        return list({self.projects[each - 1]: each for each in positions}.items())


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    @asynccontextmanager
    async def nothing() -> AsyncIterator[None]:
        yield

    made = Log(*["anna"] * 5)
    monkeypatch.setattr(hot_connections, "connection", nothing)
    monkeypatch.setattr(log_watch, "fetch", made.fetch)
    monkeypatch.setattr(log_watch, "SHORTEST_PAUSE_S", 0.001)
    monkeypatch.setattr(log_watch, "LONGEST_PAUSE_S", 0.002)
    return made


def waiting(watch: LogWatch, position: int, project: str | None = "anna") -> asyncio.Task[int]:
    gone = asyncio.get_running_loop().create_future()
    return asyncio.create_task(watch.news(position, project, gone=gone, within_s=_PATIENCE_S))


async def looked(log: Log, times: int = 3) -> None:
    for _ in range(times + log.looks.qsize()):
        await log.looks.get()


@pytest.mark.parametrize("is_first", [True, False])
def test_a_position_that_was_made_up_neither_wakes_others_nor_hides_what_is_new(log: Log, *, is_first: bool) -> None:
    async def run() -> None:
        watch = LogWatch()
        positions = [2**62, 5] if is_first else [5, 2**62]
        readers = {each: waiting(watch, each) for each in positions}
        await looked(log)
        assert not readers[5].done()
        log.projects.append("anna")
        assert await readers[5] == 5
        again = waiting(watch, 6)
        await looked(log)
        assert not again.done()
        assert not readers[2**62].done()
        for each in (again, readers[2**62]):
            each.cancel()

    asyncio.run(asyncio.wait_for(run(), _PATIENCE_S))


def test_events_of_others_move_a_reader_on_without_waking_them(log: Log) -> None:
    async def run() -> None:
        watch = LogWatch()
        anna, ben, server = waiting(watch, 5), waiting(watch, 5, "ben"), waiting(watch, 5, None)
        log.projects.append("ben")
        assert (await ben, await server) == (5, 5)
        assert not anna.done()
        log.projects.append("anna")
        assert await anna == 6

    asyncio.run(asyncio.wait_for(run(), _PATIENCE_S))


def test_events_that_a_reader_has_read_already_do_not_wake_them(log: Log) -> None:
    """They were logged after the last look, which others waited for, and before the reader came."""

    async def run() -> None:
        watch = LogWatch()
        others = waiting(watch, 3, "ben")
        anna = waiting(watch, 5)
        log.projects.append("ben")
        assert await others == 3
        assert not anna.done()
        log.projects.append("anna")
        assert await anna == 6

    asyncio.run(asyncio.wait_for(run(), _PATIENCE_S))


def test_who_comes_with_an_older_position_is_told_what_came_since(log: Log) -> None:
    async def run() -> None:
        watch = LogWatch()
        late = waiting(watch, 5)
        await looked(log)
        assert await waiting(watch, 3) == 3
        assert not late.done()
        late.cancel()

    asyncio.run(asyncio.wait_for(run(), _PATIENCE_S))
