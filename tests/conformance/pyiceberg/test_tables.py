"""The life of a table as PyIceberg's client drives it: create, register, rename, transactions, drop and purge."""

import time
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import (
    DecimalType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    UUIDType,
)

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", None]})

# ids as every client numbers them anew: a level after the other
WIDE = Schema(
    NestedField(1, "id", LongType(), required=True, doc="the key"),
    NestedField(2, "at", TimestamptzType(), required=False),
    NestedField(3, "price", DecimalType(38, 9), required=False),
    NestedField(4, "tags", ListType(7, StringType(), element_required=True), required=False),
    NestedField(5, "by_key", MapType(8, StringType(), 9, LongType(), value_required=False), required=False),
    NestedField(6, "deep", StructType(NestedField(10, "uuid", UUIDType(), required=False)), required=False),
    identifier_field_ids=[1],
)


def folder(location: str) -> Path:
    return Path(urlsplit(location).path)


def test_what_was_created_is_what_is_loaded(catalog: RestCatalog, namespace: str) -> None:
    spec = PartitionSpec(
        PartitionField(2, 1000, DayTransform(), "at_day"), PartitionField(1, 1001, BucketTransform(16), "id_bucket")
    )
    order = SortOrder(SortField(3, IdentityTransform(), SortDirection.DESC, NullOrder.NULLS_LAST))
    created = catalog.create_table((namespace, "wide"), WIDE, None, spec, order, {"owner": "me", "x.y": "ü"})
    loaded = catalog.load_table((namespace, "wide"))
    assert loaded.schema() == created.schema() == WIDE
    assert loaded.schema().identifier_field_names() == {"id"}
    assert loaded.schema().find_field("id").doc == "the key"
    assert (loaded.spec(), loaded.sort_order().fields) == (spec, order.fields)
    assert loaded.properties | {"owner": "me", "x.y": "ü"} == loaded.properties
    assert loaded.metadata == created.metadata
    assert loaded.metadata_location == created.metadata_location
    assert folder(loaded.metadata_location).is_file()


def test_tables_are_listed_and_a_second_of_the_name_is_refused(catalog: RestCatalog, namespace: str) -> None:
    for name in ("b", "a"):
        catalog.create_table((namespace, name), ROWS.schema)
    assert sorted(catalog.list_tables(namespace)) == [(namespace, "a"), (namespace, "b")]
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table((namespace, "a"), ROWS.schema)
    assert catalog.create_table_if_not_exists((namespace, "a"), ROWS.schema).name() == (namespace, "a")


def test_a_missing_table_or_namespace_is_told(catalog: RestCatalog, namespace: str) -> None:
    assert not catalog.table_exists((namespace, "none"))
    for call in (catalog.load_table, catalog.drop_table, catalog.purge_table):
        with pytest.raises(NoSuchTableError):
            call((namespace, "none"))
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table(("absent", "t"), ROWS.schema)
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables("absent")


def test_a_renamed_table_keeps_its_rows_and_its_location(catalog: RestCatalog, namespace: str) -> None:
    catalog.create_namespace((namespace, "other"))
    table = catalog.create_table((namespace, "old"), ROWS.schema)
    table.append(ROWS)
    moved = catalog.rename_table((namespace, "old"), (namespace, "other", "new"))
    assert moved.location() == table.location()
    assert moved.metadata.table_uuid == table.metadata.table_uuid
    assert moved.scan().to_arrow().to_pylist() == ROWS.to_pylist()
    assert catalog.list_tables(namespace) == []
    catalog.create_table((namespace, "old"), ROWS.schema)
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table((namespace, "old"), (namespace, "other", "new"))


def test_a_dropped_table_keeps_its_files_and_can_be_registered_again(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), ROWS.schema)
    table.append(ROWS)
    catalog.drop_table((namespace, "t"))
    assert not catalog.table_exists((namespace, "t"))
    again = catalog.register_table((namespace, "again"), table.metadata_location)
    assert again.metadata == table.metadata
    assert again.scan().to_arrow().to_pylist() == ROWS.to_pylist()
    again.append(ROWS)
    assert again.scan().count() == 6


def test_register_over_a_table_replaces_it_only_if_asked(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), ROWS.schema)
    before = table.metadata_location
    table.append(ROWS)
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table((namespace, "t"), before)
    catalog.register_table((namespace, "t"), before, overwrite=True)
    assert catalog.load_table((namespace, "t")).scan().count() == 0


def test_a_purged_table_loses_its_files(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), ROWS.schema)
    table.append(ROWS)
    files = [folder(path) for path in table.inspect.files()["file_path"].to_pylist()]
    assert all(path.is_file() for path in files)
    catalog.purge_table((namespace, "t"))
    assert not catalog.table_exists((namespace, "t"))
    assert await_gone([*files, folder(table.metadata_location)])


def test_a_create_transaction_shows_nothing_before_it_commits(catalog: RestCatalog, namespace: str) -> None:
    with catalog.create_table_transaction((namespace, "t"), ROWS.schema, properties={"a": "1"}) as transaction:
        transaction.append(ROWS)
        assert not catalog.table_exists((namespace, "t"))
    table = catalog.load_table((namespace, "t"))
    assert table.scan().to_arrow().to_pylist() == ROWS.to_pylist()
    assert table.properties["a"] == "1"
    assert len(table.snapshots()) == 1


def test_a_create_transaction_that_lost_the_name_is_refused(catalog: RestCatalog, namespace: str) -> None:
    transaction = catalog.create_table_transaction((namespace, "t"), ROWS.schema)
    transaction.append(ROWS)
    winner = catalog.create_table((namespace, "t"), ROWS.schema)
    with pytest.raises((CommitFailedException, TableAlreadyExistsError)):
        transaction.commit_transaction()
    assert catalog.load_table((namespace, "t")).metadata == winner.metadata


def test_properties_change_together_or_not_at_all(catalog: RestCatalog, namespace: str) -> None:
    table = catalog.create_table((namespace, "t"), ROWS.schema, properties={"a": "1", "b": "2"})
    with table.transaction() as transaction:
        transaction.set_properties({"c": "3", "a": "4"})
        transaction.remove_properties("b")
    properties = catalog.load_table((namespace, "t")).properties
    assert (properties["a"], properties["c"], "b" in properties) == ("4", "3", False)
    unchanged = catalog.load_table((namespace, "t"))
    stale = catalog.load_table((namespace, "t"))
    stale.append(ROWS)
    assert unchanged.metadata.current_snapshot_id is None
    assert unchanged.refresh().scan().count() == 3


def await_gone(paths: list[Path]) -> bool:
    """Whether all are gone soon: the worker deletes them after the answer."""
    deadline = time.monotonic() + 30
    while any(path.exists() for path in paths):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
