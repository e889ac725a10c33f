import threading
import time

import pytest
from django.db import InterfaceError

from lakewarden.http import background_writer as module
from lakewarden.http.background_writer import BackgroundWriter, PeriodicWrite


def test_writes_are_done_again_and_again_and_once_more_at_the_end() -> None:
    done = threading.Semaphore(0)
    at_the_end: list[int] = []
    writer = BackgroundWriter(
        [PeriodicWrite("often", 0.001, done.release), PeriodicWrite("seldom", 3600, lambda: at_the_end.append(1))]
    )
    writer.start()
    for _ in range(3):
        assert done.acquire(timeout=60)
    assert at_the_end == []
    writer.stop(timeout_s=5)
    assert at_the_end == [1]
    assert not writer._thread.is_alive()


def test_a_database_that_is_down_is_logged_and_the_write_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    tried = threading.Semaphore(0)

    def fail() -> None:
        tried.release()
        raise InterfaceError("connection is closed")

    writer = BackgroundWriter([PeriodicWrite("calls", 0.001, fail)])
    writer.start()
    for _ in range(3):
        assert tried.acquire(timeout=60)
    writer.stop(timeout_s=5)
    assert "calls could not be written: connection is closed" in caplog.text


def test_an_unexpected_exception_does_not_end_the_writer(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST_PAUSE_S", 0.002)
    tried, others = threading.Semaphore(0), threading.Semaphore(0)
    is_broken = True

    def work() -> None:
        tried.release()
        if is_broken:
            raise KeyError("a defect")

    writer = BackgroundWriter([PeriodicWrite("calls", 0.001, work), PeriodicWrite("refusals", 0.001, others.release)])
    writer.start()
    for _ in range(50):
        assert tried.acquire(timeout=60)
        assert others.acquire(timeout=60)
    assert list(writer.failing()) == ["calls"]
    assert module.is_failing()
    assert caplog.text.count("calls could not be written: 'a defect'") == 1  # not each time
    assert "Traceback" in caplog.text
    is_broken = False
    deadline = time.monotonic() + 60
    while writer.failing() and time.monotonic() < deadline:
        assert tried.acquire(timeout=60)
    assert writer.failing() == {}
    assert not module.is_failing()
    writer.stop(timeout_s=5)
    assert not writer._thread.is_alive()


def test_pauses_become_longer_and_end_somewhere() -> None:
    def fail() -> None:
        raise InterfaceError("connection is closed")

    write = PeriodicWrite("calls", 1, fail)
    assert [write.perform() for _ in range(1100)][:6] == [2, 4, 8, 16, 30, 30]
    assert PeriodicWrite("seldom", 3600, fail).perform() == 3600


def test_what_is_to_be_finished_is_finished_at_the_end() -> None:
    done: list[str] = []
    writer = BackgroundWriter(
        [PeriodicWrite("refusals", 3600, lambda: done.append("due"), finish=lambda: done.append("all"))]
    )
    writer.start()
    writer.stop(timeout_s=5)
    assert done == ["all"]
