"""Commits that share their work: a file, row, connection or caller that fails takes no other commit with it."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from catalog.models import Tabular
from catalog.services import pointer
from catalog.services.commit_writer import file_threads, swaps
from catalog.services.commit_writer.file_threads import NotWritten
from catalog.services.commit_writer.writer import commit
from catalog.services.pointer import Stored
from lakewarden import config
from lakewarden.errors import CommitStateUnknown, Unavailable
from lakewarden.events.change_recording import Change
from lakewarden.storage.interface import StorageError
from lakewarden.storage.local import LocalStorage
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import Recorded, eventually, metadata_files, own_properties, pointed_at
from tests.integration.catalog.together import NO_SUCH_UUID, Committing, Outcome, kinds, on_the_loop, together


def test_one_file_of_ten_that_is_refused_fails_its_own_commit_alone(
    lake: Lake, base: Path, committing: Committing, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = LocalStorage.write_new

    def refusing(self: LocalStorage, location: str, content: bytes) -> None:
        if b'"k3"' in content and b'"k4"' not in content and not refused:
            refused.append(location)
            raise StorageError("no")
        write(self, location, content)

    refused: list[str] = []
    monkeypatch.setattr(LocalStorage, "write_new", refusing)
    outcomes = together(*[committing.to("orders", set_properties(**{f"k{n}": "x"})) for n in range(10)])
    assert kinds(outcomes) == [*[Stored] * 3, Unavailable, *[Stored] * 6]
    assert own_properties(lake, "orders") == {f"k{n}" for n in range(10) if n != 3}
    assert recorded() == ["updateTable"] * 9
    eventually(lambda: metadata_files(base) == pointed_at(lake, "orders", "bills"))


def test_a_commit_is_never_refused_because_of_a_state_that_was_not_committed(
    lake: Lake, committing: Committing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first commit of a chain fails, so the state for which the second was refused never existed."""
    location = lake.load("orders")["metadata"]["location"]
    first = committing.to("orders", {"action": "upgrade-format-version", "format-version": 3})
    second = committing.to("orders", {"action": "upgrade-format-version", "format-version": 2}, set_properties(a="b"))
    monkeypatch.setattr(file_threads, "store", failing_once(file_threads.store))
    outcomes = together(first, second)
    assert kinds(outcomes) == [Unavailable, Stored]
    assert lake.load("orders")["metadata"]["format-version"] == 2
    assert lake.load("orders")["metadata"]["location"] == location


def failing_once(store: Any) -> Any:
    left = [1]

    async def storing(warehouse: Warehouse, written: Any) -> Any:
        if left:
            left.pop()
            return [Unavailable("The storage failed")] * len(written)
        return await store(warehouse, written)

    return storing


@pytest.mark.parametrize("is_applied", [True, False])
def test_a_lost_connection_leaves_the_outcome_unknown_and_keeps_the_files(
    lake: Lake, base: Path, committing: Committing, monkeypatch: pytest.MonkeyPatch, *, is_applied: bool
) -> None:
    swap_on = swaps.swap_on

    async def losing(usable: Any, of: Any) -> Any:
        if is_applied:
            await swap_on(usable, of)
        raise psycopg.OperationalError("the connection is lost")

    before = metadata_files(base)
    with monkeypatch.context() as patch:
        patch.setattr(swaps, "swap_on", losing)
        outcomes = together(
            committing.to("orders", set_properties(a="1")),
            committing.to("orders", set_properties(b="1"), requirements=[NO_SUCH_UUID]),
            committing.to("bills", set_properties(c="1")),
        )
    assert kinds(outcomes) == [CommitStateUnknown, None, CommitStateUnknown]
    assert own_properties(lake, "orders") == ({"a"} if is_applied else set())
    assert len(metadata_files(base) - before) == 2


def test_a_row_that_the_database_refuses_does_not_fail_other_tables(
    lake: Lake, base: Path, committing: Committing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(event: str, base: Stored, after: Tabular) -> Change:
        made = pointer.commit_of(event, base, after)
        if after.name == "orders":
            made.data["name"] = "\x00"
        return made

    monkeypatch.setattr(swaps, "commit_of", refused)
    commits = [committing.to(name, set_properties(a="1")) for name in ("orders", "bills")]
    assert kinds(together(*commits)) == [None, Stored]
    assert own_properties(lake, "orders") == set()
    assert own_properties(lake, "bills") == {"a"}
    eventually(lambda: metadata_files(base) == pointed_at(lake, "orders", "bills"))


def test_a_cancelled_caller_does_not_affect_the_others(lake: Lake, committing: Committing) -> None:
    commits = [committing.to("orders", set_properties(**{f"k{n}": "x"})) for n in range(4)]

    async def leaving() -> list[Outcome]:
        tasks = [asyncio.ensure_future(commit(each)) for each in commits]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0.001)
        tasks[2].cancel()
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    outcomes = on_the_loop(leaving)
    assert kinds(outcomes) == [Stored, asyncio.CancelledError, asyncio.CancelledError, Stored]
    assert {"k0", "k3"} <= own_properties(lake, "orders")


def test_a_storage_that_hangs_delays_only_its_own_tables(
    lake: Lake, committing: Committing, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, released = LocalStorage.write_new, threading.Event()
    stuck = lake.load("orders")["metadata"]["location"]

    def hanging(self: LocalStorage, location: str, content: bytes) -> None:
        if location.startswith(stuck):
            released.wait(20)
        write(self, location, content)

    monkeypatch.setattr(LocalStorage, "write_new", hanging)
    held, calm = committing.to("orders", set_properties(a="b")), committing.to("bills", set_properties(a="b"))

    async def both() -> list[Outcome]:
        waiting = asyncio.ensure_future(commit(held))
        try:
            return [await asyncio.wait_for(commit(calm), 10)]
        finally:
            released.set()
            await waiting

    assert kinds(on_the_loop(both)) == [Stored]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file has two seconds."""
    settings = config.current()
    storage = settings.storage.model_copy(update={"write_timeout_s": 2.0})
    monkeypatch.setattr(config, "current", lambda: settings.model_copy(update={"storage": storage}))


@pytest.mark.usefixtures("impatient")
def test_a_storage_that_hangs_keeps_the_commits_of_its_table_waiting_for_a_limited_time(
    lake: Lake, base: Path, committing: Committing, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They waited for ever, and so did all later commits to the table."""
    write, released = LocalStorage.write_new, threading.Event()

    def hanging(self: LocalStorage, location: str, content: bytes) -> None:
        if b'"a"' in content and b'"b"' not in content:
            released.wait(60)
        write(self, location, content)

    monkeypatch.setattr(LocalStorage, "write_new", hanging)
    try:
        first, second, third = (committing.to("orders", set_properties(**{name: "x"})) for name in "abc")
        outcomes = together(first, second)
        assert kinds(outcomes) == [NotWritten, Stored]
        assert "storage.write_timeout_s" in str(outcomes[0])
        assert kinds(together(third)) == [Stored]
    finally:
        released.set()
    assert own_properties(lake, "orders") == {"b", "c"}
    assert recorded() == ["updateTable"] * 2
    eventually(lambda: metadata_files(base) == pointed_at(lake, "orders", "bills"))
