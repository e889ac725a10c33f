import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from lakewarden.errors import Unavailable
from lakewarden.fair_shares import Shares
from lakewarden.hot.fair_threads import FairThreads


class Stage:
    """Work that waits until it is let go; `begun` counts it by caller."""

    def __init__(self, *, threads: int = 4, queue: int = 8, percent: int = 75, patience_s: float = 10) -> None:
        self.threads = FairThreads("test", threads=threads, queue=queue, percent=percent, patience_s=patience_s)
        self.begun: Counter[str] = Counter()
        self.gate = threading.Event()

    def ask(self, caller: str, *, times: int = 1) -> list[asyncio.Task[str]]:
        return [asyncio.ensure_future(self.threads.run(caller, self._work, caller)) for _ in range(times)]

    def _work(self, caller: str) -> str:
        self.begun[caller] += 1
        assert self.gate.wait(10)
        return caller

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():  # noqa: ASYNC110 what is waited for happens in threads
                await asyncio.sleep(0.005)

    def run(self, story: Callable[[], Awaitable[None]]) -> None:
        async def whole() -> None:
            try:
                await story()
            finally:
                self.gate.set()

        asyncio.run(whole())
        self.threads.executor.shutdown()


def test_one_callers_storm_leaves_threads_to_others() -> None:
    stage = Stage()

    async def story() -> None:
        storm = stage.ask("stormy", times=8)
        await stage.until(lambda: stage.begun["stormy"] == 3)
        other = stage.ask("other")
        await stage.until(lambda: stage.begun["other"] == 1)
        assert stage.begun["stormy"] == 3
        stage.gate.set()
        assert set(await asyncio.gather(*storm, *other)) == {"stormy", "other"}

    stage.run(story)


def test_who_waits_is_served_in_turn() -> None:
    stage = Stage(threads=1, percent=100)
    order: list[str] = []

    async def note(task: asyncio.Task[str]) -> None:
        order.append(await task)

    async def story() -> None:
        first = stage.ask("stormy", times=5)
        await stage.until(lambda: stage.begun["stormy"] == 1)
        tasks = [*first, *stage.ask("a"), *stage.ask("b")]
        noting = [asyncio.ensure_future(note(task)) for task in tasks]
        await asyncio.sleep(0)
        stage.gate.set()
        await asyncio.gather(*noting)
        assert order[:4] == ["stormy", "stormy", "a", "b"]

    stage.run(story)


def test_beyond_the_queue_requests_are_refused_at_once_but_others_still_have_places() -> None:
    stage = Stage(threads=1, queue=4, percent=75)

    async def story() -> None:
        first = stage.ask("stormy", times=4)
        await stage.until(lambda: stage.begun["stormy"] == 1)
        with pytest.raises(Unavailable, match="1 in progress, 3 waiting; 4 of them are yours"):
            await stage.ask("stormy")[0]
        other = stage.ask("other")[0]
        await asyncio.sleep(0)
        assert not other.done()
        with pytest.raises(Unavailable, match="0 of them are yours"):
            await stage.ask("third")[0]
        stage.gate.set()
        await asyncio.gather(*first, other)

    stage.run(story)


def test_a_request_that_waits_too_long_is_refused_and_was_not_begun() -> None:
    stage = Stage(threads=1, patience_s=0.05)

    async def story() -> None:
        first = stage.ask("a")[0]
        await stage.until(lambda: stage.begun["a"] == 1)
        with pytest.raises(Unavailable, match=r"it waited for 0\.05 s"):
            await stage.ask("b")[0]
        stage.gate.set()
        assert await first == "a"
        assert (await stage.ask("b")[0], stage.begun) == ("b", Counter(a=1, b=1))

    stage.run(story)


@pytest.mark.parametrize(("percent", "alone", "second", "third"), [(75, 12, 3, 1), (50, 8, 4, 2), (100, 16, 0, 0)])
def test_a_share_is_the_smaller_the_more_others_hold(percent: int, alone: int, second: int, third: int) -> None:
    shares = Shares(16, percent=percent)
    for caller, expected in (("a", alone), ("b", second), ("c", third)):
        while shares.take(caller):
            pass
        assert shares.held_by(caller) == expected


def test_work_that_was_begun_takes_a_place_until_it_ends() -> None:
    """With one thread, the second waits for its turn as `run` does, and each gets its own result."""

    def fails() -> str:
        raise ValueError("no")

    async def story() -> None:
        stage = Stage(threads=1)
        first = stage.threads.begin("a", stage._work, "a")
        second = stage.threads.begin("b", stage._work, "b")
        third = stage.threads.begin("a", fails)
        await stage.until(lambda: stage.begun["a"] == 1)
        assert not stage.begun["b"]
        stage.gate.set()
        assert [await first, await second] == ["a", "b"]
        with pytest.raises(ValueError, match="no"):
            await third
        assert await stage.threads.begin("c", stage._work, "c") == "c"

    asyncio.run(story())
