"""Rewrites a schema's JSON field by field and leaves every other byte as it was written."""

from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.wire import Members


class SchemaRewriter:
    """Walks a schema that was checked before; a struct's fields come before what is nested in them.

    Subclasses change the members that they are given.
    """

    def field(self, members: Members) -> None:
        """A struct's field."""

    def list_(self, members: Members) -> None:
        """A list type."""

    def map_(self, members: Members) -> None:
        """A map type."""

    def rewrite(self, schema: wire.Json) -> Members:
        """The members of the schema, its fields rewritten."""
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
    """Leaves out defaults that are null: they mean the same as none, and Java readers choke on them."""

    def field(self, members: Members) -> None:
        for name in ("initial-default", "write-default"):
            if name in members and wire.is_null(members[name]):
                del members[name]
