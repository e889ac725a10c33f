"""Reads, checks, compares and renumbers sort orders."""

from dataclasses import dataclass
from typing import Final, Literal

from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.schemas import Schema
from catalog.iceberg.transforms import Transform, transform
from catalog.iceberg.wire import Int32, Wire
from lakewarden.errors import InvalidArgument, ValidationFailed

UNSORTED_ID: Final = 0
FIRST_ID: Final = 1


class FieldDocument(Wire):
    source_id: Int32
    transform: str
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]


class OrderDocument(Wire):
    fields: list[FieldDocument]
    order_id: Int32 | None = None


_ORDER = wire.decoder(OrderDocument)


@dataclass(frozen=True, slots=True)
class SortField:
    source_id: int
    transform: Transform
    direction: str
    null_order: str

    def __str__(self) -> str:
        return f"{self.transform.text}({self.source_id}) {self.direction} {self.null_order}"


@dataclass(frozen=True, slots=True)
class SortOrder:
    """A sort order; orders with the same `fields` are equal."""

    order_id: int | None
    fields: tuple[SortField, ...]

    @property
    def is_unsorted(self) -> bool:
        return not self.fields


def read(raw: wire.Json, what: str) -> SortOrder:
    """Read an order. Raises InvalidArgument if only one of these is true: its id is 0; it has no fields."""
    document = wire.parse(_ORDER, raw, what)
    fields = tuple(
        SortField(each.source_id, transform(each.transform), each.direction, each.null_order)
        for each in document.fields
    )
    order = SortOrder(document.order_id, fields)
    if order.is_unsorted and order.order_id not in {None, UNSORTED_ID}:
        raise InvalidArgument(f"Unsorted order ID must be 0, got {order.order_id}")
    if not order.is_unsorted and order.order_id == UNSORTED_ID:
        raise InvalidArgument("Sort order ID 0 is reserved for unsorted order")
    return order


def check_sources(order: SortOrder, schema: Schema) -> None:
    """Raises ValidationFailed unless each source is a primitive column that the transform accepts."""
    for each in order.fields:
        source = schema.fields.get(each.source_id)
        if source is None:
            raise ValidationFailed(f"Cannot find source column for sort field: {each}")
        if source.type is None or source.kind == "variant":
            raise ValidationFailed(f"Cannot sort by non-primitive source field: {source.kind} {source.name}")
        if not each.transform.takes(source.kind):
            raise ValidationFailed(f"Invalid source type {source.type.text} for transform: {each.transform.text}")


def with_id(raw: wire.Json, order_id: int, what: str) -> Raw:
    """The order as the client wrote it, with another `order-id`."""
    found = wire.members(raw, what)
    found.pop("order-id", None)
    return wire.dump({"order-id": order_id} | found)
