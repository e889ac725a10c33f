import threading
import time

import pytest
from django.db import InterfaceError

from lakewarden.http import recorder as module
from lakewarden.http.recorder import Chore, Recorder


def test_chores_are_done_again_and_again_and_once_more_at_the_end() -> None:
    done = threading.Semaphore(0)
    at_the_end: list[int] = []
    recorder = Recorder([Chore("often", 0.001, done.release), Chore("seldom", 3600, lambda: at_the_end.append(1))])
    recorder.start()
    for _ in range(3):
        assert done.acquire(timeout=60)
    assert at_the_end == []
    recorder.stop(timeout_s=5)
    assert at_the_end == [1]
    assert not recorder._thread.is_alive()


def test_a_database_that_is_down_is_logged_and_the_chore_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    tried = threading.Semaphore(0)

    def fail() -> None:
        tried.release()
        raise InterfaceError("connection is closed")

    recorder = Recorder([Chore("calls", 0.001, fail)])
    recorder.start()
    for _ in range(3):
        assert tried.acquire(timeout=60)
    recorder.stop(timeout_s=5)
    assert "calls could not be written: connection is closed" in caplog.text


def test_an_unexpected_exception_does_not_end_the_recorder(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST_PAUSE_S", 0.002)
    tried, others = threading.Semaphore(0), threading.Semaphore(0)
    is_broken = True

    def work() -> None:
        tried.release()
        if is_broken:
            raise KeyError("a defect")

    recorder = Recorder([Chore("calls", 0.001, work), Chore("refusals", 0.001, others.release)])
    recorder.start()
    for _ in range(50):
        assert tried.acquire(timeout=60)
        assert others.acquire(timeout=60)
    assert list(recorder.failing()) == ["calls"]
    assert module.is_failing()
    assert caplog.text.count("calls could not be written: 'a defect'") == 1  # not each time
    assert "Traceback" in caplog.text
    is_broken = False
    deadline = time.monotonic() + 60
    while recorder.failing() and time.monotonic() < deadline:
        assert tried.acquire(timeout=60)
    assert recorder.failing() == {}
    assert not module.is_failing()
    recorder.stop(timeout_s=5)
    assert not recorder._thread.is_alive()


def test_pauses_become_longer_and_end_somewhere() -> None:
    def fail() -> None:
        raise InterfaceError("connection is closed")

    chore = Chore("calls", 1, fail)
    assert [chore.perform() for _ in range(1100)][:6] == [2, 4, 8, 16, 30, 30]
    assert Chore("seldom", 3600, fail).perform() == 3600


def test_what_is_to_be_finished_is_finished_at_the_end() -> None:
    done: list[str] = []
    recorder = Recorder([Chore("refusals", 3600, lambda: done.append("due"), finish=lambda: done.append("all"))])
    recorder.start()
    recorder.stop(timeout_s=5)
    assert done == ["all"]
