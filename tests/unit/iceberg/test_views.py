"""Views: creating, reading, and every update and rule."""

import gzip
import json
from typing import Any

import pytest

from catalog.iceberg import views
from catalog.iceberg.views import ViewMetadata
from lakewarden.errors import BadRequest, CommitFailed, InvalidArgument, ValidationFailed
from tests.unit.iceberg.documents import LOCATION, NOW, OTHER_UUID, UUID, Document, field, raw, schema

LAST = {"action": "set-current-view-version", "view-version-id": -1}
SAME_UUID = {"type": "assert-view-uuid", "uuid": UUID.upper()}
DROP_DIALECT = "replace.drop-dialect.allowed"
HISTORY_SIZE = "version.history.num-entries"


def version(sql: str = "select 1", /, *dialects: str, **members: Any) -> Document:
    queries = [{"type": "sql", "sql": sql, "dialect": each} for each in dialects or ("spark",)]
    found = {"version-id": 1, "timestamp-ms": NOW, "schema-id": 0, "summary": {"engine": "spark"}}
    return found | {"representations": queries, "default-namespace": ["ns"]} | members


def add(sql: str, /, *dialects: str, **members: Any) -> Document:
    return {"action": "add-view-version", "view-version": version(sql, *dialects, **members)}


def properties(**values: str) -> Document:
    return {"action": "set-properties", "updates": values}


def create(**members: Any) -> ViewMetadata:
    """A new view; `members` of the request replace the plain ones."""
    request = {"name": "v", "schema": schema(), "view-version": version(), "properties": {}} | members
    return views.create(json.dumps(request).encode(), uuid=UUID, location=f"{LOCATION}/", now_ms=NOW)


def commit(base: ViewMetadata, *updates: object, requires: tuple[object, ...] = (SAME_UUID,)) -> ViewMetadata:
    return views.commit(base, raw(*requires), raw(*updates), now_ms=NOW + 1000)


def document(metadata: ViewMetadata) -> Document:
    found: Document = json.loads(metadata.encode())
    return found


