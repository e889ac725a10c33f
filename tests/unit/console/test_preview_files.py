"""A preview opens the files of its table and nothing else, whatever the metadata of a table says."""

from pathlib import Path

import msgspec
import pytest

from console.preview_files import OutsideOfTable, TableFiles, table_files
from console.preview_reader import Wanted, cell


def wanted(location: str, *, base: Path | None = None) -> Wanted:
    return Wanted(
        metadata=msgspec.Raw(b"{}"),
        location=location,
        properties={},
        snapshot_id=None,
        rows=1,
        columns=1,
        characters=10,
        seconds=1,
        memory_bytes=1,
        local_base=None if base is None else str(base),
    )


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name in ("orders/data", "orders2"):
        (tmp_path / "lake" / name).mkdir(parents=True)
    (tmp_path / "lake/orders/data/a.parquet").write_bytes(b"mine")
    (tmp_path / "lake/orders2/b.parquet").write_bytes(b"another table's")
    return tmp_path / "lake"


def test_a_file_of_the_table_is_read(lake: Path) -> None:
    found = TableFiles(wanted(f"file://{lake}/orders", base=lake)).new_input(f"file://{lake}/orders/data/a.parquet")
    assert found.exists()
    assert len(found) == 4
    with found.open() as content:
        assert content.read() == b"mine"


@pytest.mark.parametrize("name", ["orders2/b.parquet", "orders/../orders2/b.parquet", "../other"])
def test_a_file_elsewhere_is_not(lake: Path, name: str) -> None:
    with pytest.raises(Exception, match=r"outside of the table|contains '\.\.'"):
        TableFiles(wanted(f"file://{lake}/orders", base=lake)).new_input(f"file://{lake}/{name}")


@pytest.mark.parametrize("link", ["orders/data/link", "orders/link"])
def test_no_link_leads_out_of_the_table(lake: Path, link: str) -> None:
    name = link if link.endswith("data/link") else f"{link}/b.parquet"
    (lake / link).symlink_to(lake / ("orders2/b.parquet" if link.endswith("data/link") else "orders2"))
    found = TableFiles(wanted(f"file://{lake}/orders", base=lake)).new_input(f"file://{lake}/{name}")
    with pytest.raises(OSError):
        found.open()


@pytest.mark.parametrize(
    "location",
    [
        "s3://lake/orders2/a",
        "s3://other/orders/a",
        "s3://lake/orders/../orders2/a",
        "s3a://lake/ordersx",
        "/etc/passwd",
        "file://lake/orders/a",
        "gs://lake/orders/a",
        "hdfs://lake/orders/a",
        "abfss://lake/orders/a",
    ],
)
def test_an_object_elsewhere_is_not_read(location: str) -> None:
    with pytest.raises(OutsideOfTable):
        TableFiles(wanted("s3://lake/orders")).new_input(location)


def test_nothing_is_written_or_removed(lake: Path) -> None:
    files = TableFiles(wanted(f"file://{lake}/orders", base=lake))
    for attempt in (files.new_output, files.delete):
        with pytest.raises(PermissionError):
            attempt(f"file://{lake}/orders/data/a.parquet")


def test_other_stores_are_refused_with_a_sentence() -> None:
    with pytest.raises(ValueError, match="local directories and S3 only"):
        table_files(wanted("gs://lake/orders"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, None), (1, "1"), (b"\x00\xff", "0x00ff"), ({"a": [1]}, '{"a":[1]}'), ("x" * 11, "x" * 9 + "…")],
)
def test_values_are_texts_of_a_limited_length(value: object, shown: str | None) -> None:
    assert cell(value, 10) == shown
