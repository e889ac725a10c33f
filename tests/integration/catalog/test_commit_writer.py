"""Commits that share their work: each caller's outcome is its own, and as if the commits had come one by one."""

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from catalog.models import Tabular, TabularDocument
from catalog.services import pointer, tables
from catalog.services.commit_writer import bases, chains, file_threads, swaps
from catalog.services.commit_writer.writer import CommitWriter, commit
from catalog.services.document_cache import DOCUMENT_CACHE
from catalog.services.pointer import Commit, Stored
from lakewarden import config
from lakewarden.errors import BadRequest, CommitFailed, CommitStateUnknown, InvalidArgument, Unavailable
from lakewarden.events.change_recording import Change
from lakewarden.events.models import OutboxEvent
from lakewarden.idempotency.models import IdempotencyRecord
from lakewarden.storage.interface import StorageError
from lakewarden.storage.local import LocalStorage
from tenants.models import Warehouse
from tenants.services import projects
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import Recorded, eventually, local
from tests.integration.catalog.together import Committing, Outcome, on_the_loop, together

NO_SUCH_UUID = {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}


@pytest.fixture
def committing(lake: Lake) -> Committing:
    for name in ("orders", "bills"):
        assert lake.create_table(name).status == 200
    return Committing(lake.warehouse_id)


@pytest.fixture
def other(database_url: str, committing: Committing) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else's transaction, as of another replica; rolled back at the end."""
    with psycopg.connect(database_url) as connection:
        yield connection
        connection.rollback()


def kinds(outcomes: Sequence[Outcome]) -> list[Any]:
    return [None if each is None else type(each) for each in outcomes]


def own(lake: Lake, name: str) -> set[str]:
    """The properties of a table that the tests have set."""
    return {key for key in lake.load(name)["metadata"]["properties"] if not key.startswith("write.")}


def files(base: Path) -> set[Path]:
    return set(base.rglob("*.metadata.json"))


def pointed_at(lake: Lake, *names: str) -> set[Path]:
    """The files that tables name: their newest one, and those of their logs."""
    found = [lake.load(name) for name in names]
    log = {local(each["metadata-file"]) for state in found for each in state["metadata"]["metadata-log"]}
    return log | {local(state["metadata-location"]) for state in found}


def test_commits_to_one_table_are_chained(lake: Lake, base: Path, committing: Committing, recorded: Recorded) -> None:
    before = lake.load("orders")
    outcomes = together(*[committing.to("orders", set_properties(**{f"k{n}": "x"})) for n in range(5)])
    states = [each for each in outcomes if isinstance(each, Stored)]
    assert [each.tabular.version for each in states] == [2, 3, 4, 5, 6]
    after = lake.load("orders")
    assert own(lake, "orders") == {f"k{n}" for n in range(5)}
    assert after["metadata-location"] == states[-1].tabular.metadata_location
    log = [each["metadata-file"] for each in after["metadata"]["metadata-log"]]
    assert log == [before["metadata-location"], *[each.tabular.metadata_location for each in states[:-1]]]
    for each in states:
        assert local(each.tabular.metadata_location).read_bytes() == each.metadata
    row = Tabular.objects.get(name="orders")
    assert row.version == TabularDocument.objects.get(tabular=row).version == 6
    assert recorded() == ["updateTable"] * 5
    assert [each.data["version"] for each in OutboxEvent.objects.filter(type="updateTable").order_by("sequence")] == [
        2,
        3,
        4,
        5,
        6,
    ]


