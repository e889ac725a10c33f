"""The circuit breaker of a store, with a clock that the test moves."""

import logging

import pytest

from lakewarden.storage import breaker as module
from lakewarden.storage.breaker import Breaker
from lakewarden.storage.interface import FileMissing, StorageBusy, StorageUnavailable


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def breaker() -> Breaker:
    return Breaker("s3://lake", most=3, pause_s=5)


def call(breaker: Breaker, raises: Exception | None = None) -> str:
    """Whether the call was "made", or "refused" before."""
    made = False
    try:
        with breaker.guarded():
            made = True
            if raises:
                raise raises
    except (StorageUnavailable, FileMissing):
        pass
    return "made" if made else "refused"


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        assert call(breaker, StorageUnavailable("it hangs")) == "made"


def test_a_store_that_fails_is_left_alone_and_tried_by_one_call(clock: Clock, breaker: Breaker) -> None:
    fail(breaker, 3)
    assert [call(breaker) for _ in range(3)] == ["refused"] * 3
    clock.now += 5
    with breaker.guarded():
        assert call(breaker) == "refused"
    assert call(breaker) == "made"


def test_a_try_that_fails_starts_another_pause(clock: Clock, breaker: Breaker) -> None:
    fail(breaker, 3)
    for _ in range(3):
        clock.now += 5
        fail(breaker, 1)
        assert call(breaker) == "refused"


@pytest.mark.parametrize("answer", [None, FileMissing("No file")], ids=["success", "refusal"])
def test_any_answer_of_the_store_counts_as_health(clock: Clock, breaker: Breaker, answer: Exception | None) -> None:
    for _ in range(4):
        fail(breaker, 2)
        assert call(breaker, answer) == "made"
    assert not breaker.is_open


def test_calls_that_found_no_place_say_nothing_about_the_store(clock: Clock, breaker: Breaker) -> None:
    for _ in range(10):
        assert call(breaker, StorageBusy("8 calls wait")) == "made"
    assert not breaker.is_open
    fail(breaker, 3)
    clock.now += 5
    assert call(breaker, StorageBusy("8 calls wait")) == "made"
    assert call(breaker) == "made"
    assert not breaker.is_open


def test_illness_and_recovery_are_logged_once_each(
    clock: Clock, breaker: Breaker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        fail(breaker, 3)
        call(breaker)
        call(breaker)
        clock.now += 60
        fail(breaker, 1)
        clock.now += 5
        call(breaker)
    assert [record.getMessage() for record in caplog.records] == [
        "The storage at s3://lake fails, and is left alone for a while: it hangs",
        "The storage at s3://lake answers again after 65 s: 2 calls were refused",
    ]
