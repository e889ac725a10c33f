import os
from pathlib import Path

import pytest

from pipeline.spark.spark_sql import _escaped, _hand_over


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a=b:c#d", "a=b:c#d"),
        ("back\\slash", "back\\\\slash"),
        (" blank", "\\ blank"),
        ("two\nlines", "two\\nlines"),
        ("ü", "\\u00fc"),
        ("𝄞", "\\ud834\\udd1e"),
    ],
)
def test_a_value_is_written_as_java_reads_it(value: str, written: str) -> None:
    assert _escaped(value) == written


def test_settings_are_handed_over_in_a_file_without_a_name() -> None:
    handed = Path(_hand_over({"spark.a": "engine:hidden"}))
    try:
        assert handed.read_text() == "spark.a=engine:hidden\n"
        assert str(handed.readlink()).endswith("(deleted)")
        assert os.get_inheritable(int(handed.name))
    finally:
        os.close(int(handed.name))
