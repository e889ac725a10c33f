import io
from pathlib import Path

import pytest

from standalone.errors import EmbeddedError
from standalone.options import DevOptions


def test_ready_file_is_in_the_data_directory_unless_given(tmp_path: Path) -> None:
    assert DevOptions(tmp_path).ready_path == tmp_path / "ready.json"
    assert DevOptions(tmp_path, ready_file=tmp_path / "other").ready_path == tmp_path / "other"


def test_unknown_warehouse_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match="--warehouse hdfs is not known: use file or s3"):
        DevOptions(tmp_path, warehouse="hdfs", progress=io.StringIO()).check()


def test_earlier_ready_file_is_removed(tmp_path: Path) -> None:
    (tmp_path / "ready.json").write_text("{}")
    DevOptions(tmp_path).check()
    assert not (tmp_path / "ready.json").exists()
