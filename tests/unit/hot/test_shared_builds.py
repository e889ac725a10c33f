"""Shared builds: one for all who ask while it runs; all of them get its error, too."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from lakewarden.hot.shared_builds import SharedBuilds


def builder(begun: list[str], name: str, end: asyncio.Event) -> Callable[[], Coroutine[Any, Any, str]]:
    async def build() -> str:
        begun.append(name)
        await end.wait()
        if name == "bad":
            raise ValueError(name)
        return f"{name} {len(begun)}"

    return build


def test_who_asks_while_it_is_built_gets_the_same() -> None:
    async def ask() -> None:
        builds, begun, end = SharedBuilds[str](), list[str](), asyncio.Event()
        asking = [asyncio.create_task(builds.share(name, builder(begun, name, end))) for name in "aabaa"]
        await asyncio.sleep(0.01)
        asking[0].cancel()
        end.set()
        found = await asyncio.gather(*asking, return_exceptions=True)
        assert begun == ["a", "b"]
        assert isinstance(found[0], asyncio.CancelledError)
        assert found[1:] == ["a 2", "b 2", "a 2", "a 2"]
        assert await builds.share("a", builder(begun, "a", end)) == "a 3"

    asyncio.run(ask())


def test_an_error_is_everybodys_and_is_not_kept() -> None:
    async def ask() -> None:
        builds, begun, end = SharedBuilds[str](), list[str](), asyncio.Event()
        end.set()
        asking = [builds.share("bad", builder(begun, "bad", end)) for _ in range(3)]
        assert all(isinstance(each, ValueError) for each in await asyncio.gather(*asking, return_exceptions=True))
        assert begun == ["bad"]
        with pytest.raises(ValueError, match="bad"):
            await builds.share("bad", builder(begun, "bad", end))
        assert begun == ["bad", "bad"]

    asyncio.run(ask())
