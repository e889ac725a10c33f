"""Computations on the loop: one at a time, in turns between callers, with pauses."""

import asyncio
import time

import pytest

from lakewarden.hot.pace import AT_A_TIME_S, Pace


def compute() -> None:
    until = time.thread_time() + AT_A_TIME_S
    while time.thread_time() < until:
        pass


def test_many_computations_that_are_ready_at_once_leave_the_loop_its_pauses() -> None:
    done = 0

    def work() -> None:
        nonlocal done
        compute()
        done += 1

    async def everything() -> list[int]:
        pace, pauses = Pace(), list[int]()
        working = asyncio.gather(*(pace.run("anna", work) for _ in range(20)))
        while not working.done():
            pauses.append(done)
            await asyncio.sleep(0)
        return pauses

    assert set(range(1, 20)) <= set(asyncio.run(everything()))


def test_callers_take_turns() -> None:
    order: list[str] = []

    async def everything() -> None:
        pace = Pace()

        async def one(caller: str) -> None:
            def work() -> None:
                compute()
                order.append(caller)

            await pace.run(caller, work)

        await asyncio.gather(*(one("flood") for _ in range(20)), one("calm"))

    asyncio.run(everything())
    assert order.index("calm") <= 2
    assert len(order) == 21


def test_who_goes_away_or_fails_takes_nothing_from_the_others() -> None:
    def fail() -> None:
        raise ValueError

    async def everything() -> int:
        pace = Pace()
        first = asyncio.ensure_future(pace.run("anna", compute))
        gone = asyncio.ensure_future(pace.run("anna", lambda: 1))
        failing = asyncio.ensure_future(pace.run("ben", fail))
        last = asyncio.ensure_future(pace.run("carl", lambda: 2))
        await asyncio.sleep(0)
        gone.cancel()
        await first
        with pytest.raises(ValueError):
            await failing
        await last
        called = asyncio.ensure_future(pace.run("dora", lambda: 3))
        return await called

    assert asyncio.run(everything()) == 3


def test_a_turn_that_is_given_up_the_moment_it_comes_is_passed_on() -> None:
    async def everything() -> int:
        pace = Pace()
        holding = asyncio.ensure_future(pace.run("anna", compute))
        await asyncio.sleep(0)
        given_up = asyncio.ensure_future(pace.run("ben", lambda: 1))
        last = asyncio.ensure_future(pace.run("carl", lambda: 2))
        while not holding.done():
            await asyncio.sleep(0)
            given_up.cancel()
        return await asyncio.wait_for(last, 5)

    assert asyncio.run(everything()) == 2
