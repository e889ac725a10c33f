"""How often maintenance looks at a table: each look is some jobs of Spark's."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast
from uuid import uuid4

import pytest

from pipeline.maintenance import run
from pipeline.maintenance.ledger import Done, Ledger
from pipeline.maintenance.policy import KIND, Operation
from pipeline.maintenance.run import Warehouse
from pipeline.maintenance.survey import DATA, Count, Group, Snapshot, Survey

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = ("sales", "orders")
SMALL, FEW = Count(40, 40_000), Count(1, 40_000)
DAY_MS = 86_400_000


@dataclass
class Row:
    key: str
    value: str


@dataclass
class Spark:
    """Answers with the table's properties, and notes the procedures that were called."""

    called: list[str] = field(default_factory=list)

    def sql(self, statement: str) -> "Spark":
        if statement.startswith("CALL"):
            self.called.append(statement)
        return self

    def collect(self) -> list[Row]:
        return [Row(KIND, "changelog")]


@dataclass
class Locks:
    """A ledger in which each operation is due."""

    is_free: bool = True
    done: list[Done] = field(default_factory=list)

    def last(self, *_: object) -> Mapping[str, float]:
        return {}

    @contextmanager
    def locked(self, *_: object, **__: object) -> Iterator[bool]:
        yield self.is_free

    def record(self, done: Done) -> None:
        self.done.append(done)


@dataclass
class Scene:
    """`surveys` are what the table is found as, one after the other."""

    spark: Spark
    locks: Locks
    surveys: list[Survey]

    def run(self, *operations: Operation) -> list[Operation]:
        warehouse = Warehouse(cast("SparkSession", self.spark), "lake", uuid4(), cast("Ledger", self.locks))
        return [done.operation for done in warehouse.run([TABLE], only=operations)]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(Spark(), Locks(), [])

    def found(*_: object, **__: object) -> Survey:
        return made.surveys.pop(0)

    def silent(*_: object) -> Mapping[str, str]:
        return {}

    monkeypatch.setattr(run, "survey", found)
    monkeypatch.setattr(Warehouse, "_namespace_properties", silent)
    return made


def state(data: Count, *, snapshots: Sequence[Snapshot] = ()) -> Survey:
    groups = [Group(DATA, data, data)]
    heads = [snapshots[-1].id] if snapshots else []
    return Survey(False, groups, FEW, snapshots, heads, data)


def snapshots(*ages_days: int) -> list[Snapshot]:
    now = int(time.time() * 1000)
    return [
        Snapshot(number, number - 1 or None, now - age * DAY_MS, has_position=False)
        for number, age in enumerate(ages_days, start=1)
    ]


EACH = tuple(Operation)[:-1]


def test_a_table_in_order_is_looked_at_once_for_all_operations(scene: Scene) -> None:
    scene.surveys = [state(FEW)]
    assert scene.run(*EACH) == []
    assert scene.surveys == []


def test_what_is_known_after_an_operation_is_what_the_next_one_begins_with(scene: Scene) -> None:
    before, after = state(SMALL, snapshots=snapshots(9, 8)), state(FEW, snapshots=snapshots(9, 8, 0))
    scene.surveys = [before, after, state(FEW, snapshots=snapshots(0))]
    assert scene.run(*EACH) == [Operation.REWRITE_DATA_FILES, Operation.EXPIRE_SNAPSHOTS]
    assert scene.surveys == []
    rewritten, expired = scene.locks.done
    assert (rewritten.files_before, rewritten.files_after) == (40, 1)
    assert expired.reason == "2 snapshots may expire"


def test_orphans_are_removed_without_another_look(scene: Scene) -> None:
    scene.surveys = [state(FEW)]
    assert scene.run() == [Operation.REMOVE_ORPHAN_FILES]
    assert scene.surveys == []
    assert len(scene.spark.called) == 1


def test_a_table_that_a_flush_writes_to_is_looked_at_once(scene: Scene) -> None:
    scene.locks.is_free = False
    scene.surveys = [state(SMALL, snapshots=snapshots(9, 8))]
    assert scene.run() == []
    assert scene.surveys == []
    assert scene.spark.called == []