def test_commits_to_several_tables_are_one_statement(
    lake: Lake, committing: Committing, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    swap_on = swaps.swap_on

    async def counting(usable: Any, of: Any) -> Any:
        sizes.append(len(of))
        return await swap_on(usable, of)

    monkeypatch.setattr(swaps, "swap_on", counting)
    names = [f"t{n}" for n in range(8)]
    for name in names:
        lake.create_table(name)
    outcomes = together(*[committing.to(name, set_properties(a="b")) for name in names])
    assert kinds(outcomes) == [Stored] * 8
    assert sum(sizes) == 8
    assert len(sizes) < 8
    assert all(own(lake, name) == {"a"} for name in names)


@pytest.fixture
def short_values(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("LAKEWARDEN__CATALOG__MAX_PROPERTY_VALUE_BYTES", "4096")
        config.current.cache_clear()
        yield
    config.current.cache_clear()


def test_each_outcome_is_its_own(
    lake: Lake, base: Path, committing: Committing, recorded: Recorded, short_values: None
) -> None:
    """One is malformed, one stale, one too large, one on a dropped table; one changes nothing."""
    for name in ("dropped", "renamed"):
        lake.create_table(name)
    commits = [
        committing.to("orders", set_properties(a="1")),
        committing.to("orders", {"action": "set-properties"}),
        committing.to("orders", set_properties(b="1"), requirements=[NO_SUCH_UUID]),
        committing.to("orders", set_properties(large="x" * 5000)),
        committing.to("orders", set_properties(c="1")),
        committing.to("orders", set_properties()),
        committing.to("dropped", set_properties(d="1")),
        committing.to("renamed", set_properties(d="1")),
        committing.to("bills", set_properties(e="1")),
    ]
    # as another replica does it at this moment: it also changes rights, after which all are asked for again
    TabularDocument.objects.filter(tabular__name="dropped").delete()
    Tabular.objects.filter(name="dropped").delete()
    Tabular.objects.filter(name="renamed").update(name="away", name_key="away")
    since = recorded()
    outcomes = together(*commits)
    expected = [Stored, BadRequest, CommitFailed, InvalidArgument, Stored, Stored, None, None, Stored]
    assert kinds(outcomes) == expected
    assert own(lake, "orders") == {"a", "c"}
    assert own(lake, "bills") == {"e"}
    unchanged = outcomes[5]
    assert isinstance(unchanged, Stored)
    assert unchanged.tabular.metadata_location == lake.load("orders")["metadata-location"]
    assert recorded() == [*since, *["updateTable"] * 3]
    assert files(base) >= pointed_at(lake, "orders", "bills", "away")


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
    assert own(lake, "orders") == {f"k{n}" for n in range(10) if n != 3}
    assert recorded() == ["updateTable"] * 9
    eventually(lambda: files(base) == pointed_at(lake, "orders", "bills"))


def test_what_is_not_ordinary_is_not_the_writers(
    lake: Lake, base: Path, committing: Committing, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = lake.load("orders")["metadata"]["location"]
    before = files(base)
    moving = committing.to("orders", {"action": "set-location", "location": f"{location}2"})
    long = committing.to("orders", set_properties(a="x" * 40_000))
    assert together(moving, long) == [None, None]
    monkeypatch.setattr(chains, "LARGEST", 100)
    assert together(committing.to("orders", set_properties(a="b"))) == [None]
    assert files(base) == before


def test_many_updates_of_a_large_table_do_not_hold_up_the_loop(lake: Lake, committing: Committing) -> None:
    """Each of them may read all of the document: a few kilobytes of them took seconds."""
    key = {"key-id": "k", "encrypted-key-metadata": "x" * 20_000}
    assert lake.commit("orders", {"action": "upgrade-format-version", "format-version": 3}).status == 200
    assert lake.commit("orders", {"action": "add-encryption-key", "encryption-key": key}).status == 200
    few, many = ([{"action": "remove-encryption-key", "key-id": f"{number}"} for number in range(n)] for n in (3, 100))
    assert kinds(together(committing.to("orders", *few), committing.to("orders", *many))) == [Stored, None]
    assert lake.commit("orders", *many).status == 200


def test_a_right_that_was_changed_is_asked_for_again(lake: Lake, committing: Committing, warehouse: Warehouse) -> None:
    """Before the swap, not only before the base is read."""
    commits = [committing.to("orders", set_properties(a="b")), committing.to("bills", set_properties(a="b"))]
    projects.bump_epoch(warehouse.project_id)
    assert together(*commits) == [None, None]
    assert own(lake, "orders") == own(lake, "bills") == set()


def test_a_warehouse_that_is_inactive_by_now_is_left_to_the_ordinary_way(
    lake: Lake, committing: Committing, warehouse: Warehouse
) -> None:
    one = committing.to("orders", set_properties(a="b"))
    Warehouse.objects.filter(id=warehouse.id).update(status=Warehouse.Status.INACTIVE)
    assert together(one) == [None]


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
def test_a_race_lost_to_another_replica_is_run_again(
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
    assert own(lake, "orders") == {"k0", "k1", "k2", "other"}
    assert recorded() == ["updateTable"] * 5
    eventually(lambda: files(base) == pointed_at(lake, "orders", "bills"))


def test_two_processes_take_turns_on_one_table(
    lake: Lake, base: Path, committing: Committing, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do not throw away what they have written: only the first group of each may be written in vain."""
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
    assert own(lake, "orders") == {f"k{n}" for n in range(60)}
    assert recorded() == ["updateTable"] * 60
    assert sum(written) <= 60 + 3 * 10
    eventually(lambda: files(base) == pointed_at(lake, "orders", "bills"))


def test_a_refusal_is_never_by_a_state_that_was_not_committed(
    lake: Lake, committing: Committing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first commit of a chain drops out; what the second was refused for has then never been."""
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


def test_a_row_that_somebody_holds_keeps_only_its_own_commits_waiting(
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
    assert own(lake, "orders") == own(lake, "bills") == {"a"}


def test_a_row_that_is_held_for_too_long_is_said_to_be_so(
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
    assert own(lake, "orders") == set()
    eventually(lambda: files(base) == pointed_at(lake, "orders", "bills"))


def test_a_table_that_goes_while_its_row_is_waited_for_is_left_to_the_ordinary_way(
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


def test_a_key_that_was_used_takes_only_its_own_commit_out(
    lake: Lake, base: Path, committing: Committing, recorded: Recorded
) -> None:
    used, fresh = uuid4(), uuid4()
    assert kinds(together(committing.to("bills", set_properties(first="x"), key=used))) == [Stored]
    outcomes = together(
        committing.to("orders", set_properties(a="1")),
        committing.to("orders", set_properties(b="1"), key=used),
        committing.to("orders", set_properties(c="1"), key=fresh),
        committing.to("bills", set_properties(d="1")),
    )
    assert kinds(outcomes) == [Stored, None, Stored, Stored]
    assert own(lake, "orders") == {"a", "c"}
    assert recorded() == ["updateTable"] * 4
    kept = IdempotencyRecord.objects.get(key=fresh)
    assert (kept.principal_id, kept.object_id) == ("oidc~engine", str(Tabular.objects.get(name="orders").id))
    assert kept.data == OutboxEvent.objects.get(data__version=3, data__name="orders").data
    eventually(lambda: files(base) == pointed_at(lake, "orders", "bills"))


def test_one_key_twice_at_once_is_one_change(lake: Lake, committing: Committing, recorded: Recorded) -> None:
    key = uuid4()
    commits = [committing.to(name, set_properties(a="1"), key=key) for name in ("orders", "orders", "bills")]
    assert kinds(together(*commits)) == [Stored, None, None]
    assert recorded() == ["updateTable"]


def test_a_key_that_is_in_use_elsewhere_keeps_nobody_waiting(
    lake: Lake, committing: Committing, other: psycopg.Connection[Any]
) -> None:
    """Another replica is in the middle of the same request."""
    key = uuid4()
    other.execute(
        "select pg_advisory_xact_lock(1818978660, hashtext(%s || %s::uuid::text))", [committing.caller, str(key)]
    )
    other.execute(
        "insert into idempotency_record (principal_id, key, fingerprint, attempt, object_type, object_id, data, "
        "refusal_body, created_at) values (%s, %s, '', gen_random_uuid(), '', '', %s, '', now())",
        [committing.caller, key, Jsonb({})],
    )
    commits = [
        committing.to("orders", set_properties(a="1"), key=key),
        committing.to("orders", set_properties(b="1")),
        committing.to("bills", set_properties(c="1")),
    ]
    assert kinds(together(*commits)) == [None, Stored, Stored]
    assert own(lake, "orders") == {"b"}


@pytest.mark.parametrize("is_applied", [True, False])
def test_a_connection_that_is_lost_leaves_the_outcome_open_and_the_files_there(
    lake: Lake, base: Path, committing: Committing, monkeypatch: pytest.MonkeyPatch, *, is_applied: bool
) -> None:
    swap_on = swaps.swap_on

    async def losing(usable: Any, of: Any) -> Any:
        if is_applied:
            await swap_on(usable, of)
        raise psycopg.OperationalError("the connection is lost")

    before = files(base)
    with monkeypatch.context() as patch:
        patch.setattr(swaps, "swap_on", losing)
        outcomes = together(
            committing.to("orders", set_properties(a="1")),
            committing.to("orders", set_properties(b="1"), requirements=[NO_SUCH_UUID]),
            committing.to("bills", set_properties(c="1")),
        )
    assert kinds(outcomes) == [CommitStateUnknown, None, CommitStateUnknown]
    assert own(lake, "orders") == ({"a"} if is_applied else set())
    assert len(files(base) - before) == 2


def test_a_row_that_the_database_refuses_is_no_other_tables_misfortune(
    lake: Lake, base: Path, committing: Committing, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_of = pointer.change_of

    def refused(event: str, tabular: Tabular) -> Change:
        made = change_of(event, tabular)
        if tabular.name == "orders":
            made.data["name"] = "\x00"
        return made

    monkeypatch.setattr(swaps, "change_of", refused)
    commits = [committing.to(name, set_properties(a="1")) for name in ("orders", "bills")]
    assert kinds(together(*commits)) == [None, Stored]
    assert own(lake, "orders") == set()
    assert own(lake, "bills") == {"a"}
    eventually(lambda: files(base) == pointed_at(lake, "orders", "bills"))


def test_who_goes_away_takes_nothing_from_the_others(lake: Lake, committing: Committing) -> None:
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
    assert {"k0", "k3"} <= own(lake, "orders")


def test_a_storage_that_hangs_holds_up_its_own_tables_alone(
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


def test_a_flood_on_one_table_leaves_the_calm_ones_their_turn(lake: Lake, committing: Committing) -> None:
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
    # behind the group that was under way, and the one that their turn is in
    assert ended.index("calm") <= 64
    assert ended.index("same table") <= 64
    assert own(lake, "orders") == {*(f"k{n}" for n in range(150)), "calm"}


def test_files_that_fall_off_the_log_are_removed_where_the_table_asks_for_it(
    lake: Lake, base: Path, committing: Committing
) -> None:
    ask = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}
    together(committing.to("orders", set_properties(**ask)))
    for round_ in range(3):
        together(*[committing.to("orders", set_properties(**{f"k{round_}-{n}": "x"})) for n in range(4)])
    eventually(lambda: files(base) == pointed_at(lake, "orders", "bills"))


def any_commit(random: Random) -> tuple[list[Any], list[Any]]:
    """Requirements and updates, good and bad."""
    updates = [
        random.choice(
            [
                set_properties(**{random.choice("abc"): str(random.random())}),
                {"action": "remove-properties", "removals": [random.choice("abc")]},
                {"action": "upgrade-format-version", "format-version": random.choice([1, 2, 2, 3])},
                set_properties(),
                {"action": "set-properties"},
                {"action": "set-current-schema", "schema-id": random.choice([0, 7])},
                {"action": "assign-uuid", "uuid": "no uuid"},
            ]
        )
        for _ in range(random.choice([1, 1, 1, 2]))
    ]
    required: list[Any] = random.choice(
        [[], [], [NO_SUCH_UUID], [{"type": "assert-current-schema-id", "current-schema-id": 0}]]
    )
    return required, updates


@pytest.mark.parametrize("seed", range(6))
def test_a_chain_is_what_the_same_commits_are_one_after_another(
    lake: Lake, committing: Committing, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 the same commits each time
    monkeypatch.setattr(tables, "now_ms", lambda: 1_900_000_000_000)
    asked = [any_commit(random) for _ in range(25)]
    for name in ("chained", "alone"):
        lake.create_table(name)
    chained: list[Outcome] = []
    left = list(asked)
    while left:
        group, left = left[: (size := random.choice([1, 3, 9]))], left[size:]
        chained += together(*[committing.to("chained", *updates, requirements=each) for each, updates in group])
    alone: list[Outcome] = []
    for each, updates in asked:
        try:
            alone.append(pointer.commit(committing.to("alone", *updates, requirements=each)))
        except Exception as error:  # noqa: BLE001 the outcome
            alone.append(error)

    def plain(outcome: Outcome, name: str) -> Any:
        """Without what differs between any two tables, and any two files."""
        if not isinstance(outcome, Stored):
            return type(outcome), re.sub(r"[0-9a-f-]{36}", "uuid", str(outcome)).replace(name, "")
        metadata = outcome.metadata.decode()
        for number, file in enumerate(sorted({*log_of(metadata), outcome.tabular.metadata_location})):
            metadata = metadata.replace(file, f"file {number}")
        row = outcome.tabular
        return row.version, metadata.replace(str(row.uuid), "uuid").replace(row.location, "location")

    assert [plain(each, "chained") for each in chained] == [plain(each, "alone") for each in alone]


def log_of(metadata: str) -> list[str]:
    return [each["metadata-file"] for each in json.loads(metadata)["metadata-log"]]
