"""Gives a new table's schema its own field ids: a client's are only names for its spec and order to refer to."""

from itertools import count

from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.schema_rewriting import WithoutNullDefaults
from catalog.iceberg.wire import Members


class FreshFieldIds(WithoutNullDefaults):
    """Renumbers one schema from 1. `of` maps the ids that were sent to the new ones."""

    def __init__(self) -> None:
        self._next = count(1)
        self.of: dict[int, int] = {}

    def assign(self, raw: wire.Json, *, schema_id: int) -> Raw:
        """The schema with fresh ids, everything else as it was written; the caller has checked it.

        A struct's fields are numbered before what is nested in them, as all Iceberg libraries do.
        """
        found = self.rewrite(raw)
        if "identifier-field-ids" in found:
            sent = wire.value(found["identifier-field-ids"], "schema")
            found["identifier-field-ids"] = wire.dump([self.of[each] for each in sent or ()])
        head = {"type": Raw(b'"struct"'), "schema-id": wire.dump(schema_id)}
        return wire.dump(head | {name: each for name, each in found.items() if name not in head})

    @property
    def last_id(self) -> int:
        """The highest id that was given, 0 before the first."""
        return len(self.of)

    def field(self, members: Members) -> None:
        super().field(members)
        self._renumber(members, "id")

    def list_(self, members: Members) -> None:
        self._renumber(members, "element-id")

    def map_(self, members: Members) -> None:
        self._renumber(members, "key-id")
        self._renumber(members, "value-id")

    def _renumber(self, members: Members, name: str) -> None:
        new_id = next(self._next)
        self.of[wire.value(members[name], name)] = new_id
        members[name] = wire.dump(new_id)
