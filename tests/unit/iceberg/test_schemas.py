"""The rules that a schema must keep."""

import pytest

from catalog.iceberg import schemas
from lakewarden.errors import BadRequest, InvalidArgument, ValidationFailed
from tests.unit.iceberg.documents import Document, field, raw, schema, schema_of


def read(document: Document) -> schemas.Schema:
    return schemas.read(raw(document)[0], "schema")


STRUCT = {"type": "struct", "fields": [field(11, "x", "int", required=True)]}
TAGS = {"type": "list", "element-id": 12, "element": "string", "element-required": True}


def test_read_indexes_nested_fields_by_id_and_by_full_name() -> None:
    found = read(schema(field(4, "point", STRUCT), field(5, "tags", TAGS)))
    assert found.ids_by_name["point.x"] == 11
    assert found.ids_by_name["tags.element"] == 12
    assert found.highest_field_id == 12
    assert [each.name for each in found.ancestors(11)] == ["point"]


def test_two_schemas_are_the_same_when_only_ids_and_unknown_members_differ() -> None:
    one, other = schema(**{"schema-id": 1}), schema(**{"schema-id": 2, "x": 1})
    assert read(one).shape == read(other).shape


@pytest.mark.parametrize(
    "change",
    [{"name": "z"}, {"required": True}, {"type": "int"}, {"doc": "d"}, {"write-default": 1}, {"id": 99}],
)
def test_two_schemas_differ_by_every_known_member_of_a_field(change: Document) -> None:
    plain = field(9, "n", "long")
    assert read(schema(plain)).shape != read(schema(plain | change)).shape


def test_two_schemas_differ_by_their_identifier_fields() -> None:
    assert read(schema()).shape != read(schema(**{"identifier-field-ids": [1]})).shape


def test_two_spellings_of_a_type_are_the_same() -> None:
    one, other = schema(field(9, "n", "decimal(9,2)")), schema(field(9, "n", "decimal( 9 , 2 )"))
    assert read(one).shape == read(other).shape


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (schema(field(1, "again", "int")), InvalidArgument, "Multiple fields with the id 1: id and again"),
        (schema(field(9, "id", "int")), ValidationFailed, "multiple fields for name id: 1 and 9"),
        (schema(field(4, "a", STRUCT), field(5, "a.x", "int")), ValidationFailed, "multiple fields for name a.x"),
        (schema(field(9, "", "int")), InvalidArgument, "Invalid column name"),
        (schema(field(9, "n", "number")), InvalidArgument, "Cannot parse type string to primitive: number"),
        (schema(field(9, "n", "unknown", required=True)), InvalidArgument, "required field with unknown type: n"),
        (schema(field(9, "n", {"type": "set"})), BadRequest, r"Invalid value 'set' - at `\$.fields\[3\].type.type`"),
        (schema(field(9, "n", 7)), BadRequest, "got `int`"),
    ],
)
def test_read_refuses(wrong: Document, error: type[BadRequest], message: str) -> None:
    with pytest.raises(error, match=message):
        read(wrong)


@pytest.mark.parametrize(
    ("identifiers", "message"),
    [
        ([99], "Cannot add fieldId 99 as an identifier field: field does not exist"),
        ([2], "Cannot add field day as an identifier field: not a required field"),
        ([4], "Cannot add field ratio as an identifier field: must not be float or double field"),
        ([5], "Cannot add field point as an identifier field: not a primitive type field"),
        ([11], "Cannot add field point.x as an identifier field: must not be nested in an optional field point"),
        ([12], "Cannot add field tags.element as an identifier field: must not be nested in tags, a list"),
    ],
)
def test_read_refuses_identifier_fields(identifiers: list[int], message: str) -> None:
    more = (
        field(4, "ratio", "double", required=True),
        field(5, "point", STRUCT),
        field(6, "tags", TAGS, required=True),
    )
    with pytest.raises(InvalidArgument, match=message):
        read(schema(*more, **{"identifier-field-ids": identifiers}))


def test_an_identifier_field_may_be_nested_in_required_structs() -> None:
    found = read(schema(field(5, "point", STRUCT, required=True), **{"identifier-field-ids": [11]}))
    assert found.identifier_field_ids == {11}


@pytest.mark.parametrize("type_", ["timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography"])
def test_newer_types_are_refused_before_v3(type_: str) -> None:
    found = read(schema(field(9, "n", type_)))
    schemas.check_version(found, 3)
    with pytest.raises(InvalidArgument, match=rf"(?s)Invalid schema for v2:.*Invalid type for n: {type_}"):
        schemas.check_version(found, 2)


def test_an_initial_default_is_refused_before_v3_and_a_write_default_is_not() -> None:
    schemas.check_version(read(schema(field(9, "n", "int", **{"write-default": 3}))), 2)
    found = read(schema(field(9, "n", "int", **{"initial-default": 3})))
    schemas.check_version(found, 3)
    with pytest.raises(InvalidArgument, match=r"Invalid initial default for n: non-null default \(3\)"):
        schemas.check_version(found, 2)


def test_a_schema_of_ten_thousand_columns_is_refused_and_one_less_is_not() -> None:
    fields = [field(each, f"c{each}", "int") for each in range(1, 10_001)]
    schemas.check_size(read(schema_of(fields[:-1])))
    with pytest.raises(BadRequest, match="it has 10000 fields, fewer than 10000 are allowed"):
        schemas.check_size(read(schema_of(fields)))


def test_ids_of_metadata_columns_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="reserved for metadata columns"):
        schemas.check_size(read(schema(field(2**31 - 2, "n", "int"))))


@pytest.mark.parametrize("member", ["initial-default", "write-default"])
def test_a_default_of_another_type_is_refused_at_any_depth(member: str) -> None:
    wrong = {"type": "struct", "fields": [field(11, "x", "int", **{member: "three"})]}
    with pytest.raises(InvalidArgument, match=f"Cannot parse {member} of point.x to a int value: 'three'"):
        read(schema(field(5, "point", wrong)))


def test_ids_are_32_bit_integers() -> None:
    read(schema(field(-(2**31), "n", "int")))
    for beyond in (2**31, -(2**31) - 1):
        with pytest.raises(BadRequest, match=r"Expected `int` [<>]= -?214748364[78] - at `\$.fields\[3\].id`"):
            read(schema(field(beyond, "n", "int")))


def test_names_that_are_repeated_by_what_is_nested_in_them_are_bounded() -> None:
    """A megabyte of JSON, whose full names would be gigabytes."""
    inner = [field(1000 + number, f"a{number}", "int") for number in range(9_000)]
    for depth in range(30):
        inner = [field(depth + 1, "n" * 8000, {"type": "struct", "fields": inner})]
    with pytest.raises(BadRequest, match="the full names of its fields"):
        read(schema_of(inner))
