"""Commits that share their work, while others change or lock the same tables."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from catalog.services import pointer
from catalog.services.commit_writer import bases, file_threads
from catalog.services.commit_writer.writer import CommitWriter, commit
from catalog.services.document_cache import DOCUMENT_CACHE
from catalog.services.pointer import Commit, Stored
from lakewarden.errors import Unavailable
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import Recorded, eventually, metadata_files, own_properties, pointed_at
from tests.integration.catalog.together import Committing, Outcome, kinds, on_the_loop, together


def in_the_meantime(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Call `do` once, when the first files of a group are written and its pointer is to be moved."""
    store, todo = file_threads.store, [do]

    async def storing(warehouse: Warehouse, written: Any) -> Any:
        results = await store(warehouse, written)
        if todo:
            await asyncio.to_thread(todo.pop())
        return results

    monkeypatch.setattr(file_threads, "store", storing)


@pytest.mark.parametrize("is_warm", [True, False])
def test_a_race_lost_to_another_replica_is_retried(
    lake: Lake,
    base: Path,
    committing: Committing,
    recorded: Recorded,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_warm: bool,
) -> None:
    commits = [committing.to("orders", set_properties(**{f"k{n}": "x"})) for n in range(3)]
    others = committing.to("orders", set_properties(other="x"))
    if not is_warm:
        monkeypatch.setattr(DOCUMENT_CACHE, "find", lambda *_: None)
    in_the_meantime(monkeypatch, lambda: pointer.commit(others))
    assert kinds(together(*commits, committing.to("bills", set_properties(a="b")))) == [Stored] * 4
    assert own_properties(lake, "orders") == {"k0", "k1", "k2", "other"}
    assert recorded() == ["updateTable"] * 5
    eventually(lambda: metadata_files(base) == pointed_at(lake, "orders", "bills"))


def test_two_processes_take_turns_on_one_table(
    lake: Lake, base: Path, committing: Committing, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They rarely write files in vain: only the first group of each may."""
    written: list[int] = []
    store = file_threads.store

    async def counting(warehouse: Warehouse, of: Any) -> Any:
        written.append(len(of))
        return await store(warehouse, of)

    monkeypatch.setattr(file_threads, "store", counting)
    writers = CommitWriter(), CommitWriter()
    commits = [committing.to("orders", set_properties(**{f"k{n}": "x"})) for n in range(60)]

    async def both() -> list[Outcome]:
        outcomes: list[Outcome] = []
        for at in range(0, 60, 20):
            asked = [writers[n % 2].commit(each) for n, each in enumerate(commits[at : at + 20])]
            outcomes += await asyncio.gather(*asked, return_exceptions=True)
        return outcomes

    assert kinds(on_the_loop(both)) == [Stored] * 60
    assert own_properties(lake, "orders") == {f"k{n}" for n in range(60)}
    assert recorded() == ["updateTable"] * 60
    assert sum(written) <= 60 + 3 * 10
    eventually(lambda: metadata_files(base) == pointed_at(lake, "orders", "bills"))


def test_a_locked_row_delays_only_the_commits_to_its_own_table(
    lake: Lake, committing: Committing, other: psycopg.Connection[Any]
) -> None:
    held, calm = committing.to("orders", set_properties(a="b")), committing.to("bills", set_properties(a="b"))
    other.execute("select 1 from tabular where name = 'orders' for update")

    async def both() -> tuple[bool, list[Outcome]]:
        waiting = asyncio.gather(commit(held), return_exceptions=True)
        await asyncio.wait_for(commit(calm), 10)
        was_waiting = not waiting.done()
        await asyncio.to_thread(other.rollback)
        return was_waiting, list(await asyncio.wait_for(waiting, 10))

    was_waiting, outcomes = on_the_loop(both)
    assert was_waiting
    assert kinds(outcomes) == [Stored]
    assert own_properties(lake, "orders") == own_properties(lake, "bills") == {"a"}


def test_a_row_that_is_locked_for_too_long_is_answered_with_503(
    lake: Lake, base: Path, committing: Committing, other: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = bases.locked

    async def impatient(usable: Any, known: Any) -> Any:
        await usable.execute("set local lock_timeout = '200ms'")
        return await locked(usable, known)

    monkeypatch.setattr(bases, "locked", impatient)
    one = committing.to("orders", set_properties(a="b"))
    other.execute("select 1 from tabular where name = 'orders' for update")
    (outcome,) = together(one)
    assert isinstance(outcome, Unavailable)
    assert "nothing was changed" in outcome.message
    other.rollback()
    assert own_properties(lake, "orders") == set()
    eventually(lambda: metadata_files(base) == pointed_at(lake, "orders", "bills"))


def test_a_table_that_is_renamed_while_its_row_is_awaited_is_left_to_the_ordinary_path(
    lake: Lake, committing: Committing, other: psycopg.Connection[Any]
) -> None:
    one = committing.to("orders", set_properties(a="b"))
    other.execute("update tabular set name = 'gone', name_key = 'gone' where name = 'orders'")

    async def waiting() -> Outcome:
        task = asyncio.ensure_future(commit(one))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(other.commit)
        return await asyncio.wait_for(task, 10)

    assert on_the_loop(waiting) is None


def test_a_flood_on_one_table_does_not_delay_other_callers_for_long(lake: Lake, committing: Committing) -> None:
    flood = [
        replace(committing, caller="oidc~admin").to("orders", set_properties(**{f"k{n}": "x"})) for n in range(150)
    ]
    same_table = committing.to("orders", set_properties(calm="x"))
    calm = committing.to("bills", set_properties(calm="x"))
    ended: list[str] = []

    async def ending(name: str, one: Commit) -> None:
        await commit(one)
        ended.append(name)

    async def everybody() -> None:
        waiting = [asyncio.ensure_future(ending("flood", each)) for each in flood]
        await asyncio.sleep(0)
        await asyncio.gather(ending("same table", same_table), ending("calm", calm), *waiting)

    on_the_loop(everybody)
    assert Counter(ended) == {"flood": 150, "same table": 1, "calm": 1}
    # behind the group in progress, and the group that they are part of
    assert ended.index("calm") <= 64
    assert ended.index("same table") <= 64
    assert own_properties(lake, "orders") == {*(f"k{n}" for n in range(150)), "calm"}
