import threading

import pytest
from django.db import InterfaceError

from lakewarden.http.recorder import Chore, Recorder


def test_chores_are_done_again_and_again_and_once_more_at_the_end() -> None:
    done = threading.Semaphore(0)
    at_the_end: list[int] = []
    recorder = Recorder([Chore("often", 0.001, done.release), Chore("seldom", 3600, lambda: at_the_end.append(1))])
    recorder.start()
    for _ in range(3):
        assert done.acquire(timeout=5)
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
        assert tried.acquire(timeout=5)
    recorder.stop(timeout_s=5)
    assert "calls could not be written: connection is closed" in caplog.text
