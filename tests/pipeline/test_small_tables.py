"""Many small tables of a flush share a job of Spark, and are as if each had been written alone."""

import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from pyspark.sql import DataFrame, SparkSession

from pipeline.jobs import small_tables
from pipeline.jobs.data_files import NewFile, WrittenFiles
from pipeline.jobs.lake import Lake
from pipeline.jobs.metadata import Metadata
from pipeline.transforms import files as file_transforms
from tests.pipeline.durable_log import change
from tests.pipeline.flushing import DEADLINE_S, Stage
from tests.pipeline.processes import pipeline

BIG = 2**53 + 1
NAMES = [f"t{number:02d}" for number in range(12)]
"""More than are written at once."""
DAY_MS = 86_400_000


class Seen:
    """Which tables were written how, by their names."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.alone: Counter[str] = Counter()
        self.shared: Counter[str] = Counter()
        append, append_files = Lake.append, Lake.append_files

        def counted(lake: Lake, table: tuple[str, ...], rows: DataFrame) -> None:
            self.alone[table[-1]] += 1
            append(lake, table, rows)

        def counted_files(
            lake: Lake,
            table: tuple[str, ...],
            files: Sequence[NewFile],
            *,
            made_for: Metadata,
            summary: Mapping[str, str],
        ) -> Metadata:
            self.shared[table[-1]] += 1
            return append_files(lake, table, files, made_for=made_for, summary=summary)

        monkeypatch.setattr(Lake, "append", counted)
        monkeypatch.setattr(Lake, "append_files", counted_files)

    def forget(self) -> None:
        self.alone.clear()
        self.shared.clear()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


def jobs(spark: SparkSession) -> int:
    """Of Spark, since its start."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def spark_rows(stage: Stage, spark: SparkSession, name: str) -> list[Any]:
    rows = spark.table(f"{stage.follower.stream.catalog}.{stage.namespace}.{name}").orderBy("_cdc_sequence")
    return rows.collect()


def sequences(stage: Stage, name: str) -> list[int]:
    return [row["_cdc_sequence"] for row in stage.rows(name)]


def test_many_tables_have_their_events_once_after_a_few_jobs(
    stage: Stage, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_tables, "GROUP_TABLES", 25)
    names = [f"t{number:03d}" for number in range(60)]
    stage.follower.stop()
    for sequence in (1, 2, 3):
        stage.log.append([change(name, f"r{sequence}", sequence, {"v": sequence, "n": name}) for name in names])
    before = jobs(spark)
    with stage.follower.started():
        status = stage.flush()
    (flushed,) = status.flushes()
    # one finds the tables, and each group has one
    assert jobs(spark) - before <= 5
    assert (flushed.tables, flushed.events, len(flushed.snapshots), flushed.files) == (60, 180, 60, 60)
    for name in names:
        assert [(row["_cdc_sequence"], row["v"], row["n"]) for row in stage.rows(name)] == [
            (sequence, sequence, name) for sequence in (1, 2, 3)
        ]


EVERY_TYPE = Schema(
    NestedField(1, "i", IntegerType(), required=False),
    NestedField(2, "l", LongType(), required=True),
    NestedField(3, "f", FloatType(), required=False),
    NestedField(4, "price", DecimalType(9, 2), required=False),
    NestedField(5, "exact", DecimalType(38, 4), required=False),
    NestedField(6, "day", DateType(), required=False),
    NestedField(7, "at", TimestamptzType(), required=False),
    NestedField(8, "local", TimestampType(), required=False),
    NestedField(9, "id", UUIDType(), required=False),
    NestedField(10, "raw", BinaryType(), required=False),
    NestedField(11, "two", FixedType(2), required=False),
    NestedField(12, "tags", ListType(13, StringType(), element_required=False), required=False),
    NestedField(14, "counts", MapType(15, StringType(), 16, LongType(), value_required=False), required=False),
    NestedField(
        17, "home", StructType(NestedField(18, "zip", LongType(), required=True), NestedField(19, "a.b", StringType()))
    ),
    NestedField(20, "with.dot", LongType(), required=False),
)
FULL = {
    "i": -5,
    "l": BIG,
    "f": 0.5,
    "price": "1234567.89",
    "exact": "-1234567890123456789012345678901234.5678",
    "day": "1969-12-31",
    "at": "2026-01-31T10:00:00.123456+02:00",
    "local": "1960-01-31T10:00:00.5",
    "id": "550e8400-e29b-41d4-a716-446655440000",
    "raw": "AAH/",
    "two": "AAE=",
    "tags": ["a", None, ""],
    "counts": {"x": 1, "y": None},
    "home": {"zip": 8010, "a.b": "é"},
    "with.dot": 7,
    "new": {"deep": [{"x": 1.5}]},
    "flag": True,
    "text": "x" * 40,
}


