"""The coalescer: requests that arrive while a query runs are answered by the next one, and none waits for ever."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
import pytest

from lakewarden.errors import Unavailable
from lakewarden.hot.coalescer import MAX_KEYS, Coalescer, NotAnswered
from lakewarden.hot.sessions import Row
from lakewarden.postgres.bounded import Silent

Query = Callable[[list[list[object]]], Coroutine[Any, Any, list[Row]]]


def coalescer(query: Query) -> Coalescer:
    made = Coalescer("select")
    made._query = query  # type: ignore[method-assign, assignment]
    return made


def test_requests_of_one_moment_share_a_query() -> None:
    asked: list[list[list[object]]] = []

    async def query(columns: list[list[object]], **_: bool) -> list[Row]:
        asked.append(columns)
        await asyncio.sleep(0)
        return [(number, f"row of {key}") for number, key in enumerate(columns[0], start=1) if key != "missing"]

    async def ask() -> list[Row | None]:
        under_test = coalescer(query)
        return await asyncio.gather(*(under_test.find((key, 1)) for key in ("a", "missing", "b")))

    assert asyncio.run(ask()) == [("row of a",), None, ("row of b",)]
    assert asked == [[["a", "missing", "b"], [1, 1, 1]]]


def test_requests_for_the_same_are_one_question() -> None:
    asked: list[list[list[object]]] = []

    async def query(columns: list[list[object]], **_: bool) -> list[Row]:
        asked.append(columns)
        return [(number, f"row of {key}") for number, key in enumerate(columns[0], start=1)]

    async def ask() -> list[Row | None]:
        under_test = coalescer(query)
        return await asyncio.gather(*(under_test.find((key,)) for key in ("b", "a", "b", "a", "a")))

    assert asyncio.run(ask()) == [(f"row of {key}",) for key in "babaa"]
    assert asked == [[["b", "a"]]]


def test_who_comes_while_a_query_runs_is_answered_by_a_later_one() -> None:
    running = asyncio.Event()
    asked: list[object] = []

    async def query(columns: list[list[object]], **_: bool) -> list[Row]:
        asked.append(list(columns[0]))
        running.set()
        await asyncio.sleep(0.01)
        return [(number, key) for number, key in enumerate(columns[0], start=1)]

    async def ask() -> None:
        under_test = coalescer(query)
        first = asyncio.create_task(under_test.find(("early",)))
        await running.wait()
        late = await asyncio.gather(*(under_test.find((key,)) for key in ("late", "later")))
        assert await first == ("early",)
        assert late == [("late",), ("later",)]

    asyncio.run(ask())
    assert asked == [["early"], ["late", "later"]]


def test_a_query_takes_a_bounded_number_of_keys() -> None:
    sizes: list[int] = []

    async def query(columns: list[list[object]], **_: bool) -> list[Row]:
        sizes.append(len(columns[0]))
        return [(number, key) for number, key in enumerate(columns[0], start=1)]

    async def ask() -> None:
        under_test = coalescer(query)
        found = await asyncio.gather(*(under_test.find((number,)) for number in range(MAX_KEYS + 3)))
        assert found == [(number,) for number in range(MAX_KEYS + 3)]

    asyncio.run(ask())
    assert sizes == [MAX_KEYS, 3]


@pytest.mark.parametrize("error", [psycopg.DataError("no"), ValueError("a surrogate")])
def test_an_error_reaches_everybody_who_waits_and_the_next_is_served(error: Exception) -> None:
    failing = True

    async def query(columns: list[list[object]], **_: bool) -> list[Row]:
        if failing:
            raise error
        return [(1, "row")]

    async def ask() -> None:
        nonlocal failing
        under_test = coalescer(query)
        waiting = [under_test.find((key,)) for key in "ab"]
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in answers] == [NotAnswered, NotAnswered]
        assert [each.__cause__ for each in answers if isinstance(each, NotAnswered)] == [error, error]
        failing = False
        assert await under_test.find(("a",)) == ("row",)

    asyncio.run(ask())


def test_a_broken_connection_is_tried_once_more() -> None:
    tries = 0

    async def query(columns: list[list[object]], **_: bool) -> list[Row]:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise psycopg.OperationalError("gone")
        return [(1, "row")]

    assert asyncio.run(coalescer(query).find(("a",))) == ("row",)
    assert tries == 2


def test_a_silent_database_is_not_asked_again_for_anybody_who_waits() -> None:
    tries = 0
    asked = asyncio.Event()

    async def query(columns: list[list[object]], **_: bool) -> list[Row]:
        nonlocal tries
        tries += 1
        asked.set()
        await asyncio.sleep(0.01)
        raise Silent

    async def ask() -> None:
        under_test = coalescer(query)
        first = asyncio.create_task(under_test.find(("first",)))
        await asked.wait()
        answers = await asyncio.gather(first, under_test.find(("late",)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable, Unavailable]

    asyncio.run(ask())
    assert tries == 1


def test_a_request_that_went_away_disturbs_nobody() -> None:
    async def query(columns: list[list[object]], **_: bool) -> list[Row]:
        await asyncio.sleep(0.01)
        return [(number, key) for number, key in enumerate(columns[0], start=1)]

    async def ask() -> None:
        under_test = coalescer(query)
        leaving = asyncio.create_task(under_test.find(("leaving",)))
        staying = asyncio.create_task(under_test.find(("staying",)))
        await asyncio.sleep(0)
        leaving.cancel()
        assert await staying == ("staying",)

    asyncio.run(ask())
