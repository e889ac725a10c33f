"""A change that is about to be made, as the rules judge it and as verifiers are asked about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import Raw

from catalog.iceberg.tables import TableMetadata
from catalog.iceberg.views import ViewMetadata
from catalog.models import Namespace
from lakewarden.context import RequestContext

Metadata = TableMetadata | ViewMetadata


class _Snapshot(msgspec.Struct, rename="kebab"):
    snapshot_id: int | None = None
    sequence_number: int | None = None
    summary: dict[str, str] | None = None


class _Update(msgspec.Struct, rename="kebab", omit_defaults=True):
    action: str
    snapshot: _Snapshot | None = None


_UPDATE: Final = msgspec.json.Decoder(_Update)


@dataclass(frozen=True, slots=True)
class About:
    """What is changed: `kind` is `table` or `view`; `uuid` is None for an object that does not exist yet."""

    kind: str
    namespace: Namespace
    name: str
    uuid: str | None = None

    @property
    def shown(self) -> str:
        return f"{self.kind} {self.namespace}.{self.name}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """`before` is None for an object that is new, or new in this place. `change`: commit, create, register, rename."""

    change: str
    about: About
    before: Metadata | None
    after: Metadata
    context: RequestContext
    requirements: Sequence[Raw] = ()
    updates: Sequence[Raw] = ()
    is_dry_run: bool = False

    @property
    def changes_definition(self) -> bool:
        return self.before is None or not _is_defined_as(self.before, self.after)

    def body(self, identifier: UUID) -> bytes:
        """What a verifier receives."""
        about, warehouse = self.about, self.about.namespace.warehouse
        before = {} if self.before is None else self.before.properties
        after = self.after.properties
        return msgspec.json.encode(
            {
                "id": str(identifier),
                "change": self.change,
                "dry-run": self.is_dry_run,
                "object": {
                    "type": about.kind,
                    "project-id": warehouse.project_id,
                    "warehouse-id": str(warehouse.id),
                    "warehouse": warehouse.name,
                    "namespace": about.namespace.path,
                    "name": about.name,
                    "uuid": about.uuid,
                },
                "actor": self.context.caller.id,
                "assumed-role": self.context.caller.assumed_role,
                "request-id": self.context.request_id,
                "old-schema": None if self.before is None else Raw(self.before.current_schema),
                "new-schema": Raw(self.after.current_schema),
                "properties": {
                    "set": {name: value for name, value in after.items() if before.get(name) != value},
                    "removed": sorted(before.keys() - after.keys()),
                },
                "requirements": list(self.requirements),
                "updates": [_summary(each) for each in self.updates],
            }
        )


def _summary(update: Raw) -> dict[str, Any]:
    """Its name, and what a snapshot says of itself; never the update as a whole, which may be large."""
    plain: dict[str, Any] = msgspec.to_builtins(_UPDATE.decode(update))
    return plain


def _is_defined_as(before: Metadata, after: Metadata) -> bool:
    if isinstance(before, TableMetadata) and isinstance(after, TableMetadata):
        return before.is_defined_as(after)
    return isinstance(before, ViewMetadata) and isinstance(after, ViewMetadata) and before.is_defined_as(after)
