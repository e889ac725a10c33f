"""The spelling of primitive types and of transforms."""

import pytest

from catalog.iceberg.primitive_types import primitive
from catalog.iceberg.transforms import transform
from lakewarden.errors import InvalidArgument


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("INT", "int"),
        ("fixed[ 16 ]", "fixed[16]"),
        ("decimal(9,2)", "decimal(9, 2)"),
        ("geometry", "geometry"),
        ("geometry(OGC:CRS84)", "geometry"),
        ("geometry( srid:4326 )", "geometry(srid:4326)"),
        ("geometry(" + " " * 100_000 + ")", "geometry"),
        ("geography(" + " " * 100_000 + ")", "geography"),
        ("geography(OGC:CRS84, spherical)", "geography"),
        ("geography(srid:4326)", "geography(srid:4326)"),
        ("geography(srid:4326, Karney)", "geography(srid:4326, karney)"),
    ],
)
def test_a_primitive_has_one_normal_spelling(text: str, normal: str) -> None:
    assert primitive(text).text == normal


@pytest.mark.parametrize("text", ["", "integer", "decimal", "decimal(39,2)", "decimal(0,0)", "fixed", "fixed[x]"])
def test_what_is_no_primitive_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"primitive|precision"):
        primitive(text)


def test_an_unknown_edge_algorithm_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="Invalid edge interpolation algorithm: flat; known are andoyer"):
        primitive("geography(OGC:CRS84, flat)")


@pytest.mark.parametrize(
    ("text", "takes", "refuses"),
    [
        ("identity", ["int", "boolean", "float"], ["variant", "geometry", "geography"]),
        ("BUCKET[8]", ["int", "uuid", "fixed", "time", "timestamp_ns"], ["boolean", "float", "double"]),
        ("truncate[2]", ["int", "decimal", "string", "binary"], ["date", "uuid", "fixed"]),
        ("day", ["date", "timestamptz"], ["time", "int"]),
        ("hour", ["timestamp", "timestamptz_ns"], ["date"]),
        ("void", ["int", "variant"], []),
        ("zorder", ["int", "variant"], []),
    ],
)
def test_a_transform_takes_its_source_types(text: str, takes: list[str], refuses: list[str]) -> None:
    assert all(transform(text).takes(each) for each in takes)
    assert not any(transform(text).takes(each) for each in refuses)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bucket[0]", r"Invalid number of buckets: 0 \(must be > 0\)"),
        ("truncate[0]", r"Invalid truncate width: 0 \(must be > 0\)"),
        ("bucket[99999999999]", "must be <= 2147483647"),
        ("bucket[" + "9" * 5000 + "]", "must be <= 2147483647"),
        ("bucket", r"it needs a width, as in bucket\[16\]"),
    ],
)
def test_a_transform_without_a_good_width_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        transform(text)


def test_known_transforms_have_one_normal_spelling_and_unknown_ones_keep_theirs() -> None:
    assert transform("Bucket[08]").text == "bucket[8]"
    assert transform("Zorder[3]").text == "Zorder[3]"
    assert transform("z" * 100).text == "z" * 100


def test_the_largest_width_and_precision_are_accepted() -> None:
    assert transform("bucket[2147483647]").text == "bucket[2147483647]"
    assert primitive("decimal(38,2)").precision == 38
