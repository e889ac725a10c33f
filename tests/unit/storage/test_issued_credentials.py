"""The cache of credentials that stores have issued."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from threading import Barrier, Event

import pytest

from lakewarden.storage.interface import StorageBusy, StorageError, StorageSilent, StorageUnavailable
from lakewarden.storage.issued_credentials import Issued, IssuedCredentials
from lakewarden.storage.token_services import TokenService

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


@pytest.fixture
def guarded(clock: Clock) -> IssuedCredentials:
    """Token services are left alone after two calls that they did not answer."""
    made = lru_cache(lambda address: TokenService(address, most=2, failures=2, pause_s=60))
    return IssuedCredentials(10, clock=clock, services=made)


def silent() -> Issued:
    raise StorageSilent("it hangs")


def busy() -> Issued:
    raise StorageUnavailable("too many requests")


def refuses() -> Issued:
    raise StorageError("not allowed")


@pytest.mark.parametrize("fails", [silent, busy])
def test_what_has_not_ended_is_given_out_while_there_is_nothing_new(
    guarded: IssuedCredentials, clock: Clock, fails: Callable[[], Issued]
) -> None:
    first = guarded.get("t", Store(clock), service="sts")
    clock.later(minutes=28, seconds=59)
    assert guarded.get("t", fails, service="sts") is first
    clock.later(seconds=1)
    with pytest.raises(StorageUnavailable):
        guarded.get("t", fails, service="sts")


def test_what_has_not_ended_is_not_given_out_after_a_refusal(guarded: IssuedCredentials, clock: Clock) -> None:
    guarded.get("t", Store(clock), service="sts")
    clock.later(minutes=15)
    with pytest.raises(StorageError, match="not allowed"):
        guarded.get("t", refuses, service="sts")


def test_what_has_not_ended_is_given_out_while_another_caller_asks(guarded: IssuedCredentials, clock: Clock) -> None:
    store, asked, ready = Store(clock), Event(), Event()
    first = guarded.get("t", store, service="sts")
    clock.later(minutes=15)

    def slow() -> Issued:
        asked.set()
        assert ready.wait(WAIT_S)
        return store()

    with ThreadPoolExecutor(1) as threads:
        renewed = threads.submit(guarded.get, "t", slow, service="sts")
        assert asked.wait(WAIT_S)
        assert guarded.get("t", never, service="sts") is first
        ready.set()
        assert renewed.result(WAIT_S) is not first


def test_a_silent_service_is_left_alone_and_no_other_is(guarded: IssuedCredentials, clock: Clock) -> None:
    for name in ("a", "b"):
        with pytest.raises(StorageSilent):
            guarded.get(name, silent, service="sts")
    with pytest.raises(StorageUnavailable, match="The token service at sts failed 2 times in a row"):
        guarded.get("c", never, service="sts")
    store = Store(clock)
    guarded.get("c", store, service="another")
    guarded.get("d", store)


def test_a_service_that_answers_is_not_left_alone(guarded: IssuedCredentials, clock: Clock) -> None:
    for number in range(5):
        with pytest.raises(StorageError):
            guarded.get(number, busy if number % 2 else refuses, service="sts")
    guarded.get("t", Store(clock), service="sts")


def test_few_wait_for_a_service(clock: Clock) -> None:
    service = TokenService("sts", most=1, failures=2, pause_s=60)
    with pytest.raises(StorageSilent), service.asking():
        raise StorageSilent("it hangs")
    with (
        service.waiting(),
        pytest.raises(StorageBusy, match="The token service at sts does not answer: 1 calls"),
        service.waiting(),
    ):
        pass
