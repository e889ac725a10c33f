"""Requirements: which hold, and what the failures say."""

import pytest

from catalog.iceberg import tables
from lakewarden.errors import BadRequest, CommitFailed, InvalidArgument, ValidationFailed
from tests.unit.iceberg.documents import OTHER_UUID, UUID, Document, appended, commit, create, raw, ref

NOTHING = {"action": "set-properties", "updates": {}}


def ref_is(name: str, snapshot_id: int | None) -> Document:
    return {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": snapshot_id}


@pytest.mark.parametrize(
    "requirement",
    [
        {"type": "assert-table-uuid", "uuid": UUID.upper()},
        {"type": "ASSERT-TABLE-UUID", "uuid": UUID},
        ref_is("main", 2),
        ref_is("dev", None),
        {"type": "assert-ref-snapshot-id", "ref": "dev"},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 3},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
        {"type": "assert-default-spec-id", "default-spec-id": 0},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
    ],
)
def test_a_requirement_that_holds_lets_the_commit_through(requirement: Document) -> None:
    base = appended(1, 2)
    assert commit(base, NOTHING, requires=(requirement,)) is base


@pytest.mark.parametrize(
    ("requirement", "reason"),
    [
        ({"type": "assert-table-uuid", "uuid": OTHER_UUID}, f"UUID does not match: expected {UUID} != {OTHER_UUID}"),
        (ref_is("main", 1), "branch main has changed: expected id 1 != 2"),
        (ref_is("v1", 1), "tag v1 has changed: expected id 1 != 2"),
        (ref_is("main", None), "branch main was created concurrently"),
        (ref_is("dev", 5), "branch or tag dev is missing, expected 5"),
        (
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 4},
            "last assigned field id changed: expected id 4 != 3",
        ),
        ({"type": "assert-current-schema-id", "current-schema-id": 1}, "current schema changed: expected id 1 != 0"),
        (
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
            "last assigned partition id changed: expected id 1000 != 999",
        ),
        (
            {"type": "assert-default-spec-id", "default-spec-id": 2},
            "default partition spec changed: expected id 2 != 0",
        ),
        (
            {"type": "assert-default-sort-order-id", "default-sort-order-id": 2},
            "default sort order changed: expected id 2 != 0",
        ),
        ({"type": "assert-create"}, "table already exists"),
    ],
)
def test_a_requirement_that_fails_says_what_was_expected(requirement: Document, reason: str) -> None:
    base = commit(appended(1, 2), ref(2, "v1", type="tag"))
    with pytest.raises(CommitFailed) as caught:
        commit(base, NOTHING, requires=(requirement,))
    assert caught.value.message == f"Requirement failed: {reason}"


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ({"type": "assert-weather"}, r"requirements\[1\]: unknown requirement: assert-weather; known are assert-cr"),
        ({}, r"requirements\[1\]: .*`type`"),
        ({"type": "assert-default-spec-id"}, r"requirements\[1\] \(assert-default-spec-id\): .*`default-spec-id`"),
        ({"type": "assert-table-uuid", "uuid": 5}, "Expected `str`, got `int`"),
        (ref_is("main", 2**63), "Expected `int` <= 9223372036854775807"),
    ],
)
def test_a_wrong_requirement_is_named_with_its_place(requirement: Document, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        commit(create(), NOTHING, requires=({"type": "assert-table-uuid", "uuid": UUID}, requirement))


def test_a_view_requirement_is_refused_for_a_table() -> None:
    with pytest.raises(ValidationFailed, match="Cannot validate assert-view-uuid against a table"):
        commit(create(), NOTHING, requires=({"type": "assert-view-uuid", "uuid": UUID},))


def test_requirement_is_create_tells_and_refuses_company() -> None:
    assert tables.requirement_is_create(raw({"type": "assert-create"}))
    assert not tables.requirement_is_create(raw(ref_is("main", 1)))
    assert not tables.requirement_is_create([])
    with pytest.raises(InvalidArgument, match="Invalid create requirements: assert-ref-snapshot-id"):
        tables.requirement_is_create(raw({"type": "assert-create"}, ref_is("main", 1)))


def test_requirements_are_checked_before_any_update() -> None:
    with pytest.raises(CommitFailed):
        commit(create(), {"action": "nonsense"}, requires=(ref_is("main", 1),))


def test_requirements_of_a_table_that_is_not_there_fail() -> None:
    with pytest.raises(CommitFailed, match="Requirement failed: table does not exist"):
        commit(None, requires=(ref_is("main", None),))
