"""Creations that the event loop leaves to the ordinary path: nothing was written."""

from pathlib import Path
from typing import Any

import pytest

from catalog.models import Namespace
from tests.integration.catalog.creating import Into, Top, create_together, files, namespace, table
from tests.integration.catalog.written_rows import rows

NOT_ORDINARY: dict[str, dict[str, Any]] = {
    "staged": {"stage-create": True},
    "a location": {"location": "file:///somewhere"},
    "a wrong schema": {"schema": {"type": "struct", "fields": [{"id": 1}]}},
    "a wrong codec": {"properties": {"write.metadata.compression-codec": "lz4"}},
    "a path outside": {"properties": {"write.data.path": "file:///elsewhere"}},
    "metadata outside": {"properties": {"write.metadata.path": "file:///elsewhere"}},
    "a large body": {"properties": {"a": "x" * 40_000}},
    "too many properties": {"properties": {str(number): "" for number in range(3000)}},
}


@pytest.mark.parametrize("what", NOT_ORDINARY)
def test_what_is_not_ordinary_is_left_to_the_ordinary_path(into: Into, base: Path, what: str) -> None:
    sales = into()
    there, found = files(base), rows()
    assert create_together(table(sales, "orders", **NOT_ORDINARY[what])) == [None]
    assert (files(base), rows()) == (there, found)


@pytest.mark.parametrize("name", ["", "x" * 256, "a\x00b", "first", "FIRST"])
def test_a_name_that_is_invalid_or_taken_is_left_to_the_ordinary_path_and_nothing_is_written(
    into: Into, base: Path, name: str
) -> None:
    sales = into()
    there, found = files(base), rows()
    assert create_together(table(sales, name, is_taken=name.lower() == "first")) == [None]
    assert (files(base), rows()) == (there, found)


@pytest.mark.parametrize("path", [(), ("",), ("a\x00b",), ("x" * 300,), ("sales",), ("elsewhere", "inner")])
def test_a_namespace_that_is_invalid_is_left_to_the_ordinary_path(top: Top, into: Into, path: tuple[str, ...]) -> None:
    parent = top() if len(path) < 2 else into()
    found = rows()
    assert create_together(namespace(parent, *path)) == [None]
    assert rows() == found


def test_namespaces_with_a_location_or_invalid_properties_are_left_to_the_ordinary_path(top: Top) -> None:
    assert create_together(
        namespace(top(), "a", location="file:///x"),
        namespace(top(), "b", p="a\x00"),
        namespace(top(), "c", p="x" * 10**6),
    ) == [None, None, None]
    assert not Namespace.objects.filter(name_key__in=["a", "b", "c"]).exists()
