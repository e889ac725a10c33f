"""Assigns new field ids to a new table's schema; the client's ids only serve as references in its spec and order."""

from itertools import count

from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.schema_rewriting import WithoutNullDefaults
from catalog.iceberg.wire import Members


class FreshFieldIds(WithoutNullDefaults):
    """Renumbers the fields of a schema from 1. `of` maps the client's ids to the new ones."""

    def __init__(self) -> None:
        self._next = count(1)
        self.of: dict[int, int] = {}

    def assign(self, raw: wire.Json, *, schema_id: int) -> Raw:
        """The schema with new ids, otherwise unchanged; it must have been checked before.

        The fields of a struct are numbered before the fields nested in them, as in all Iceberg libraries.
        """
        found = self.rewrite(raw)
        if "identifier-field-ids" in found:
            sent = wire.value(found["identifier-field-ids"], "schema")
            found["identifier-field-ids"] = wire.dump([self.of[each] for each in sent or ()])
        head = {"type": Raw(b'"struct"'), "schema-id": wire.dump(schema_id)}
        return wire.dump(head | {name: each for name, each in found.items() if name not in head})

    @property
    def last_id(self) -> int:
        """The highest assigned id; 0 if there is none."""
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
