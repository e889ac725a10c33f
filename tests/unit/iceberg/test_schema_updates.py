"""add-schema, set-current-schema, remove-schemas."""

import pytest

from lakewarden.errors import BadRequest, InvalidArgument, ValidationFailed
from tests.unit.iceberg.documents import commit, create, document, field, schema, schema_of

WIDER = {"action": "add-schema", "schema": schema(field(4, "more", "int"), **{"schema-id": 77, "x": 1})}
LAST = {"action": "set-current-schema", "schema-id": -1}


def test_add_schema_gets_the_next_id_and_raises_the_last_column_id() -> None:
    made = document(commit(create(), WIDER))
    assert [each["schema-id"] for each in made["schemas"]] == [0, 1]
    assert (made["last-column-id"], made["current-schema-id"]) == (4, 0)
    assert made["schemas"][1]["x"] == 1


def test_set_current_schema_minus_one_is_the_last_added() -> None:
    assert document(commit(create(), WIDER, LAST))["current-schema-id"] == 1


def test_add_schema_that_the_table_has_changes_nothing() -> None:
    base = create()
    assert commit(base, {"action": "add-schema", "schema": schema(**{"schema-id": 5})}) is base


def test_set_current_schema_minus_one_after_only_a_known_schema_is_refused() -> None:
    with pytest.raises(ValidationFailed, match="Cannot set last added schema: no schema has been added"):
        commit(create(), {"action": "add-schema", "schema": schema()}, LAST)


def test_set_current_schema_minus_one_after_repeating_a_schema_of_this_commit_is_that_one() -> None:
    other = {"action": "add-schema", "schema": schema(field(5, "other", "int"))}
    assert document(commit(create(), WIDER, other, WIDER, LAST))["current-schema-id"] == 1


def test_last_column_id_never_falls() -> None:
    base = commit(create(), WIDER, LAST)
    narrower = {"action": "add-schema", "schema": schema_of([field(1, "id", "long")])}
    assert document(commit(base, narrower))["last-column-id"] == 4


def test_set_current_schema_to_the_current_one_changes_nothing() -> None:
    base = create()
    assert commit(base, {"action": "set-current-schema", "schema-id": 0}) is base


def test_set_current_schema_to_an_unknown_one_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="Cannot set current schema to unknown schema: 9"):
        commit(create(), {"action": "set-current-schema", "schema-id": 9})


def test_a_current_schema_without_the_column_of_the_default_spec_is_refused() -> None:
    spec = {"fields": [{"source-id": 2, "transform": "day", "name": "d"}]}
    without_day = {"action": "add-schema", "schema": schema_of([field(1, "id", "long")])}
    with pytest.raises(ValidationFailed, match="Cannot find source column for partition field: 1000: d: day"):
        commit(create(**{"partition-spec": spec}), without_day, LAST)


def test_a_schema_of_a_newer_format_version_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="is not supported until v3"):
        commit(create(), {"action": "add-schema", "schema": schema(field(4, "v", "variant"))})


def test_a_schema_of_v3_is_accepted_after_the_upgrade_in_the_same_commit() -> None:
    upgrade = {"action": "upgrade-format-version", "format-version": 3}
    variant = {"action": "add-schema", "schema": schema(field(4, "v", "variant"))}
    assert len(document(commit(create(), upgrade, variant))["schemas"]) == 2


def test_remove_schemas_forgets_them_and_their_ids_are_free_again() -> None:
    base = commit(create(), WIDER, LAST)
    made = document(commit(base, {"action": "remove-schemas", "schema-ids": [0, 55]}))
    assert [each["schema-id"] for each in made["schemas"]] == [1]


def test_remove_schemas_keeps_the_current_one() -> None:
    with pytest.raises(InvalidArgument, match="Cannot remove the current schema"):
        commit(create(), {"action": "remove-schemas", "schema-ids": [0]})


def test_remove_no_schemas_changes_nothing() -> None:
    base = create()
    assert commit(base, {"action": "remove-schemas", "schema-ids": []}) is base


def test_v1_repeats_the_current_schema_for_old_readers() -> None:
    made = document(commit(create(1), WIDER, LAST))
    assert made["schema"] == made["schemas"][1]


def test_a_wrong_schema_is_named_with_its_place() -> None:
    with pytest.raises(BadRequest, match=r"updates\[1\] \(add-schema\): schema: .*`required` - at `\$.fields\[0\]`"):
        commit(create(), WIDER, {"action": "add-schema", "schema": schema_of([{"id": 1, "name": "a", "type": "int"}])})


def test_a_default_of_null_is_no_default_at_any_depth() -> None:
    none = {"initial-default": None, "write-default": None}
    inner = field(11, "x", "int", **none, color=None)
    struct = {"type": "struct", "fields": [inner]}
    pairs = {"type": "map", "key-id": 12, "key": "string", "value-id": 13, "value": struct, "value-required": True}
    tags = {"type": "list", "element-id": 14, "element": pairs, "element-required": True}
    add = {"action": "add-schema", "schema": schema(field(10, "tags", tags, **none), x=1.10)}
    made = document(commit(create(), add))["schemas"][1]
    assert made["x"] == 1.10
    column = made["fields"][3]
    assert column.keys() == {"id", "name", "required", "type"}
    kept = column["type"]["element"]["value"]["fields"][0]
    assert kept == {"id": 11, "name": "x", "required": False, "type": "int", "color": None}


def test_a_current_schema_without_the_column_of_the_default_order_is_refused() -> None:
    by_day = {"source-id": 2, "transform": "identity", "direction": "asc", "null-order": "nulls-last"}
    base = create(**{"write-order": {"order-id": 1, "fields": [by_day]}})
    without_day = {"action": "add-schema", "schema": schema_of([field(1, "id", "long")])}
    with pytest.raises(ValidationFailed, match="Cannot find source column for sort field"):
        commit(base, without_day, LAST)
