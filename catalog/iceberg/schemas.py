"""Reads, checks, indexes and compares schemas."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from msgspec import Raw

from catalog.iceberg import default_values, wire
from catalog.iceberg.primitive_types import Primitive, primitive
from catalog.iceberg.schema_rewriting import WithoutNullDefaults
from catalog.iceberg.types import AnyType, ListType, MapType, NestedField, StructType, kind_of
from catalog.iceberg.wire import Int32, Wire
from lakewarden.errors import BadRequest, InvalidArgument, ValidationFailed

FIELD_LIMIT: Final = 10_000
"""A new schema must have fewer fields than this, including nested ones."""
NAMES_LIMIT: Final = 32 * 1024 * 1024
"""Characters of all full names: each repeats those it is nested in, so a small document could become gigabytes."""
MAX_FIELD_ID: Final = 2**31 - 1 - 200
"""Higher ids are reserved for metadata columns."""


class SchemaDocument(Wire, tag_field="type", tag="struct"):
    fields: list[NestedField]
    schema_id: Int32 | None = None
    identifier_field_ids: list[Int32] | None = None


class _Stored(Wire):
    schema_id: int | None = None


_DECODER = wire.decoder(SchemaDocument)
_STORED = wire.decoder(_Stored)
_SHAPE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Field:
    """A field, list element, map key or map value. `type` is None for a nested type."""

    id: int
    name: str
    required: bool
    kind: str
    type: Primitive | None
    parent: int | None
    initial_default: Any = None
    doc: str | None = None


@dataclass(slots=True)
class Schema:
    """A schema with indexes by field id and by full dotted name."""

    schema_id: int | None
    identifier_field_ids: frozenset[int]
    fields: dict[int, Field] = field(default_factory=dict)
    ids_by_name: dict[str, int] = field(default_factory=dict)
    characters: int = 0
    document: SchemaDocument | None = None

    @property
    def shape(self) -> bytes:
        """Equal for equal schemas. It is not computed before it is asked for: a new table's schema has no other."""
        return b"" if self.document is None else _shape(self.document)

    @property
    def highest_field_id(self) -> int:
        return max(self.fields, default=0)

    def ancestors(self, field_id: int) -> Iterator[Field]:
        """The fields that `field_id` is nested in, innermost first."""
        parent = self.fields[field_id].parent
        while parent is not None:
            yield self.fields[parent]
            parent = self.fields[parent].parent


def read(raw: wire.Json, what: str) -> Schema:
    """Read a schema. Raises BadRequest for malformed JSON, InvalidArgument or ValidationFailed if it breaks a rule."""
    document = wire.parse(_DECODER, raw, what)
    schema = Schema(document.schema_id, frozenset(document.identifier_field_ids or ()))
    _struct(schema, document.fields, parent=None, path="")
    schema.document = document
    for field_id in sorted(schema.identifier_field_ids):
        _check_identifier(schema, field_id)
    return schema


def stored_id(raw: wire.Json) -> int:
    return _STORED.decode(raw).schema_id or 0


def stored_shape(raw: wire.Json) -> bytes:
    """`Schema.shape` of a schema that was checked before; much cheaper than to read it."""
    return _shape(_DECODER.decode(raw))


def check_version(schema: Schema, format_version: int) -> None:
    """Raises InvalidArgument for types and initial defaults that the table's format version does not support."""
    problems = []
    for each in schema.fields.values():
        if each.type is not None and each.type.since_version > format_version:
            since = each.type.since_version
            problems.append(f"Invalid type for {each.name}: {each.type.text} is not supported until v{since}")
        if each.initial_default is not None and format_version < default_values.SINCE_VERSION:
            problems.append(
                f"Invalid initial default for {each.name}: non-null default ({each.initial_default}) "
                f"is not supported until v{default_values.SINCE_VERSION}",
            )
    if problems:
        raise InvalidArgument(f"Invalid schema for v{format_version}:\n- " + "\n- ".join(problems))


def check_size(schema: Schema) -> None:
    """Raises BadRequest for a new schema with too many fields, InvalidArgument if field ids are reserved."""
    if len(schema.fields) >= FIELD_LIMIT:
        raise BadRequest(f"Invalid schema: it has {len(schema.fields)} fields, fewer than {FIELD_LIMIT} are allowed")
    if schema.highest_field_id > MAX_FIELD_ID:
        raise InvalidArgument(
            f"Invalid field id {schema.highest_field_id}: ids above {MAX_FIELD_ID} are reserved for metadata columns",
        )


def _shape(document: SchemaDocument) -> bytes:
    """A digest of fields, types, docs, defaults and identifier fields: a table may have a million fields."""
    identifiers = sorted(set(document.identifier_field_ids or ()))
    return blake2b(wire.compact((_shapes(document.fields), identifiers)), digest_size=_SHAPE_BYTES).digest()


def _shapes(fields: list[NestedField]) -> list[Any]:
    return [
        (
            each.id,
            each.name,
            each.required,
            _type_shape(each.type),
            each.doc,
            repr(_default(each.initial_default, each.name)),
            repr(_default(each.write_default, each.name)),
        )
        for each in fields
    ]