def test_rows_and_statistics_are_those_of_tables_that_are_written_alone(
    stage: Stage, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seen: Seen
) -> None:
    for name in ("t00", "t01"):
        for suffix in ("", "_alone"):
            stage.catalog.create_table((stage.namespace, name + suffix), EVERY_TYPE)

    def append(suffix: str) -> None:
        events = [
            event
            for name in NAMES
            for event in (
                change(name + suffix, "a", 1, FULL, metadata={"lsn": 7, "none": None}),
                change(name + suffix, "b", 2, {"l": 2, "f": None}),
                change(name + suffix, "c", 3, FULL | {"l": -(2**63), "price": "-0.01", "tags": []}, operation="DELETE"),
            )
        ]
        stage.log.append(events)
        stage.flush()

    append("")
    assert (sum(seen.shared.values()), sum(seen.alone.values())) == (12, 0)
    monkeypatch.setattr(small_tables, "MOST_ROWS", 0)
    append("_alone")
    assert (sum(seen.shared.values()), sum(seen.alone.values())) == (12, 12)
    for name in ("t00", "t01", "t02"):
        rows = stage.rows(name)
        assert rows == stage.rows(f"{name}_alone")
        assert spark_rows(stage, spark, name) == spark_rows(stage, spark, f"{name}_alone")
        assert [row["l"] for row in rows] == [BIG, 2, -(2**63)]
        assert rows[0]["home"] == {"zip": 8010, "a.b": "é"}
        assert dict(rows[0]["_cdc_metadata"]) == {"lsn": "7", "none": None}
        made, expected = (statistics(stage, table) for table in (name, f"{name}_alone"))
        assert made == expected
        assert "l" in made
        where = "l < -9000000000000000000"
        assert [row["_cdc_sequence"] for row in stage.table(name).scan(row_filter=where).to_arrow().to_pylist()] == [3]
        assert list(stage.table(name).scan(row_filter=f"l > {BIG}").plan_files()) == []
        found = spark.table(f"{stage.follower.stream.catalog}.{stage.namespace}.{name}").where(f"l = {BIG}")
        assert [row["_cdc_sequence"] for row in found.collect()] == [1]


def statistics(stage: Stage, name: str) -> dict[str, tuple[Any, ...]]:
    """Counts and bounds of each column in a table's only file."""
    table = stage.table(name)
    (task,) = table.scan().plan_files()
    file = task.file
    assert file.record_count == 3
    found = (file.value_counts, file.null_value_counts, file.lower_bounds, file.upper_bounds)
    return {
        table.schema().find_column_name(number) or "": tuple(each.get(number) for each in found)
        for number in file.value_counts
    }


def test_days_are_partitions(stage: Stage, spark: SparkSession, seen: Seen) -> None:
    midnight = 1_764_028_800_000
    assert midnight % DAY_MS == 0
    for name in NAMES:
        stage.log.append(
            [change(name, "r", n, {"v": n}, timestamp=midnight - n + shift) for n, shift in enumerate((-1, 0, 1), 1)]
        )
    stage.flush()
    assert len(seen.shared) == len(NAMES)
    parts = stage.table("t05").inspect.partitions().to_pylist()
    assert sorted((str(each["partition"]["_cdc_timestamp_day"]), each["record_count"]) for each in parts) == [
        ("2025-11-24", 1),
        ("2025-11-25", 2),
    ]
    table = f"{stage.follower.stream.catalog}.{stage.namespace}.t05"
    assert spark.table(table).where("_cdc_timestamp < timestamp '2025-11-25 00:00:00Z'").count() == 1
    assert sequences(stage, "t05") == [1, 2, 3]


def test_what_a_crash_left_is_written_and_what_it_did_not_leave_is_not(stage: Stage, seen: Seen) -> None:
    """The process ended after the commits of half of the tables."""
    stage.log.append([change(name, "a", 1, {"v": 1}) for name in NAMES])
    stage.flush()
    before = stage.log.positions()[1]
    stage.log.append([change(name, "a", 2, {"v": "no number"} if name == "t00" else {"v": 2}) for name in NAMES])
    stage.flush()
    stage.follower.stop()
    for name in NAMES[6:]:
        stage.catalog.drop_table((stage.namespace, name))
    stage.catalog.drop_table((stage.namespace, "t00__rejected"))
    stage.log.forget_flushes(after=before)
    stage.log.append([change(name, "a", 3, {"v": 3}) for name in NAMES[3:9]])
    seen.forget()
    stage.follower.start()
    stage.flush()
    for number, name in enumerate(NAMES):
        expected = [1, 2] if number < 6 else [2]
        assert sequences(stage, name) == expected + ([3] if 3 <= number < 9 else [])
    assert sequences(stage, "t00__rejected") == [2]
    assert seen.alone.keys() == {"t00__rejected"}


