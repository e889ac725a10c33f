import asyncio
from collections.abc import Callable
from threading import Event

from lakewarden.hot.file_checks import FileChecks


def counted(*answers: bool) -> tuple[Callable[[], bool], list[bool]]:
    """A check that gives these answers in turn, and the answers that it has given."""
    given: list[bool] = []

    def check() -> bool:
        given.append(answers[len(given)])
        return given[-1]

    return check, given


def test_a_file_that_was_there_is_not_looked_for_again_at_once() -> None:
    async def ask() -> list[bool]:
        checks = FileChecks(trust_s=60)
        return [await checks.is_missing(check) for _ in range(5)]

    check, given = counted(False)
    assert asyncio.run(ask()) == [False] * 5
    assert given == [False]


def test_a_file_that_goes_is_noticed_when_the_moment_has_passed() -> None:
    async def ask() -> list[bool]:
        checks = FileChecks(trust_s=0)
        return [await checks.is_missing(check) for _ in range(2)]

    check, _ = counted(False, True)
    assert asyncio.run(ask()) == [False, True]


def test_a_missing_file_is_looked_for_each_time() -> None:
    async def ask() -> list[bool]:
        checks = FileChecks(trust_s=60)
        return [await checks.is_missing(check) for _ in range(2)]

    check, given = counted(True, False)
    assert asyncio.run(ask()) == [True, False]
    assert given == [True, False]


def test_a_check_that_hangs_holds_nobody_up_and_counts_again_once_it_ends() -> None:
    hung = Event()

    async def ask() -> list[bool]:
        checks = FileChecks(patience_s=0.01, trust_s=0)
        given_up = [await checks.is_missing(lambda: hung.wait(30)), await checks.is_missing(lambda: True)]
        hung.set()
        patient = FileChecks(trust_s=0)
        return [*given_up, await patient.is_missing(lambda: True)]

    assert asyncio.run(ask()) == [False, False, True]
