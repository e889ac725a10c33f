"""Schema, partition and sort order evolution by PyIceberg; old rows are read by the new schema."""

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, IntegerType, LongType, StringType, StructType

ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "name": ["a", "b"],
        "ratio": pa.array([0.5, 1.5], pa.float32()),
        "place": pa.array([{"city": "Ulm"}, None]),
    }
)


@pytest.fixture
def table(catalog: RestCatalog, namespace: str) -> Table:
    created: Table = catalog.create_table((namespace, "t"), ROWS.schema)
    created.append(ROWS)
    return created


def reload(catalog: RestCatalog, table: Table) -> Table:
    loaded: Table = catalog.load_table(table.name())
    return loaded


def test_columns_are_added_renamed_moved_and_dropped(catalog: RestCatalog, table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("extra", StringType(), doc="new")
        update.add_column(("place", "zip"), IntegerType())
        update.rename_column("name", "title")
        update.delete_column("ratio")
        update.move_first("extra")
    changed = reload(catalog, table)
    assert [field.name for field in changed.schema().fields] == ["extra", "id", "title", "place"]
    assert changed.scan().to_arrow().to_pylist() == [
        {"extra": None, "id": 1, "title": "a", "place": {"city": "Ulm", "zip": None}},
        {"extra": None, "id": 2, "title": "b", "place": None},
    ]


def test_types_are_widened(catalog: RestCatalog, table: Table) -> None:
    with table.update_schema() as update:
        update.update_column("id", LongType())
        update.update_column("ratio", DoubleType())
    changed = reload(catalog, table)
    assert isinstance(changed.schema().find_type("id"), LongType)
    changed.append(pa.table({"id": [2**40], "ratio": [0.25]}))
    assert sorted(changed.scan().to_arrow()["id"].to_pylist()) == [1, 2, 2**40]


def test_a_dropped_columns_id_is_never_used_again(catalog: RestCatalog, table: Table) -> None:
    old = table.schema().find_field("name").field_id
    with table.update_schema() as update:
        update.delete_column("name")
    with table.update_schema() as update:
        update.add_column("name", StringType())
    changed = reload(catalog, table)
    assert changed.schema().find_field("name").field_id > old
    assert changed.scan().to_arrow()["name"].to_pylist() == [None, None]
    assert changed.metadata.last_column_id == changed.schema().find_field("name").field_id


def test_union_by_name_takes_the_columns_of_another_schema(catalog: RestCatalog, table: Table) -> None:
    with table.update_schema() as update:
        update.union_by_name(pa.schema([("id", pa.int32()), ("further", pa.struct([("deep", pa.int64())]))]))
    assert isinstance(reload(catalog, table).schema().find_type("further"), StructType)


def test_every_schema_stays_readable_by_its_snapshot(catalog: RestCatalog, table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("name", "title")
    changed = reload(catalog, table)
    assert set(changed.schemas()) == {0, 1}
    first = changed.snapshots()[0]
    assert first.schema_id == 0
    assert "name" in changed.scan(snapshot_id=first.snapshot_id).to_arrow().column_names


def test_partition_fields_are_added_renamed_and_removed(catalog: RestCatalog, table: Table) -> None:
    with table.update_spec() as update:
        update.add_field("id", IdentityTransform(), "id_part")
        update.add_field("name", IdentityTransform(), "name_part")
    table.append(ROWS)
    with table.update_spec() as update:
        update.rename_field("id_part", "shard")
        update.remove_field("name_part")
    changed = reload(catalog, table)
    assert [field.name for field in changed.spec().fields] == ["shard"]
    assert changed.metadata.last_partition_id == 1001
    changed.append(ROWS)
    assert changed.scan().count() == 6
    assert sorted(set(changed.inspect.files()["spec_id"].to_pylist())) == [0, 1, changed.spec().spec_id]


def test_sort_orders_are_replaced_and_kept(catalog: RestCatalog, table: Table) -> None:
    with table.update_sort_order() as update:
        update.asc("id", IdentityTransform(), NullOrder.NULLS_LAST)
        update.desc("name", IdentityTransform())
    changed = reload(catalog, table)
    directions = [field.direction for field in changed.sort_order().fields]
    assert directions == [SortDirection.ASC, SortDirection.DESC]
    assert set(changed.sort_orders()) == {0, 1}


def test_two_schema_changes_from_one_state_do_not_both_pass(catalog: RestCatalog, table: Table) -> None:
    stale = reload(catalog, table)
    with table.update_schema() as update:
        update.add_column("mine", StringType())
    with pytest.raises(CommitFailedException), stale.update_schema() as update:
        update.add_column("yours", StringType())
    assert "yours" not in reload(catalog, table).schema().column_names
