"""The tables that the benchmarks register are what the catalog reads, and as worn as they are said to be."""

import json

import pytest

from benchmarks import metadata
from benchmarks.metadata import SMALL, WORN, Shape
from catalog.iceberg.tables import TableMetadata

LOCATION = "file:///lake/table"


@pytest.mark.parametrize("shape", [SMALL, WORN, Shape(columns=20, snapshots=12, schemas=3, files=11)])
def test_a_table_of_each_shape_can_be_read(shape: Shape) -> None:
    read = json.loads(TableMetadata.read_file(metadata.document(shape, LOCATION)).encode())
    assert len(read["snapshots"]) == shape.snapshots
    assert len(read["schemas"]) == shape.schemas


def test_the_log_of_a_worn_table_is_full_and_names_a_hundred_files_in_order() -> None:
    log = json.loads(metadata.document(WORN, LOCATION))["metadata-log"]
    files = [entry["metadata-file"] for entry in log]
    assert len(set(files)) == 100
    assert files == sorted(files)
    assert all(file.startswith(f"{LOCATION}/metadata/") for file in files)
    assert [entry["timestamp-ms"] for entry in log] == sorted(entry["timestamp-ms"] for entry in log)
