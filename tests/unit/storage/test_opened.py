from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from lakewarden.storage.interface import Storage, StorageBusy, StorageUnavailable
from lakewarden.storage.local import LocalStorage
from lakewarden.storage.opened import OpenedStorages


def made() -> Storage:
    return LocalStorage("/lake")


def test_a_storage_is_opened_once() -> None:
    opened = OpenedStorages[Storage](10)
    first = opened.get("a", made)
    assert opened.get("a", made) is first
    assert opened.get("b", made) is not first


def test_the_one_that_was_not_used_for_the_longest_time_is_forgotten() -> None:
    opened = OpenedStorages[Storage](2)
    first, second = opened.get("a", made), opened.get("b", made)
    opened.get("a", made)
    opened.get("c", made)
    assert opened.get("a", made) is first
    assert opened.get("b", made) is not second


def test_callers_at_the_same_time_wait_for_one_opening() -> None:
    opened, begin, calls = OpenedStorages[Storage](10), Barrier(5), []
    others_wait = Event()

    def opening() -> Storage:
        calls.append(1)
        others_wait.wait(60)
        return made()

    def ask() -> Storage:
        begin.wait(60)
        return opened.get("a", opening)

    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(ask) for _ in range(4)]
        begin.wait(60)
        others_wait.set()
        assert len({id(each.result(60)) for each in asked}) == 1
    assert calls == [1]


def test_a_failure_reaches_those_who_wait_and_is_not_remembered() -> None:
    opened, is_opening, may_fail = OpenedStorages[Storage](10), Event(), Event()

    def failing() -> Storage:
        is_opening.set()
        may_fail.wait(60)
        raise StorageUnavailable("Vault is sealed")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(opened.get, "a", failing)
        assert is_opening.wait(60)
        second = threads.submit(opened.get, "a", failing)
        may_fail.set()
        for each in (first, second):
            with pytest.raises(StorageUnavailable, match="sealed"):
                each.result(60)
    assert opened.get("a", made) is not None


def test_nobody_waits_for_ever_for_anothers_opening() -> None:
    opened, is_opening, go_on = OpenedStorages[Storage](10, patience_s=0.01), Event(), Event()

    def slow() -> Storage:
        is_opening.set()
        go_on.wait(60)
        return made()

    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(opened.get, "a", slow)
        assert is_opening.wait(60)
        with pytest.raises(StorageBusy, match="still being opened"):
            opened.get("a", made)
        go_on.set()
        # only once it is there: this caller waits for no longer than 10 ms
        assert first.result(60) is opened.get("a", made)
