"""Reads, checks, compares and renumbers partition specs."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.schemas import Schema
from catalog.iceberg.transforms import Transform, transform
from catalog.iceberg.wire import Int32, Wire
from lakewarden.errors import InvalidArgument, ValidationFailed

FIRST_FIELD_ID: Final = 1000
LAST_ID_OF_UNPARTITIONED: Final = FIRST_FIELD_ID - 1
FIRST_VERSION_WITH_FREE_IDS: Final = 2


class FieldDocument(Wire):
    source_id: Int32
    transform: str
    name: str
    field_id: Int32 | None = None


class SpecDocument(Wire):
    fields: list[FieldDocument]
    spec_id: Int32 | None = None


_SPEC = wire.decoder(SpecDocument)


@dataclass(frozen=True, slots=True)
class PartitionField:
    source_id: int
    transform: Transform
    name: str
    field_id: int | None

    def __str__(self) -> str:
        return f"{self.field_id}: {self.name}: {self.transform.text}({self.source_id})"


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    spec_id: int | None
    fields: tuple[PartitionField, ...]

    @property
    def last_field_id(self) -> int:
        """The highest partition field id; 999 if there is none."""
        return max((each.field_id or 0 for each in self.fields), default=LAST_ID_OF_UNPARTITIONED)

    @property
    def shape(self) -> tuple[tuple[int, str, str], ...]:
        """Equal for specs that are the same except for their field ids."""
        return tuple((each.source_id, each.transform.text, each.name) for each in self.fields)


class FieldIds:
    """The ids that fields of stored specs have, by source and transform; the last spec's counts."""

    def __init__(self, specs: Iterable[PartitionSpec]) -> None:
        self._ids: defaultdict[tuple[int, str], dict[int | None, int | None]] = defaultdict(dict)
        for each in specs:
            self.add(each)

    def find(self, field: PartitionField) -> int | None:
        found = self._ids.get((field.source_id, field.transform.text))
        # dicts keep the order of insertion, so this is the spec that was added last
        return next(reversed(found.values())) if found else None

    def add(self, spec: PartitionSpec) -> None:
        for each in spec.fields:
            self._ids[each.source_id, each.transform.text][spec.spec_id] = each.field_id

    def remove(self, spec: PartitionSpec) -> None:
        for each in spec.fields:
            self._ids[each.source_id, each.transform.text].pop(spec.spec_id, None)


def read(raw: wire.Json, what: str) -> PartitionSpec:
    """Read a spec. Raises InvalidArgument for empty or repeated names and repeated field ids."""
    document = wire.parse(_SPEC, raw, what)
    fields = tuple(
        PartitionField(each.source_id, transform(each.transform), each.name, each.field_id) for each in document.fields
    )
    names: set[str] = set()
    ids: set[int] = set()
    for each in fields:
        if not each.name:
            raise InvalidArgument(f"Cannot use empty partition name: {each}")
        if each.name in names:
            raise InvalidArgument(f"Cannot use partition name more than once: {each.name}")
        if each.field_id in ids:
            raise InvalidArgument(f"Cannot use partition field id more than once: {each.field_id}")
        names.add(each.name)
        if each.field_id is not None:
            ids.add(each.field_id)
    return PartitionSpec(document.spec_id, fields)


def check_names(spec: PartitionSpec, schema: Schema) -> None:
    """Raises InvalidArgument if a partition field has the name of a column that is not its source."""
    for each in spec.fields:
        taken = schema.ids_by_name.get(each.name)
        if each.source_id in schema.fields and taken not in {None, each.source_id}:
            raise InvalidArgument(
                f"Cannot create identity partition sourced from different field in schema: {each.name}",
            )


def check_sources(spec: PartitionSpec, schema: Schema) -> None:
    """Raises ValidationFailed unless each source is a primitive column, nested in structs only, that the transform
    accepts.
    """
    for each in spec.fields:
        # format v1 replaces a dropped partition field by void, and its source column may be dropped, too
        if each.transform.is_void:
            continue
        source = schema.fields.get(each.source_id)
        if source is None:
            raise ValidationFailed(f"Cannot find source column for partition field: {each}")
        if source.type is None or source.kind == "variant":
            raise ValidationFailed(f"Cannot partition by non-primitive source field: {source.kind} {source.name}")
        if not each.transform.takes(source.kind):
            raise ValidationFailed(f"Invalid source type {source.type.text} for transform: {each.transform.text}")
        for outer in schema.ancestors(each.source_id):
            if outer.kind != "struct":
                raise ValidationFailed(f"Invalid partition field parent: {outer.kind} {outer.name}")


def check_sequential(spec: PartitionSpec) -> None:
    """Raises ValidationFailed unless the field ids are 1000, 1001, …: files of format v1 do not contain field ids."""
    for position, each in enumerate(spec.fields, FIRST_FIELD_ID):
        if each.field_id != position:
            raise ValidationFailed(f"Spec does not use sequential IDs that are required in v1: {each}")


def with_ids(raw: wire.Json, spec_id: int, field_ids: list[int], what: str) -> Raw:
    """The spec as the client wrote it, with this `spec-id` and these `field-id`s."""
    found = wire.members(raw, what)
    fields = [wire.members(each, what) for each in wire.items(found["fields"], what)]
    for each, field_id in zip(fields, field_ids, strict=True):
        each["field-id"] = wire.dump(field_id)
    found.pop("spec-id", None)
    return wire.dump({"spec-id": spec_id} | found | {"fields": fields})
