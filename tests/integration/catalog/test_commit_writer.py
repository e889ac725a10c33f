"""Commits that share their work: each caller's outcome is its own, and as if the commits had come one by one."""

from collections.abc import Iterator
from pathlib import Path
from threading import current_thread
from typing import Any

import pytest
from cachetools import LRUCache

from catalog.models import Tabular, TabularDocument
from catalog.services.commit_writer import bases, chains, swaps
from catalog.services.pointer import Stored
from lakewarden import config
from lakewarden.errors import BadRequest, CommitFailed, InvalidArgument
from lakewarden.events.models import OutboxEvent
from tenants.models import Warehouse
from tenants.services import projects
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import Recorded, eventually, local, metadata_files, own_properties, pointed_at
from tests.integration.catalog.together import NO_SUCH_UUID, Committing, kinds, together


def test_commits_to_one_table_are_chained(lake: Lake, base: Path, committing: Committing, recorded: Recorded) -> None:
    before = lake.load("orders")
    outcomes = together(*[committing.to("orders", set_properties(**{f"k{n}": "x"})) for n in range(5)])
    states = [each for each in outcomes if isinstance(each, Stored)]
    assert [each.tabular.version for each in states] == [2, 3, 4, 5, 6]
    after = lake.load("orders")
    assert own_properties(lake, "orders") == {f"k{n}" for n in range(5)}
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
    assert all(own_properties(lake, name) == {"a"} for name in names)


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
    assert own_properties(lake, "orders") == {"a", "c"}
    assert own_properties(lake, "bills") == {"e"}
    unchanged = outcomes[5]
    assert isinstance(unchanged, Stored)
    assert unchanged.tabular.metadata_location == lake.load("orders")["metadata-location"]
    assert recorded() == [*since, *["updateTable"] * 3]
    assert metadata_files(base) >= pointed_at(lake, "orders", "bills", "away")


def test_what_the_writer_does_not_handle_changes_nothing(
    lake: Lake, base: Path, committing: Committing, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = lake.load("orders")["metadata"]["location"]
    before = metadata_files(base)
    moving = committing.to("orders", {"action": "set-location", "location": f"{location}2"})
    long = committing.to("orders", set_properties(a="x" * 40_000))
    assert together(moving, long) == [None, None]
    monkeypatch.setattr(bases, "_LARGEST", 100)
    assert together(committing.to("orders", set_properties(a="b"))) == [None]
    assert metadata_files(base) == before


def test_large_documents_are_computed_in_threads(
    lake: Lake, committing: Committing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And each on the result of the one before, of which nothing has to be read or opened again."""
    names: set[str] = set()
    step = chains._step

    def noting(tip: Stored, asked: chains.Asked) -> chains.Step | None:
        names.add(current_thread().name.rpartition("_")[0])
        return step(tip, asked)

    monkeypatch.setattr(chains, "ON_LOOP", 0)
    monkeypatch.setattr(chains, "_step", noting)
    first = together(*[committing.to("orders", set_properties(**{f"k{n}": "x"})) for n in range(3)])
    wrong = committing.to("orders", {"action": "set-properties"})
    second = together(committing.to("orders", set_properties(k3="x")), wrong)
    assert kinds([*first, *second]) == [*[Stored] * 4, BadRequest]
    assert own_properties(lake, "orders") == {f"k{n}" for n in range(4)}
    assert names == {"commits"}


def test_a_state_is_kept_if_there_is_room_for_it(committing: Committing, monkeypatch: pytest.MonkeyPatch) -> None:
    (done,) = together(committing.to("orders", set_properties(a="b")))
    assert isinstance(done, Stored)
    assert done.opened is not None
    assert bases._COMMITTED[done.tabular.id] is done
    weight = len(done.document.content) + len(done.metadata) + done.opened.weight
    monkeypatch.setattr(bases, "_COMMITTED", LRUCache(4 * weight - 4, getsizeof=bases._weight))
    bases.remember(done)
    assert not bases._COMMITTED
    monkeypatch.setattr(bases, "_COMMITTED", LRUCache(4 * weight, getsizeof=bases._weight))
    bases.remember(done)
    assert bases._COMMITTED.currsize == weight


def test_a_right_that_was_changed_is_checked_again(lake: Lake, committing: Committing, warehouse: Warehouse) -> None:
    """Before the swap, not only before the base is read."""
    commits = [committing.to("orders", set_properties(a="b")), committing.to("bills", set_properties(a="b"))]
    projects.bump_epoch(warehouse.project_id)
    assert together(*commits) == [None, None]
    assert own_properties(lake, "orders") == own_properties(lake, "bills") == set()


def test_a_warehouse_that_is_inactive_by_now_is_left_to_the_ordinary_path(
    lake: Lake, committing: Committing, warehouse: Warehouse
) -> None:
    one = committing.to("orders", set_properties(a="b"))
    Warehouse.objects.filter(id=warehouse.id).update(status=Warehouse.Status.INACTIVE)
    assert together(one) == [None]


def test_files_that_fall_off_the_log_are_removed_where_the_table_asks_for_it(
    lake: Lake, base: Path, committing: Committing
) -> None:
    ask = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}
    together(committing.to("orders", set_properties(**ask)))
    for round_ in range(3):
        together(*[committing.to("orders", set_properties(**{f"k{round_}-{n}": "x"})) for n in range(4)])
    eventually(lambda: metadata_files(base) == pointed_at(lake, "orders", "bills"))
