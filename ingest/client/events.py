"""A change of a row, as the gateway takes it."""

from collections.abc import Mapping
from typing import Literal

import msgspec

Operation = Literal["INSERT", "UPDATE", "DELETE"]
OPERATIONS: tuple[Operation, ...] = ("INSERT", "UPDATE", "DELETE")

Row = Mapping[str, object] | msgspec.Raw


class ChangeEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One change. `sequence` grows with each event of a source; `timestamp` is in milliseconds since 1970.

    INSERT and UPDATE carry the row in `after`; DELETE may carry it in `before`. `table` is `name` or `namespace.name`.
    `row_id` identifies the row in its table. Rows given as `msgspec.Raw` are sent byte for byte.
    """

    sequence: int
    timestamp: int
    operation: Operation
    table: str
    row_id: str
    before: Row | None = None
    after: Row | None = None
    metadata: Row | None = None

    def encoded(self) -> bytes:
        return msgspec.json.encode(self)
