"""Rewrites the JSON of a schema field by field; everything else stays as the client wrote it."""

from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.wire import Members


class SchemaRewriter:
    """Visits all fields of a schema that was checked before; a struct's fields come before the fields nested in them.

    Subclasses override the methods, which may change `members`.
    """

    def field(self, members: Members) -> None:
        """Called for a field of a struct."""

    def list_(self, members: Members) -> None:
        """Called for a list type."""

    def map_(self, members: Members) -> None:
        """Called for a map type."""

    def rewrite(self, schema: wire.Json) -> Members:
        """The members of the schema with rewritten fields."""
        found = wire.members(schema, "schema")
        found["fields"] = self._fields(found["fields"])
        return found

    def _fields(self, raw: Raw) -> Raw:
        fields = [wire.members(each, "field") for each in wire.items(raw, "fields")]
        for each in fields:
            self.field(each)
        for each in fields:
            each["type"] = self._type(each["type"])
        return wire.dump(fields)

    def _type(self, raw: Raw) -> Raw:
        if bytes(raw).lstrip()[:1] == b'"':
            return raw
        found = wire.members(raw, "type")
        kind = wire.value(found["type"], "type")
        if kind == "struct":
            found["fields"] = self._fields(found["fields"])
        elif kind == "list":
            self.list_(found)
            found["element"] = self._type(found["element"])
        else:
            self.map_(found)
            found["key"] = self._type(found["key"])
            found["value"] = self._type(found["value"])
        return wire.dump(found)


class WithoutNullDefaults(SchemaRewriter):
    """Removes defaults that are null: they have no meaning, and Iceberg's Java library fails on them."""

    def field(self, members: Members) -> None:
        for name in ("initial-default", "write-default"):
            if name in members and wire.is_null(members[name]):
                del members[name]
