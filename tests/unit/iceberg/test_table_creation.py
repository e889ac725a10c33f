"""Creating a table from a request: fresh ids, format versions, properties, refusals."""

import json

import pytest

from catalog.iceberg import tables
from lakewarden.errors import BadRequest, InvalidArgument, ValidationFailed
from tests.unit.iceberg.documents import LOCATION, NOW, UUID, create, document, field, schema, schema_of


def test_create_numbers_the_fields_of_a_struct_before_what_is_nested_in_them() -> None:
    struct = {"type": "struct", "fields": [field(70, "x", "int"), field(60, "y", "int")]}
    pairs = {"type": "map", "key-id": 50, "key": "string", "value-id": 40, "value": struct, "value-required": True}
    tags = {"type": "list", "element-id": 30, "element": pairs, "element-required": False}
    made = document(create(schema=schema_of([field(9, "tags", tags), field(8, "last", "date")])))
    first, last = made["schemas"][0]["fields"]
    element = first["type"]["element"]
    assert (first["id"], last["id"], first["type"]["element-id"]) == (1, 2, 3)
    assert (element["key-id"], element["value-id"]) == (4, 5)
    assert [each["id"] for each in element["value"]["fields"]] == [6, 7]
    assert made["last-column-id"] == 7


def test_create_rebinds_identifier_fields_spec_and_order_to_the_fresh_ids() -> None:
    fields = [field(30, "day", "date"), field(10, "id", "long", required=True)]
    order = {"order-id": 9, "fields": [_sort(10)]}
    spec = {"spec-id": 4, "fields": [{"source-id": 30, "field-id": 1234, "transform": "month", "name": "m"}]}
    wanted = schema_of(fields, **{"identifier-field-ids": [10], "schema-id": 7})
    made = document(create(schema=wanted, **{"partition-spec": spec, "write-order": order}))
    assert made["schemas"][0]["identifier-field-ids"] == [2]
    assert made["schemas"][0]["schema-id"] == made["current-schema-id"] == 0
    partition = {"source-id": 1, "field-id": 1000, "transform": "month", "name": "m"}
    assert made["partition-specs"] == [{"spec-id": 0, "fields": [partition]}]
    assert made["last-partition-id"] == 1000
    assert made["sort-orders"] == [{"order-id": 1, "fields": [_sort(2)]}]
    assert made["default-sort-order-id"] == 1


def _sort(source_id: int) -> dict[str, object]:
    return {"source-id": source_id, "transform": "identity", "direction": "asc", "null-order": "nulls-last"}


def test_create_without_spec_and_order_is_unpartitioned_and_unsorted() -> None:
    made = document(create(**{"partition-spec": None, "write-order": None}))
    assert made["partition-specs"] == [{"spec-id": 0, "fields": []}]
    assert made["last-partition-id"] == 999
    assert made["sort-orders"] == [{"order-id": 0, "fields": []}]
    assert made["default-sort-order-id"] == 0


def test_create_stores_properties_without_the_reserved_ones_and_with_new_table_defaults() -> None:
    made = create(properties={"owner": "me", "uuid": "x", "current-schema": "{}"})
    assert made.properties == {"owner": "me", "write.parquet.compression-codec": "zstd"}


def test_create_keeps_a_given_compression_codec() -> None:
    made = create(properties={"write.parquet.compression-codec": "snappy"})
    assert made.properties == {"write.parquet.compression-codec": "snappy"}


@pytest.mark.parametrize(
    ("version", "has", "has_not"),
    [
        (1, {"schema", "partition-spec"}, {"last-sequence-number", "next-row-id"}),
        (2, {"last-sequence-number"}, {"schema", "partition-spec", "next-row-id"}),
        (3, {"last-sequence-number", "next-row-id"}, {"schema", "partition-spec"}),
    ],
)
def test_create_writes_the_members_of_its_format_version(version: int, has: set[str], has_not: set[str]) -> None:
    made = document(create(version))
    assert made["format-version"] == version
    assert has <= made.keys()
    assert not has_not & made.keys()
    assert made["current-snapshot-id"] == (None if version == 3 else -1)


def test_create_defaults_to_format_version_two() -> None:
    request = json.dumps({"schema": schema()}).encode()
    made = tables.create(request, uuid=UUID, location=f"{LOCATION}//", now_ms=NOW)
    assert (made.format_version, made.uuid, made.location, made.last_updated_ms) == (2, UUID, LOCATION, NOW)
    assert made.current_snapshot_id is None


def test_create_keeps_unknown_members_of_schema_spec_and_order() -> None:
    wanted = schema(field(9, "n", "int", color=1.10), x={"y": 12345678901234567890})
    made = document(create(schema=wanted, **{"write-order": {"fields": [], "z": True}}))
    assert made["schemas"][0]["x"] == {"y": 12345678901234567890}
    assert made["schemas"][0]["fields"][3]["color"] == 1.10
    assert made["sort-orders"][0]["z"] is True


@pytest.mark.parametrize("version", ["0", "4", "two", "", "-1", "³", "99999999999"])
def test_create_refuses_other_format_versions(version: str) -> None:
    with pytest.raises(InvalidArgument, match=r"format.version"):
        create(properties={"format-version": version})


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"commit.retry.num-retries": "x"}, "must have integer value"),
        ({"commit.retry.num-retries": "9" * 5000}, "must have integer value"),
        ({"commit.retry.num-retries": "-1"}, "must have non negative integer value"),
        ({"write.metadata.metrics.column.nope": "full"}, "could not find column nope"),
    ],
)
def test_create_refuses_properties_that_contradict_the_table(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationFailed, match=message):
        create(properties=properties)


def test_create_refuses_a_spec_or_order_of_an_unknown_column() -> None:
    field_of_99 = {"source-id": 99, "transform": "identity", "name": "p"}
    with pytest.raises(ValidationFailed, match="Cannot find source column for partition field"):
        create(**{"partition-spec": {"fields": [field_of_99]}})
    with pytest.raises(ValidationFailed, match="Cannot find source column for sort field"):
        create(**{"write-order": {"order-id": 1, "fields": [_sort(99)]}})


def test_create_in_v1_refuses_what_only_v3_knows() -> None:
    with pytest.raises(InvalidArgument, match="timestamp_ns is not supported until v3"):
        create(1, schema=schema(field(9, "at", "timestamp_ns")))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (b"", "not valid JSON"),
        (b"[]", "Expected `object`"),
        (b"{}", "missing required field `schema`"),
        (b'{"schema":{"type":"struct","fields":[{"id":1}]}}', r"missing required field `name` - at `\$.fields"),
        (b'{"schema":{"type":"struct","fields":[]},"properties":{"a":1}}', "Expected `str`, got `int`"),
    ],
)
def test_create_says_what_is_wrong_with_the_request(request_: bytes, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        tables.create(request_, uuid=UUID, location=LOCATION, now_ms=NOW)


@pytest.mark.parametrize("uuid", ["", "x", UUID.replace("-", "")])
def test_create_refuses_what_is_no_uuid(uuid: str) -> None:
    with pytest.raises(InvalidArgument, match="Invalid uuid"):
        tables.create(json.dumps({"schema": schema()}).encode(), uuid=uuid, location=LOCATION, now_ms=NOW)
