import threading
import time
from collections.abc import Callable

import pytest

from lakewarden.authn.json_fetch import FetchFailed, JsonObject, ServesNobody
from lakewarden.authn.remote_verification import RemoteVerification, RemoteVerificationLimits
from lakewarden.errors import Unavailable
from tests.unit.authn.identity_provider import FakeClock

Answer = JsonObject | None


class Party:
    """Answers by token; an exception is raised. `hold` makes it wait until `release`."""

    def __init__(self, **answers: Answer | Exception) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.hold = False
        self.is_asked, self.release = threading.Event(), threading.Event()

    def ask(self, token: str) -> Answer:
        self.asked.append(token)
        self.is_asked.set()
        if self.hold:
            assert self.release.wait(timeout=60)
        answer = self.answers.get(token)
        if isinstance(answer, Exception):
            raise answer
        return answer


def verification(party: Party, clock: FakeClock, limits: RemoteVerificationLimits | None = None) -> RemoteVerification:
    return RemoteVerification(party.ask, limits=limits or RemoteVerificationLimits(), monotonic=clock)


def in_threads(count: int, call: Callable[[], Answer]) -> tuple[list[threading.Thread], list[object]]:
    results: list[object] = []

    def run() -> None:
        try:
            results.append(call())
        except Unavailable as error:
            results.append(error.message)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, results


class CountedEvent(threading.Event):
    """Counts the threads that wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = threading.Semaphore(0)

    def wait(self, timeout: float | None = None) -> bool:
        self.waiting.release()
        return super().wait(timeout)


def joined(asked: RemoteVerification, party: Party, count: int, token: str) -> list[object]:
    """What as many threads get that ask about one token: the first one's question is held, the others wait for it."""
    first, answer = in_threads(1, lambda: asked.verdict(token))
    assert party.is_asked.wait(timeout=30)
    (flight,) = asked._flights.values()
    flight.landed = landed = CountedEvent()
    others, answers = in_threads(count - 1, lambda: asked.verdict(token))
    for _ in others:
        assert landed.waiting.acquire(timeout=30)
    party.release.set()
    for thread in (*first, *others):
        thread.join(timeout=30)
    return [*answer, *answers]


def test_refused_token_is_asked_about_once_in_a_while(clock: FakeClock) -> None:
    party = Party(good={"sub": "ada"})
    asked = verification(party, clock)

    assert [asked.verdict("bad") for _ in range(100)] == [None] * 100
    assert party.asked == ["bad"]
    clock.advance(5)
    assert asked.verdict("bad") is None
    assert party.asked == ["bad", "bad"]


def test_good_token_is_asked_about_each_time(clock: FakeClock) -> None:
    party = Party(good={"sub": "ada"})
    asked = verification(party, clock)

    assert [asked.verdict("good") for _ in range(2)] == [{"sub": "ada"}] * 2
    assert party.asked == ["good", "good"]


def test_many_threads_share_one_question(clock: FakeClock) -> None:
    party = Party(good={"sub": "ada"})
    party.hold = True
    asked = verification(party, clock)
    results = joined(asked, party, 8, "good")

    assert results == [{"sub": "ada"}] * 8
    assert party.asked == ["good"]


def test_too_many_questions_at_once_are_turned_away_soon(clock: FakeClock) -> None:
    party = Party()
    party.hold = True
    asked = verification(party, clock, RemoteVerificationLimits(places=2, patience=0.02))
    names = iter(f"t{number}" for number in range(2))
    threads, results = in_threads(2, lambda: asked.verdict(next(names)))
    while len(party.asked) < 2:
        time.sleep(0.005)

    before = time.monotonic()
    with pytest.raises(Unavailable, match="too many tokens at once"):
        asked.verdict("one more")
    assert time.monotonic() - before < 1
    party.release.set()
    for thread in threads:
        thread.join(timeout=60)
    assert results == [None, None]
    assert asked.verdict("one more") is None


def test_party_that_is_down_is_tried_once_per_pause(clock: FakeClock) -> None:
    party = Party(a=ServesNobody("down"), b={"sub": "bob"})
    asked = verification(party, clock)
    for _ in range(50):
        with pytest.raises(Unavailable, match="cannot be asked"):
            asked.verdict("a")
    with pytest.raises(Unavailable):
        asked.verdict("b")
    assert party.asked == ["a"]

    clock.advance(1)
    assert asked.verdict("b") == {"sub": "bob"}
    assert asked.verdict("b") == {"sub": "bob"}


def test_while_one_thread_tries_a_party_that_was_down_the_others_are_told_at_once(clock: FakeClock) -> None:
    party = Party(a=ServesNobody("down"), b={"sub": "bob"})
    asked = verification(party, clock)
    with pytest.raises(Unavailable):
        asked.verdict("a")
    clock.advance(1)
    party.hold = True
    party.is_asked.clear()
    threads, results = in_threads(1, lambda: asked.verdict("b"))
    assert party.is_asked.wait(timeout=60)

    with pytest.raises(Unavailable):
        asked.verdict("c")
    party.release.set()
    threads[0].join(timeout=60)

    assert results == [{"sub": "bob"}]
    assert party.asked == ["a", "b"]


def test_failure_over_one_token_does_not_close_the_door_to_others(clock: FakeClock) -> None:
    party = Party(poison=FetchFailed("status 500"), good={"sub": "ada"})
    asked = verification(party, clock)
    for _ in range(10):
        with pytest.raises(Unavailable):
            asked.verdict("poison")

    assert asked.verdict("good") == {"sub": "ada"}
    assert party.asked == ["poison", "good"]


def test_those_who_wait_for_a_question_that_fails_are_told(clock: FakeClock) -> None:
    party = Party(a=ServesNobody("down"))
    party.hold = True
    asked = verification(party, clock)
    results = joined(asked, party, 4, "a")

    assert len(results) == 4
    assert all("cannot be asked" in str(result) for result in results)
    assert party.asked == ["a"]


def test_refusals_are_bounded(clock: FakeClock) -> None:
    party = Party()
    asked = verification(party, clock, RemoteVerificationLimits(refusals=2))
    for token in ("a", "b", "c", "a"):
        asked.verdict(token)

    assert party.asked == ["a", "b", "c", "a"]
