"""Which tables of a flush share a job, and which files may be put into which table."""

from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pytest

from pipeline.jobs import small_tables
from pipeline.jobs.metadata import LOG_ID, TO_POSITION, Metadata
from pipeline.jobs.parts import Part, Write
from pipeline.jobs.policies import Kind
from pipeline.jobs.small_tables import grouped, is_simple
from pipeline.transforms.columns import CDC_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOG = UUID(int=1)
DAY = {"name": "_cdc_timestamp_day", "transform": "day", "source-id": 2, "field-id": 1000}


def write(name: str, *, count: int = 3, size: int = 100, kind: Kind = Kind.CHANGELOG) -> Write:
    part = Part(
        key=name,
        table=("ns", name),
        events=cast("DataFrame", None),
        count=count,
        bytes=size,
        fields={},
        has_metadata=False,
        after=0,
        upto=1,
    )
    return Write(part, ("ns", name), kind, is_main=True)


def test_tables_that_are_written_at_once_anyway_share_nothing() -> None:
    writes = [write(f"t{number}") for number in range(8)]
    assert grouped(writes, at_once=8) == ([], writes)
    assert grouped([*writes, write("more")], at_once=8) == ([[*writes, write("more")]], [])


def test_large_tables_and_mirrors_do_not_count_and_stay_alone() -> None:
    small = [write(f"t{number}", count=1000, size=1024 * 1024) for number in range(3)]
    others = [write("many", count=1001), write("large", size=1024 * 1024 + 1), write("mirror", kind=Kind.MIRROR)]
    assert grouped([*others, *small], at_once=2) == ([small], others)
    assert grouped([*others, *small], at_once=3) == ([], [*others, *small])


def test_a_job_has_so_many_tables_and_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    groups, _ = grouped([write(f"t{number}") for number in range(501)], at_once=8)
    assert [len(group) for group in groups] == [250, 250, 1]
    monkeypatch.setattr(small_tables, "GROUP_BYTES", 1000)
    groups, _ = grouped([write(f"t{number}", size=400) for number in range(5)], at_once=2)
    assert [[each.part.key for each in group] for group in groups] == [["t0", "t1"], ["t2", "t3"], ["t4"]]


def metadata(*, partitions: tuple[Any, ...] = (DAY,), to: int | None = None, **changed: Any) -> Metadata:
    fields = [
        {"id": number, "name": name, "type": kind, "required": True}
        for number, (name, kind) in enumerate(CDC_COLUMNS.items(), start=1)
    ]
    history: dict[str, Any] = {}
    if to is not None:
        summary = {LOG_ID: str(LOG), TO_POSITION: str(to)}
        history = {"current-snapshot-id": 7, "snapshots": [{"snapshot-id": 7, "summary": summary}]}
    content = {
        "table-uuid": "u",
        "format-version": 2,
        "partition-spec": {"spec-id": 0, "fields": list(partitions)},
        "sort-order": 0,
        "current-schema-id": 0,
        "schemas": [{"schema-id": 0, "type": "struct", "fields": fields}],
        "properties": {"write.parquet.compression-codec": "zstd"},
    }
    return Metadata(content | history | {name.replace("_", "-"): value for name, value in changed.items()})


@pytest.mark.parametrize(
    "table",
    [
        metadata(),
        metadata(partitions=()),
        metadata(properties={}),
        metadata(properties={"write.format.default": "parquet", "comment": "x"}),
    ],
)
def test_tables_as_the_pipeline_makes_them_are_simple(table: Metadata) -> None:
    assert is_simple(table)


@pytest.mark.parametrize(
    "table",
    [
        metadata(partitions=(DAY | {"transform": "hour"},)),
        metadata(partitions=(DAY | {"source-id": 1},)),
        metadata(partitions=(DAY | {"transform": "void"},)),
        metadata(partitions=(DAY, DAY | {"field-id": 1001, "transform": "identity"})),
        metadata(format_version=1),
        metadata(format_version=3),
        metadata(sort_order=1),
        metadata(schemas=[{"schema-id": 0, "type": "struct", "fields": []}]),
        metadata(properties={"write.format.default": "orc"}),
        metadata(properties={"write.parquet.compression-codec": "snappy"}),
        metadata(properties={"write.parquet.compression-level": "9"}),
        metadata(properties={"write.parquet.bloom-filter-enabled.column.v": "true"}),
        metadata(properties={"schema.name-mapping.default": "[]"}),
        metadata(properties={"encryption.key-id": "k"}),
        metadata(properties={"write.wap.enabled": "true"}),
    ],
)
def test_all_others_are_not(table: Metadata) -> None:
    assert not is_simple(table)


def test_files_are_for_the_table_as_it_was_and_for_its_positions() -> None:
    made_for = metadata(to=5)
    assert metadata(to=5).is_as(made_for, LOG)
    assert metadata().is_as(metadata(), LOG)
    # a snapshot of somebody else's does not matter
    assert metadata(to=5, properties=made_for.content["properties"]).is_as(made_for, LOG)
    others = [
        metadata(),
        metadata(to=6),
        metadata(to=5, properties={}),
        metadata(to=5, partitions=()),
        metadata(to=5, table_uuid="other"),
        metadata(to=5, schemas=[{"schema-id": 0, "type": "struct", "fields": []}]),
    ]
    assert not any(each.is_as(made_for, LOG) for each in others)
