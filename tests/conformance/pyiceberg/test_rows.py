"""Rows that PyIceberg writes through the catalog are the rows that it reads."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, UUIDType

PAIRS = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType(), required=False),
    identifier_field_ids=[1],
)
BY_NAME = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])


def pairs(*rows: tuple[int, str | None]) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "name": name} for key, name in rows], schema=ARROW)


def read(table: Table, **scan: Any) -> list[tuple[int, str | None]]:
    return sorted((row["id"], row["name"]) for row in table.scan(**scan).to_arrow().to_pylist())


@pytest.fixture
def table(catalog: RestCatalog, namespace: str) -> Table:
    created: Table = catalog.create_table((namespace, "pairs"), PAIRS, None, BY_NAME)
    created.append(pairs((1, "a"), (2, "b"), (3, None)))
    return created


def test_every_type_comes_back_as_it_was_written(catalog: RestCatalog, namespace: str) -> None:
    rows = pa.table(
        {
            "truth": pa.array([True, None]),
            "small": pa.array([-(2**31), None], pa.int32()),
            "large": pa.array([2**63 - 1, -(2**63)], pa.int64()),
            "single": pa.array([1.5, None], pa.float32()),
            "double": pa.array([1e308, -0.0], pa.float64()),
            "exact": pa.array([Decimal("12345678901234567890.123456789"), None], pa.decimal128(38, 9)),
            "day": pa.array([date(1969, 12, 31), None], pa.date32()),
            "clock": pa.array([time(23, 59, 59, 999999), None], pa.time64("us")),
            "local": pa.array([datetime(1900, 1, 1, 0, 0, 0, 1), None], pa.timestamp("us")),  # noqa: DTZ001
            "instant": pa.array([datetime(2026, 11, 21, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "text": pa.array(["Käse 🧀", ""], pa.string()),
            "bytes": pa.array([b"\x00\xff", None], pa.binary()),
            "list": pa.array([["a", None], []], pa.list_(pa.string())),
            "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "struct": pa.array([{"x": 1, "y": {"z": "deep"}}, None]),
        }
    )
    table = catalog.create_table((namespace, "types"), rows.schema)
    table.append(rows)
    read_back = catalog.load_table((namespace, "types")).scan().to_arrow()
    assert read_back.select(rows.column_names).to_pylist() == rows.to_pylist()


def test_uuids_come_back_as_they_were_written(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "u"), Schema(NestedField(1, "u", UUIDType(), required=False)))
    value = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
    table.append(pa.table({"u": pa.array([value.bytes], pa.binary(16))}))
    (read_back,) = table.scan().to_arrow()["u"].to_pylist()
    assert read_back in (value, value.bytes)


def test_append_adds_to_what_is_there(table: Table) -> None:
    table.append(pairs((4, "a")))
    assert read(table) == [(1, "a"), (2, "b"), (3, None), (4, "a")]
    assert read(table, row_filter="name = 'a'") == [(1, "a"), (4, "a")]
    assert table.scan(selected_fields=("id",), row_filter="id >= 3").to_arrow().column_names == ["id"]


def test_overwrite_replaces_all_or_what_a_filter_names(table: Table) -> None:
    table.overwrite(pairs((9, "a")), overwrite_filter="name = 'a'")
    assert read(table) == [(2, "b"), (3, None), (9, "a")]
    table.overwrite(pairs((7, "z")))
    assert read(table) == [(7, "z")]


def test_dynamic_overwrite_replaces_only_the_partitions_of_the_rows(table: Table) -> None:
    table.dynamic_partition_overwrite(pairs((8, "b")))
    assert read(table) == [(1, "a"), (3, None), (8, "b")]


def test_delete_removes_whole_files_and_single_rows(table: Table) -> None:
    table.append(pairs((4, "a"), (5, "a")))
    table.delete("id = 4")
    assert read(table) == [(1, "a"), (2, "b"), (3, None), (5, "a")]
    table.delete("name = 'a'")
    assert read(table) == [(2, "b"), (3, None)]


def test_upsert_updates_known_keys_and_inserts_the_others(table: Table) -> None:
    result = table.upsert(pairs((2, "changed"), (3, None), (4, "new")))
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert read(table) == [(1, "a"), (2, "changed"), (3, None), (4, "new")]


def test_files_of_another_table_can_be_added(catalog: RestCatalog, namespace: str, table: Table) -> None:
    copy = catalog.create_table((namespace, "copy"), PAIRS, None, BY_NAME)
    copy.add_files(table.inspect.files()["file_path"].to_pylist())
    assert read(copy) == read(table)


def test_what_was_read_once_can_be_read_again_later(table: Table) -> None:
    first = table.current_snapshot()
    assert first is not None
    table.append(pairs((4, "d")))
    table.delete("id = 1")
    assert read(table, snapshot_id=first.snapshot_id) == [(1, "a"), (2, "b"), (3, None)]
    assert [entry.snapshot_id for entry in table.history()] == [each.snapshot_id for each in table.snapshots()]


def test_a_writer_that_read_too_early_is_refused_or_sees_both(catalog: RestCatalog, table: Table) -> None:
    """PyIceberg may retry an append by itself; whatever it does, no row is lost or doubled."""
    stale = catalog.load_table(table.name())
    table.append(pairs((4, "a")))
    try:
        stale.append(pairs((5, "b")))
    except CommitFailedException:
        stale.refresh()
        stale.append(pairs((5, "b")))
    assert read(table.refresh()) == [(1, "a"), (2, "b"), (3, None), (4, "a"), (5, "b")]


@pytest.mark.parametrize("version", [1, 2])
def test_every_format_version_that_it_writes_is_kept(catalog: RestCatalog, namespace: str, version: int) -> None:
    table = catalog.create_table((namespace, "v"), PAIRS, properties={"format-version": str(version)})
    table.append(pairs((1, "a")))
    assert catalog.load_table((namespace, "v")).format_version == version
    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    table.append(pairs((2, "b")))
    assert catalog.load_table((namespace, "v")).format_version == 2
    assert read(table) == [(1, "a"), (2, "b")]