def test_what_does_not_fit_is_beside_its_table(stage: Stage, seen: Seen) -> None:
    stage.log.append([change(name, "a", 1, {"v": 1}) for name in NAMES])
    stage.flush()
    stage.log.append([change(name, "a", 2, {"v": "no number"} if name in NAMES[:2] else {"v": 2}) for name in NAMES])
    stage.flush()
    assert [row["value"] for name in NAMES[:2] for row in stage.rows(f"{name}__rejected")] == ['"no number"'] * 2
    assert [row["v"] for row in stage.rows("t00")] == [1, None]
    assert seen.alone.keys() == {"t00__rejected", "t01__rejected"}


def test_change_logs_share_a_job_and_their_mirrors_are_merged(stage: Stage, seen: Seen) -> None:
    stage.policy("both")
    stage.log.append([change(name, "a", 1, {"v": 1}) for name in NAMES])
    stage.log.append([change(name, "a", 2, {"v": 2}, operation="UPDATE") for name in NAMES])
    stage.flush()
    assert seen.shared.keys() == set(NAMES)
    for name in NAMES:
        assert sequences(stage, name) == [1, 2]
        assert stage.mirror(f"{name}_current") == {"a": {"v": 2}}


def test_a_table_that_is_not_as_the_pipeline_makes_them_is_written_alone(stage: Stage, seen: Seen) -> None:
    schema = Schema(NestedField(1, "v", LongType(), required=False))
    by_value = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "v"))
    stage.catalog.create_table((stage.namespace, "t00"), schema, partition_spec=by_value)
    for name, key, value in (
        ("t01", "write.format.default", "orc"),
        ("t02", "write.parquet.bloom-filter-enabled.column.v", "true"),
    ):
        stage.catalog.create_table((stage.namespace, name), schema, properties={key: value})
    stage.catalog.create_table((stage.namespace, "t03"), schema)
    stage.log.append([change(name, "a", 1, {"v": 1}) for name in NAMES])
    stage.flush()
    for name in NAMES:
        assert [row["v"] for row in stage.rows(name)] == [1]
    assert seen.alone.keys() == {"t00", "t01", "t02"}
    assert seen.shared.keys() == set(NAMES[3:])


def test_few_tables_and_large_ones_are_written_as_before(stage: Stage, seen: Seen) -> None:
    stage.log.append([change(name, "a", 1, {"v": 1}) for name in NAMES[:8]])
    stage.flush()
    assert not seen.shared
    rows = [change("t00", "a", number, {"v": number}) for number in range(2, 1200)]
    stage.log.append([*rows, *(change(name, "a", 2, {"v": 2}) for name in NAMES[1:])])
    stage.flush()
    assert seen.shared.keys() == set(NAMES[1:])
    assert len(stage.rows("t00")) == 1199


def drop(stage: Stage) -> None:
    stage.catalog.drop_table((stage.namespace, "t05"))


def replace(stage: Stage) -> None:
    drop(stage)
    stage.catalog.create_table((stage.namespace, "t05"), Schema(NestedField(1, "v", StringType(), required=False)))


def remove_column(stage: Stage) -> None:
    with stage.table("t05").update_schema() as update:
        update.delete_column("v")


def change_partitions(stage: Stage) -> None:
    with stage.table("t05").update_spec() as update:
        update.add_identity("v")


@pytest.mark.parametrize(
    ("action", "values"),
    [(drop, [2]), (replace, [None]), (remove_column, [None, 2]), (change_partitions, [1, 2])],
    ids=["dropped", "replaced", "a column removed", "other partitions"],
)
def test_another_engine_changes_a_table_before_its_files_are_there(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    seen: Seen,
    action: Callable[[Stage], None],
    values: list[int | None],
) -> None:
    stage.log.append([change(name, "a", 1, {"v": 1}) for name in NAMES])
    stage.flush()
    seen.forget()
    counted, waiting = Lake.append_files, [action]

    def append_files(lake: Lake, table: tuple[str, ...], files: Sequence[NewFile], **given: Any) -> Metadata:
        if table[-1] == "t05" and waiting:
            waiting.pop()(stage)
        return counted(lake, table, files, **given)

    monkeypatch.setattr(Lake, "append_files", append_files)
    stage.log.append([change(name, "a", 2, {"v": 2}) for name in NAMES])
    stage.flush()
    assert not waiting
    assert [row["v"] for row in stage.rows("t05")] == values
    assert seen.alone.keys() - {"t05__rejected"} == {"t05"}
    assert all(sequences(stage, name) == [1, 2] for name in NAMES if name != "t05")


