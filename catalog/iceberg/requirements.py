"""Checks the requirements of a commit against the current table or view (spec schema TableRequirement)."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from catalog.iceberg import wire
from catalog.iceberg.table_draft import TableDraft
from catalog.iceberg.wire import Int32, Int64, Json, Wire
from lakewarden.errors import BadRequest, CommitFailed, InvalidArgument, ValidationFailed

R = TypeVar("R")
Check = Callable[[TableDraft, Json, str], None]


class Requirement(Wire):
    type: str


class AssertUuid(Wire):
    uuid: str


class AssertRefSnapshotId(Wire):
    """If the snapshot id is missing or null, the ref must not exist."""

    ref: str
    snapshot_id: Int64 | None = None


class AssertLastAssignedFieldId(Wire):
    last_assigned_field_id: Int32


class AssertCurrentSchemaId(Wire):
    current_schema_id: Int32


class AssertLastAssignedPartitionId(Wire):
    last_assigned_partition_id: Int32


class AssertDefaultSpecId(Wire):
    default_spec_id: Int32


class AssertDefaultSortOrderId(Wire):
    default_sort_order_id: Int32


CREATE: Final = "assert-create"
VIEW_UUID: Final = "assert-view-uuid"
_REQUIREMENT = wire.decoder(Requirement)
_UUID = wire.decoder(AssertUuid)


def failed(reason: str) -> CommitFailed:
    """The error for a requirement that is not met."""
    return CommitFailed(f"Requirement failed: {reason}")


def _typed(shape: type[R], check: Callable[[TableDraft, R], None]) -> Check:
    decoder = wire.decoder(shape)

    def parse_and_check(table: TableDraft, raw: Json, what: str) -> None:
        check(table, wire.parse(decoder, raw, what))

    return parse_and_check


def check_table_uuid(table: TableDraft, requirement: AssertUuid) -> None:
    uuid = table.text("table-uuid")
    # clients write UUIDs in either case, and the document keeps what its writer wrote
    if requirement.uuid.lower() != uuid.lower():
        raise failed(f"UUID does not match: expected {uuid} != {requirement.uuid}")


def check_ref_snapshot_id(table: TableDraft, requirement: AssertRefSnapshotId) -> None:
    name, expected = requirement.ref, requirement.snapshot_id
    ref = table.refs.find(name)
    if ref is None:
        if expected is not None:
            raise failed(f"branch or tag {name} is missing, expected {expected}")
    elif expected is None:
        raise failed(f"{ref.type} {name} was created concurrently")
    elif ref.snapshot_id != expected:
        raise failed(f"{ref.type} {name} has changed: expected id {expected} != {ref.snapshot_id}")


def _check_id(table: TableDraft, member: str, words: str, expected: int) -> None:
    found = table.long(member)
    if found != expected:
        raise failed(f"{words} changed: expected id {expected} != {found}")


def check_last_field_id(table: TableDraft, requirement: AssertLastAssignedFieldId) -> None:
    _check_id(table, "last-column-id", "last assigned field id", requirement.last_assigned_field_id)


def check_current_schema_id(table: TableDraft, requirement: AssertCurrentSchemaId) -> None:
    _check_id(table, "current-schema-id", "current schema", requirement.current_schema_id)


def check_last_partition_id(table: TableDraft, requirement: AssertLastAssignedPartitionId) -> None:
    expected = requirement.last_assigned_partition_id
    _check_id(table, "last-partition-id", "last assigned partition id", expected)


def check_default_spec_id(table: TableDraft, requirement: AssertDefaultSpecId) -> None:
    _check_id(table, "default-spec-id", "default partition spec", requirement.default_spec_id)


def check_default_sort_order_id(table: TableDraft, requirement: AssertDefaultSortOrderId) -> None:
    _check_id(table, "default-sort-order-id", "default sort order", requirement.default_sort_order_id)


CHECKS: Final[dict[str, Check]] = {
    "assert-table-uuid": _typed(AssertUuid, check_table_uuid),
    "assert-ref-snapshot-id": _typed(AssertRefSnapshotId, check_ref_snapshot_id),
    "assert-last-assigned-field-id": _typed(AssertLastAssignedFieldId, check_last_field_id),
    "assert-current-schema-id": _typed(AssertCurrentSchemaId, check_current_schema_id),
    "assert-last-assigned-partition-id": _typed(AssertLastAssignedPartitionId, check_last_partition_id),
    "assert-default-spec-id": _typed(AssertDefaultSpecId, check_default_spec_id),
    "assert-default-sort-order-id": _typed(AssertDefaultSortOrderId, check_default_sort_order_id),
}
_KNOWN: Final = sorted({*CHECKS, CREATE, VIEW_UUID})


def _types(requirements: Sequence[Json]) -> list[str]:
    found = []
    for position, raw in enumerate(requirements):
        what = f"requirements[{position}]"
        wire.check_text(raw, what)
        # Iceberg's Java library ignores case here, too
        type_ = wire.parse(_REQUIREMENT, raw, what).type.lower()
        if type_ not in _KNOWN:
            raise BadRequest(f"{what}: unknown requirement: {type_}; known are {', '.join(_KNOWN)}")
        found.append(type_)
    return found


def is_create(requirements: Sequence[Json]) -> bool:
    """Whether a commit creates its table (assert-create). Raises InvalidArgument if it has other requirements, too."""
    return _is_create(_types(requirements))


def _is_create(types: Sequence[str]) -> bool:
    others = [each for each in types if each != CREATE]
    if len(others) == len(types):
        return False
    if others:
        raise InvalidArgument(f"Invalid create requirements: {', '.join(others)}; assert-create stands alone")
    return True


def check_table(table: TableDraft | None, requirements: Sequence[Json]) -> None:
    """Check all requirements; `table` is None if it does not exist.

    Raises CommitFailed for the first that is not met.
    """
    types = _types(requirements)
    if _is_create(types):
        if table is not None:
            raise failed("table already exists")
        return
    for position, type_ in enumerate(types):
        if type_ == VIEW_UUID:
            raise ValidationFailed(f"Cannot validate {type_} against a table")
        if table is None:
            raise failed("table does not exist")
        CHECKS[type_](table, requirements[position], f"requirements[{position}] ({type_})")


def check_view(uuid: str, requirements: Sequence[Json]) -> None:
    """Check all requirements of a view, for which only assert-view-uuid exists. Raises CommitFailed."""
    for position, type_ in enumerate(_types(requirements)):
        if type_ != VIEW_UUID:
            raise ValidationFailed(f"Cannot validate {type_} against a view")
        expected = wire.parse(_UUID, requirements[position], f"requirements[{position}] ({type_})").uuid
        if expected.lower() != uuid.lower():
            raise failed(f"view UUID does not match: expected {uuid} != {expected}")