def _type_shape(kind: AnyType) -> Any:  # noqa: ANN401 - a tree of tuples
    if isinstance(kind, str):
        return primitive(kind).text
    if isinstance(kind, StructType):
        return ("struct", _shapes(kind.fields))
    if isinstance(kind, ListType):
        return ("list", kind.element_id, kind.element_required, _type_shape(kind.element))
    return ("map", kind.key_id, _type_shape(kind.key), kind.value_id, kind.value_required, _type_shape(kind.value))


def _struct(schema: Schema, fields: list[NestedField], *, parent: int | None, path: str) -> None:
    for each in fields:
        if not each.name:
            raise InvalidArgument(f"Invalid column name of field {each.id}: (empty)")
        name = f"{path}.{each.name}" if path else each.name
        initial, written = _default(each.initial_default, name), _default(each.write_default, name)
        made = _add(
            schema, each.id, name, each.type, required=each.required, parent=parent, initial=initial, doc=each.doc
        )
        if initial is not None:
            default_values.check(initial, each.type, f"initial-default of {name}")
        if written is not None:
            default_values.check(written, each.type, f"write-default of {name}")
        if not isinstance(each.type, str):
            _nested(schema, each.type, made)


def _nested(schema: Schema, kind: AnyType, at: Field) -> None:
    if isinstance(kind, StructType):
        _struct(schema, kind.fields, parent=at.id, path=at.name)
    elif isinstance(kind, ListType):
        name, required = f"{at.name}.element", kind.element_required
        made = _add(schema, kind.element_id, name, kind.element, required=required, parent=at.id)
        _nested(schema, kind.element, made)
    elif isinstance(kind, MapType):
        key = _add(schema, kind.key_id, f"{at.name}.key", kind.key, required=True, parent=at.id)
        _nested(schema, kind.key, key)
        required = kind.value_required
        made = _add(schema, kind.value_id, f"{at.name}.value", kind.value, required=required, parent=at.id)
        _nested(schema, kind.value, made)


def _add(
    schema: Schema,
    field_id: int,
    name: str,
    kind: AnyType,
    *,
    required: bool,
    parent: int | None,
    initial: Any = None,  # noqa: ANN401 - a default value may be of any type
    doc: str | None = None,
) -> Field:
    simple = primitive(kind) if isinstance(kind, str) else None
    label = simple.name if simple else kind_of(kind)
    if field_id in schema.fields:
        other = schema.fields[field_id].name
        raise InvalidArgument(f"Multiple fields with the id {field_id}: {other} and {name}")
    if name in schema.ids_by_name:
        other_id = schema.ids_by_name[name]
        raise ValidationFailed(f"Invalid schema: multiple fields for name {name}: {other_id} and {field_id}")
    if required and label == "unknown":
        raise InvalidArgument(f"Cannot create required field with unknown type: {name}")
    schema.characters += len(name)
    if schema.characters > NAMES_LIMIT:
        raise BadRequest(
            f"Invalid schema: the full names of its fields, such as a.b.c, have more than {NAMES_LIMIT} characters "
            "together: use shorter names, or nest fewer fields"
        )
    made = Field(field_id, name, required, label, simple, parent, initial, doc)
    schema.fields[field_id] = made
    schema.ids_by_name[name] = field_id
    return made


def _default(raw: Raw, name: str) -> Any:  # noqa: ANN401 - a default value may be of any type
    return None if raw is wire.NULL else wire.value(raw, f"default of {name}")


def _check_identifier(schema: Schema, field_id: int) -> None:
    found = schema.fields.get(field_id)
    if found is None:
        raise InvalidArgument(f"Cannot add fieldId {field_id} as an identifier field: field does not exist")
    start = f"Cannot add field {found.name} as an identifier field"
    if found.type is None or found.kind in {"variant", "geometry", "geography"}:
        raise InvalidArgument(f"{start}: not a primitive type field")
    if not found.required:
        raise InvalidArgument(f"{start}: not a required field")
    # two engines may disagree whether NaN or -0.0 are equal
    if found.kind in {"float", "double"}:
        raise InvalidArgument(f"{start}: must not be float or double field")
    for outer in schema.ancestors(field_id):
        if outer.kind != "struct":
            raise InvalidArgument(f"{start}: must not be nested in {outer.name}, a {outer.kind}")
        # where the outer struct is null, the row would have no identity
        if not outer.required:
            raise InvalidArgument(f"{start}: must not be nested in an optional field {outer.name}")


def with_id(raw: wire.Json, schema_id: int, what: str) -> Raw:
    """The schema as the client wrote it, with another `schema-id` and without defaults that are null."""
    # rewriting visits every field; this test skips it for nearly all schemas
    found = WithoutNullDefaults().rewrite(raw) if b"null" in bytes(raw) else wire.members(raw, what)
    head = {"type": found.pop("type", Raw(b'"struct"')), "schema-id": wire.dump(schema_id)}
    found.pop("schema-id", None)
    return wire.dump(head | found)
