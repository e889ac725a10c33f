"""Tags, branches, rollback, expiry, statistics and metadata tables as PyIceberg uses them."""

import time
from datetime import datetime

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.statistics import StatisticsFile


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)})


def read(table: Table, snapshot_id: int | None = None) -> list[int]:
    return sorted(table.scan(snapshot_id=snapshot_id).to_arrow()["id"].to_pylist())


@pytest.fixture
def table(catalog: RestCatalog, namespace: str) -> Table:
    """Three snapshots: 1; 1, 2; 1, 2, 3."""
    created: Table = catalog.create_table((namespace, "t"), rows().cast(pa.schema([("id", pa.int64())])).schema)
    for number in (1, 2, 3):
        created.append(rows(number))
    return created


def ids(table: Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.snapshots()]


def test_tags_and_branches_are_made_with_their_retention_and_removed(catalog: RestCatalog, table: Table) -> None:
    first, second, _ = ids(table)
    with table.manage_snapshots() as manage:
        manage.create_tag(first, "v1", max_ref_age_ms=86_400_000)
        manage.create_branch(second, "dev", max_ref_age_ms=10_000, max_snapshot_age_ms=5_000, min_snapshots_to_keep=2)
    refs = catalog.load_table(table.name()).refs()
    assert refs["v1"].snapshot_id == first
    assert refs["v1"].max_ref_age_ms == 86_400_000
    assert (refs["dev"].snapshot_id, refs["dev"].max_snapshot_age_ms, refs["dev"].min_snapshots_to_keep) == (
        second,
        5_000,
        2,
    )
    assert read(table, refs["v1"].snapshot_id) == [1]
    with table.manage_snapshots() as manage:
        manage.remove_tag("v1").remove_branch("dev")
    assert set(catalog.load_table(table.name()).refs()) == {"main"}


def test_a_branch_is_written_apart_from_main(catalog: RestCatalog, table: Table) -> None:
    with table.manage_snapshots() as manage:
        manage.create_branch(ids(table)[0], "dev")
    table.append(rows(9), branch="dev")
    loaded = catalog.load_table(table.name())
    assert read(loaded) == [1, 2, 3]
    assert read(loaded, loaded.refs()["dev"].snapshot_id) == [1, 9]


def test_two_writers_of_one_branch_do_not_lose_a_row(catalog: RestCatalog, table: Table) -> None:
    stale = catalog.load_table(table.name())
    table.append(rows(4))
    try:
        stale.append(rows(5))
    except CommitFailedException:
        stale.refresh()
        stale.append(rows(5))
    assert read(catalog.load_table(table.name())) == [1, 2, 3, 4, 5]


def test_rollback_makes_an_earlier_snapshot_current(catalog: RestCatalog, table: Table) -> None:
    first, second, third = ids(table)
    with table.manage_snapshots() as manage:
        manage.rollback_to_snapshot(second)
    assert read(catalog.load_table(table.name())) == [1, 2]
    with table.manage_snapshots() as manage:
        manage.set_current_snapshot(snapshot_id=third)
    loaded = catalog.load_table(table.name())
    assert read(loaded) == [1, 2, 3]
    assert [entry.snapshot_id for entry in loaded.history()] == [first, second, third, second, third]


def test_expired_snapshots_are_gone_and_the_rows_stay(catalog: RestCatalog, table: Table) -> None:
    first, _, third = ids(table)
    table.maintenance.expire_snapshots().by_id(first).commit()
    assert ids(catalog.load_table(table.name()))[-1] == third
    assert first not in ids(catalog.load_table(table.name()))
    time.sleep(0.002)
    table.refresh()
    table.maintenance.expire_snapshots().older_than(datetime.now()).commit()  # noqa: DTZ005 as its API reads it
    loaded = catalog.load_table(table.name())
    assert ids(loaded) == [third]
    assert read(loaded) == [1, 2, 3]


def test_statistics_are_set_and_removed(catalog: RestCatalog, table: Table) -> None:
    snapshot_id = ids(table)[-1]
    statistics = StatisticsFile(
        snapshot_id=snapshot_id,
        statistics_path=f"{table.location()}/metadata/statistics.puffin",
        file_size_in_bytes=2**40,
        file_footer_size_in_bytes=44,
        blob_metadata=[],
    )
    with table.update_statistics() as update:
        update.set_statistics(statistics)
    assert catalog.load_table(table.name()).metadata.statistics == [statistics]
    with table.update_statistics() as update:
        update.remove_statistics(snapshot_id)
    assert catalog.load_table(table.name()).metadata.statistics == []


def test_metadata_tables_tell_what_was_committed(table: Table) -> None:
    assert table.inspect.snapshots()["snapshot_id"].to_pylist() == ids(table)
    assert table.inspect.history()["snapshot_id"].to_pylist() == ids(table)
    assert table.inspect.refs()["name"].to_pylist() == ["main"]
    assert table.inspect.files().num_rows == 3
    log = table.inspect.metadata_log_entries()
    assert log.num_rows == 4
    assert log["file"].to_pylist()[-1] == table.metadata_location