def test_a_commit_of_which_nobody_knows_whether_it_took_place_is_looked_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, seen: Seen
) -> None:
    counted, waiting = Lake.append_files, {"t03": True, "t04": False}

    def append_files(lake: Lake, table: tuple[str, ...], files: Sequence[NewFile], **given: Any) -> Metadata:
        took_place = waiting.pop(table[-1], None)
        if took_place is not None:
            if took_place:
                counted(lake, table, files, **given)
            raise Py4JError("no answer")
        return counted(lake, table, files, **given)

    monkeypatch.setattr(Lake, "append_files", append_files)
    stage.log.append([change(name, "a", 1, {"v": 1}) for name in NAMES])
    stage.flush()
    assert not waiting
    assert all(sequences(stage, name) == [1] for name in NAMES)
    assert len(stage.table("t03").metadata.snapshots) == 1
    assert not seen.alone


def test_files_are_removed_after_a_failure_unless_they_may_be_in_use(stage: Stage, spark: SparkSession) -> None:
    stage.log.append([change("t", "a", 1, {"v": 1})])
    stage.flush()
    (task,) = stage.table("t").scan().plan_files()
    with stage.table("t").io.new_input(task.file.file_path).open() as stream:
        content = stream.read()
    lake = Lake(spark, stage.follower.stream.catalog, stage.follower.stream.warehouse.log_id)
    jvm: Any = spark._jvm
    errors = jvm.org.apache.iceberg.exceptions
    cause = jvm.java.lang.RuntimeException("no answer")
    arguments = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 0)  # type: ignore[union-attr]
    for error, is_kept in (
        (errors.CommitStateUnknownException(cause), True),
        (cause, True),
        (errors.CommitFailedException("conflict", arguments), False),
    ):
        table = lake._java_table((stage.namespace, "t"))
        written = WrittenFiles(jvm, table)
        path = written.write(NewFile(content, 20_000)).location()
        with pytest.raises(Py4JJavaError), written.removed_after_failure(only_cleanable=True):
            raise Py4JJavaError("failed", error)
        assert table.io().newInputFile(path).exists() is is_kept


def test_a_table_that_cannot_be_written_stops_no_other(stage: Stage, seen: Seen) -> None:
    unusable = Schema(NestedField(1, "_cdc_timestamp", BooleanType(), required=False))
    stage.catalog.create_table((stage.namespace, "t00"), unusable)
    stage.log.append([change(name, "a", 1, {"v": 1}) for name in NAMES])
    stage.await_error("_cdc_timestamp")
    assert all(sequences(stage, name) == [1] for name in NAMES[1:])
    stage.catalog.drop_table((stage.namespace, "t00"))
    stage.flush()
    assert all(sequences(stage, name) == [1] for name in NAMES)
    assert "t01" not in seen.alone


def test_a_job_that_fails_holds_up_nobody_for_ever(stage: Stage, monkeypatch: pytest.MonkeyPatch, seen: Seen) -> None:
    monkeypatch.setattr(file_transforms, "FILES_SCHEMA", "wrong int")
    stage.log.append([change(name, "a", 1, {"v": 1}) for name in NAMES])
    stage.flush()
    assert seen.alone.keys() == set(NAMES)
    assert all(sequences(stage, name) == [1] for name in NAMES)


@pytest.mark.timeout(900)
def test_a_pipeline_that_is_killed_between_two_commits_loses_and_doubles_nothing(stage: Stage) -> None:
    names = [f"t{number:03d}" for number in range(60)]
    stage.log.append([change(name, "a", 1, {"v": 1}) for name in names])
    stage.flush()
    stage.follower.stop()
    stage.log.append([change(name, "a", 2, {"v": 2}) for name in names])
    with pipeline(stage) as process:
        await_snapshot(stage, names[5], process, sequence=2)
        process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_S)
    assert stage.log.positions()[1] < stage.log.positions()[0]
    done = [name for name in names if newest(stage, name) == 2]
    assert 0 < len(done) < len(names)
    stage.follower.start()
    stage.flush()
    assert all(sequences(stage, name) == [1, 2] for name in names)


def newest(stage: Stage, name: str) -> int:
    """The last sequence in the table; 0 if there is none."""
    if not stage.catalog.table_exists((stage.namespace, name)):
        return 0
    found = stage.rows(name)
    return int(found[-1]["_cdc_sequence"]) if found else 0


def await_snapshot(stage: Stage, name: str, process: Any, *, sequence: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while newest(stage, name) < sequence:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.1)