def test_create_gives_the_version_id_one_and_the_schema_id_zero() -> None:
    wanted = version(**{"version-id": 9, "schema-id": 7, "x": 1.10, "default-catalog": "c"})
    made = create(**{"view-version": wanted}, schema=schema(**{"schema-id": 7}), properties={"a": "b"})
    found = document(made)
    assert found["versions"] == [wanted | {"version-id": 1, "schema-id": 0}]
    assert found["schemas"] == [schema(**{"schema-id": 0})]
    assert found["version-log"] == [{"timestamp-ms": NOW, "version-id": 1}]
    assert (made.uuid, made.location, made.format_version, made.properties) == (UUID, LOCATION, 1, {"a": "b"})


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"view-version": {}}, "view-version: .*`timestamp-ms`"),
        ({"view-version": version(representations=[{"type": "python"}])}, "Invalid enum value 'python'"),
        ({"view-version": version("x", "spark", "SPARK")}, "Cannot add multiple queries for dialect spark"),
        ({"schema": 5}, "schema: Expected `object`"),
        ({"properties": {"a": 1}}, "Expected `str`, got `int`"),
    ],
)
def test_create_refuses(members: Document, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        create(**members)


def test_add_and_set_current_version_logs_it_at_its_own_time() -> None:
    made = document(commit(create(), add("select 2", **{"timestamp-ms": NOW + 5}), LAST))
    assert made["current-version-id"] == 2
    assert made["version-log"][-1] == {"timestamp-ms": NOW + 5, "version-id": 2}


def test_set_current_version_back_is_logged_at_the_commits_time() -> None:
    base = commit(create(), add("select 2"), LAST)
    made = document(commit(base, {"action": "set-current-view-version", "view-version-id": 1}))
    assert made["version-log"][-1] == {"timestamp-ms": NOW + 1000, "version-id": 1}


def test_add_version_that_says_the_same_is_not_added_again() -> None:
    base = create()
    assert commit(base, add("select 1", **{"version-id": 5, "timestamp-ms": 9})) is base
    with pytest.raises(ValidationFailed, match="Cannot set last added version: no version has been added"):
        commit(base, add("select 1"), LAST)


@pytest.mark.parametrize(
    "change",
    [
        {"summary": {}},
        {"default-namespace": []},
        {"default-catalog": "c"},
        {"representations": version("x")["representations"]},
    ],
)
def test_versions_differ_by_what_they_say(change: Document) -> None:
    assert len(document(commit(create(), add("select 1", **change)))["versions"]) == 2


def test_add_version_minus_one_takes_the_schema_of_this_commit() -> None:
    wider = {"action": "add-schema", "schema": schema(field(4, "more", "int"))}
    made = document(commit(create(), wider, add("select 2", **{"schema-id": -1}), LAST))
    assert [each["schema-id"] for each in made["schemas"]] == [0, 1]
    assert made["versions"][1]["schema-id"] == 1


def test_add_schema_that_the_view_has_changes_nothing() -> None:
    base = create()
    assert commit(base, {"action": "add-schema", "schema": schema(**{"schema-id": 4})}) is base


@pytest.mark.parametrize(
    ("update", "error", "message"),
    [
        (add("x", **{"schema-id": 9}), InvalidArgument, "Cannot add version with unknown schema: 9"),
        (add("x", **{"schema-id": -1}), ValidationFailed, "Cannot set last added schema: no schema has been added"),
        (add("x", "spark", "Spark"), InvalidArgument, "Cannot add multiple queries for dialect spark"),
        (LAST, ValidationFailed, "Cannot set last added version"),
        ({"action": "set-current-view-version", "view-version-id": 9}, InvalidArgument, "unknown version: 9"),
        ({"action": "assign-uuid", "uuid": OTHER_UUID}, InvalidArgument, "Cannot reassign uuid"),
        ({"action": "upgrade-format-version", "format-version": 0}, InvalidArgument, "Cannot downgrade v1 view to v0"),
        ({"action": "upgrade-format-version", "format-version": 2}, InvalidArgument, "Unsupported format version: 2"),
        ({"action": "set-location", "location": ""}, InvalidArgument, "Invalid location"),
        ({"action": "add-snapshot"}, BadRequest, r"updates\[0\]: unknown action: add-snapshot; known are add-schema"),
        ({"action": "add-view-version"}, BadRequest, r"updates\[0\] \(add-view-version\): .*`view-version`"),
        (add("x", summary=5), BadRequest, r"\(add-view-version\): view-version: .*`\$.summary`"),
    ],
)
def test_commit_refuses(update: Document, error: type[BadRequest], message: str) -> None:
    with pytest.raises(error, match=message):
        commit(create(), update)


def test_updates_that_say_what_is_so_change_nothing() -> None:
    base = create()
    same = (
        {"action": "assign-uuid", "uuid": UUID},
        {"action": "upgrade-format-version", "format-version": 1},
        {"action": "set-location", "location": LOCATION},
        {"action": "set-current-view-version", "view-version-id": 1},
        {"action": "set-properties", "updates": {}},
        {"action": "remove-properties", "removals": []},
    )
    assert commit(base, *same) is base


def test_location_and_properties_are_changed() -> None:
    removal = {"action": "remove-properties", "removals": ["a", "z"]}
    made = commit(
        create(properties={"a": "1"}), properties(b="2"), removal, {"action": "set-location", "location": "s3://n/"}
    )
    assert (made.properties, made.location) == ({"b": "2"}, "s3://n")


def test_losing_a_dialect_is_refused_unless_the_view_allows_it() -> None:
    base = create(**{"view-version": version("select 1", "spark", "trino")})
    with pytest.raises(InvalidArgument, match=r"(?s)Cannot replace view due to loss of view dialects.*trino"):
        commit(base, add("select 2", "SPARK"), LAST)
    made = commit(base, properties(**{DROP_DIALECT: "true"}), add("select 2", "spark"), LAST)
    assert document(made)["current-version-id"] == 2


def test_dropping_and_appending_dialects_exclude_each_other() -> None:
    both = {DROP_DIALECT: "true", "replace.append-dialect.allowed": "true"}
    with pytest.raises(InvalidArgument, match="Cannot set both"):
        commit(create(), properties(**both))


def test_old_versions_expire_and_history_before_a_gap_goes() -> None:
    made = create(properties={HISTORY_SIZE: "2"})
    for number in range(2, 5):
        made = commit(made, add(f"select {number}"), LAST)
    found = document(made)
    assert [each["version-id"] for each in found["versions"]] == [3, 4]
    assert [each["version-id"] for each in found["version-log"]] == [3, 4]


def test_versions_added_now_never_expire_at_once_and_neither_does_the_current_one() -> None:
    base = create(properties={HISTORY_SIZE: "1"})
    found = document(commit(base, add("select 2"), add("select 3")))
    assert [each["version-id"] for each in found["versions"]] == [1, 2, 3]


@pytest.mark.parametrize("size", ["0", "-1", "many", "9" * 5000])
def test_a_history_of_no_size_is_refused(size: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{HISTORY_SIZE} must be positive but was {size}"):
        commit(create(), properties(**{HISTORY_SIZE: size}))


def test_requirements_of_a_view() -> None:
    base = create()
    with pytest.raises(CommitFailed, match=f"Requirement failed: view UUID does not match: expected {UUID} != "):
        commit(base, requires=({"type": "assert-view-uuid", "uuid": OTHER_UUID},))
    with pytest.raises(ValidationFailed, match="Cannot validate assert-table-uuid against a view"):
        commit(base, requires=({"type": "assert-table-uuid", "uuid": UUID},))
    with pytest.raises(BadRequest, match=r"requirements\[0\]: unknown requirement: x"):
        commit(base, requires=({"type": "x"},))


def test_unknown_members_survive_a_commit_byte_for_byte() -> None:
    text = create().encode()[:-1] + b',"x-odd":{"n": 1.10}}'
    made = commit(ViewMetadata.decode(text), add("select 2", color="red"), LAST)
    assert b'"x-odd":{"n": 1.10}' in made.encode()
    assert document(made)["versions"][1]["color"] == "red"


def test_read_file_of_our_own_document_changes_nothing() -> None:
    text = commit(create(), add("select 2"), LAST).encode()
    assert ViewMetadata.read_file(text).encode() == text
    assert ViewMetadata.read_file(gzip.compress(text)).encode() == text
    assert ViewMetadata.decode(text).encode() == text


def test_read_file_fills_in_properties() -> None:
    found = document(create())
    del found["properties"]
    assert ViewMetadata.read_file(json.dumps(found).encode()).properties == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format-version": 2}, "Unsupported format version: 2"),
        ({"view-uuid": "x"}, "Invalid uuid"),
        ({"location": ""}, "Invalid location"),
        ({"current-version-id": 3}, r"Cannot find current version 3 in view versions: \[1\]"),
        ({"versions": [{}]}, r"versions\[0\]: .*`version-id`"),
        ({"versions": [version(), version()]}, "Every one of versions must have an id of its own"),
        ({"versions": [version(**{"schema-id": 4})]}, "Cannot find schema 4 of version 1 in schemas"),
        ({"schemas": [schema()]}, "Every one of schemas must have an id of its own"),
        ({"version-log": [{"version-id": 1}]}, "missing required field `timestamp-ms`"),
    ],
)
def test_read_file_says_what_is_wrong(change: Document, message: str) -> None:
    with pytest.raises(ValidationFailed, match=f"Invalid view metadata file: .*{message}"):
        ViewMetadata.read_file(json.dumps(document(create()) | change).encode())
