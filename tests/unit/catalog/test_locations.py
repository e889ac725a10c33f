from pathlib import Path

import pytest

from catalog.services.locations import inside, lies_in
from lakewarden.errors import InvalidArgument
from tenants.models import Warehouse


def warehouse_at(path: str) -> Warehouse:
    profile = {"type": "local", "base-path": path}
    return Warehouse(name="lake", location=f"file://{path}", storage_profile=profile)


LAKE = warehouse_at("/lake")


@pytest.mark.parametrize("form", ["file:///lake/t", "file:/lake/t", "file:///lake/t/", "file:/lake/t//"])
def test_inside_gives_one_form_of_a_location(form: str) -> None:
    assert inside(LAKE, form) == "file:///lake/t"


@pytest.mark.parametrize("name", ["t.", "..t", "t..", "%41", "a b", "ä", "x" * 255])
def test_inside_keeps_odd_names(name: str) -> None:
    assert inside(LAKE, f"file:///lake/{name}") == f"file:///lake/{name}"


@pytest.mark.parametrize(
    "location",
    [
        *("", "/lake/t", "lake/t", "file://lake/t", "file:lake/t", "s3://lake/t", "FILE:///lake/t", "hdfs:///lake/t"),
        *("file:///lake", "file:///lake/", "file:///lake2/t", "file:///", "file:///other/t", "file:////lake/t"),
        *(
            "file:///lake/../t",
            "file:///lake/a/../../t",
            "file:///lake/..",
            "file:///lake/%2E%2e/t",
            "file:///lake/a/..",
        ),
        *("file:///lake//t", "file:///lake/./t", "file:///lake/.", "file:///lake/t\x00"),
        *("file:///lake/" + "x" * 256, "file:///lake/" + "ä" * 128, "file:///lake" + "/folder" * 200),
    ],
)
def test_inside_refuses_what_is_not_inside_or_cannot_be(location: str) -> None:
    with pytest.raises(InvalidArgument, match="location"):
        inside(LAKE, location)


@pytest.mark.parametrize(
    ("place", "lies"),
    [
        ("file:///lake/t/metadata/v1.json", True),
        ("file:/lake/t/metadata/v1.json", True),
        ("file:///lake/t", False),
        ("file:///lake/t2/v1.json", False),
        ("file:///lake/t/../t2/v1.json", False),
        ("s3://lake/t/v1.json", False),
        ("", False),
    ],
)
def test_lies_in(*, place: str, lies: bool) -> None:
    assert lies_in(LAKE, place, "file:///lake/t") is lies


def test_paths_of_this_machine_are_no_locations(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="is not a file:// location"):
        inside(warehouse_at(str(tmp_path)), str(tmp_path / "t"))
