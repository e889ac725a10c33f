"""The cache of credentials that stores have issued."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier, Event

import pytest

from lakewarden.storage.interface import StorageError
from lakewarden.storage.issued_credentials import Issued, IssuedCredentials

START = datetime(2026, 1, 1, tzinfo=UTC)
WAIT_S = 30


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def later(self, **time: int) -> None:
        self.now += timedelta(**time)


class Store:
    """Counts what it issues."""

    def __init__(self, clock: Clock, *, life: timedelta = timedelta(minutes=30)) -> None:
        self.clock, self.life, self.calls = clock, life, 0

    def __call__(self) -> Issued:
        self.calls += 1
        return Issued({"key": str(self.calls)}, self.clock.now + self.life, self.clock.now)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(clock: Clock) -> IssuedCredentials:
    return IssuedCredentials(2, clock=clock)


def test_credentials_are_kept_for_half_of_their_life(kept: IssuedCredentials, clock: Clock) -> None:
    store = Store(clock)
    first = kept.get("t", store)
    clock.later(minutes=14, seconds=59)
    assert kept.get("t", store) is first
    clock.later(seconds=1)
    second = kept.get("t", store)
    assert (store.calls, second.expires_at) == (2, clock.now + store.life)


def test_credentials_of_a_long_life_are_kept_for_an_hour(kept: IssuedCredentials, clock: Clock) -> None:
    store = Store(clock, life=timedelta(hours=12))
    kept.get("t", store)
    clock.later(minutes=59)
    kept.get("t", store)
    assert store.calls == 1
    clock.later(minutes=1)
    kept.get("t", store)
    assert store.calls == 2


def test_credentials_that_have_ended_already_are_never_given_twice(kept: IssuedCredentials, clock: Clock) -> None:
    store = Store(clock, life=timedelta(seconds=-1))
    assert kept.get("t", store) is not kept.get("t", store)


def test_keys_are_apart_and_the_least_used_goes(kept: IssuedCredentials, clock: Clock) -> None:
    store = Store(clock)
    for key in ("a", "b", "a", "c", "a"):
        kept.get(key, store)
    assert store.calls == 3
    kept.get("b", store)
    assert store.calls == 4


def test_calls_of_one_moment_share_one_request(kept: IssuedCredentials, clock: Clock) -> None:
    store, asked, ready = Store(clock), Event(), Event()

    def slow() -> Issued:
        asked.set()
        assert ready.wait(WAIT_S)
        return store()

    with ThreadPoolExecutor(8) as threads:
        first = threads.submit(kept.get, "t", slow)
        assert asked.wait(WAIT_S)
        others = [threads.submit(kept.get, "t", never) for _ in range(7)]
        ready.set()
        found = {id(each.result(WAIT_S)) for each in (first, *others)}
    assert (len(found), store.calls) == (1, 1)


def never() -> Issued:
    raise AssertionError("another call asks already, or has asked")


def test_an_error_is_shared_and_then_forgotten(kept: IssuedCredentials, clock: Clock) -> None:
    together = Barrier(4)
    store = Store(clock)

    def fails() -> Issued:
        raise StorageError("no")

    def ask(issue: Callable[[], Issued]) -> Issued:
        together.wait(WAIT_S)
        return kept.get("t", issue)

    with ThreadPoolExecutor(4) as threads:
        for each in [threads.submit(ask, fails) for _ in range(4)]:
            with pytest.raises(StorageError):
                each.result(WAIT_S)
    assert kept.get("t", store).properties == {"key": "1"}


def test_secrets_are_not_shown(clock: Clock) -> None:
    assert "hidden" not in repr(Issued({"s3.secret-access-key": "hidden"}, clock.now))
