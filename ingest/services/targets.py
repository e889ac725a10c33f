"""The tables that events name: found and authorized once, and compared again by each statement that appends."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from catalog import access
from catalog.identifiers import NamespaceIdentifier, TabularIdentifier
from catalog.models import Namespace, Tabular
from lakewarden.authz.actions import NamespaceAction, TableAction
from lakewarden.context import RequestContext
from lakewarden.errors import AlreadyExists, BadRequest, NoSuchTable
from lakewarden.names import check_name, match_key

RESERVED_SUFFIX = "__rejected"
"""Of the pipeline's own tables, for values that do not fit into others."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name led when it was authorized; `table_id` is None for a table that is to be made."""

    namespace_id: UUID
    path_key: str
    name_key: str
    table_id: UUID | None


@dataclass(frozen=True, slots=True)
class Target:
    """`said` is what `IngestBatch.tables` holds of it. The decision was made at the project's `epoch`."""

    said: dict[str, Any]
    place: Place
    epoch: int
    project_id: str


def decide(context: RequestContext, warehouse_id: UUID, table: str, *, default: str) -> Target:
    """Where events for `table` (`name` in the default namespace, or `<namespace>.name`) may be written by the caller.

    An existing table needs the right to write its data, a missing one the right to create tables in its namespace.
    Raises NoSuchNamespace, NoSuchTable and Forbidden as for a request to the catalog, AlreadyExists for the name of
    something that the caller may not see (as for a request to create it), BadRequest for what cannot be a name.
    """
    path, name = parse(table, default=default)
    namespace_ref = NamespaceIdentifier(str(warehouse_id), path)
    ref = TabularIdentifier(namespace_ref, name)
    try:
        found = access.table(context, ref, TableAction.WRITE_DATA).target
    except NoSuchTable:
        context.trail.refused = None  # it may be made
        namespace = access.namespace(context, namespace_ref, NamespaceAction.CREATE_TABLE).target
        if Tabular.objects.kind_of(namespace.id, match_key(name)) is not None:
            raise AlreadyExists(f"Already exists, and is not a table that you may write to: {ref}") from None
        place = Place(namespace.id, namespace.path_key, match_key(name), None)
        return _target(table, namespace, name, place, identifier=None)
    within = found.namespace
    place = Place(within.id, within.path_key, found.name_key, found.id)
    return _target(table, within, found.name, place, identifier=found.uuid)


def parse(table: str, *, default: str) -> tuple[tuple[str, ...], str]:
    """Raises BadRequest (InvalidArgument for a name that no table can have)."""
    namespace, _, name = table.rpartition(".")
    path = tuple((namespace or default).split("."))
    for level in path:
        check_name(level, what="namespace")
    check_name(name, what="table")
    if match_key(name).endswith(RESERVED_SUFFIX):
        raise BadRequest(f"Invalid table name {name!r}: names that end with {RESERVED_SUFFIX} are the pipeline's own")
    return path, name


def _target(table: str, within: Namespace, name: str, place: Place, *, identifier: UUID | None) -> Target:
    shown = None if identifier is None else str(identifier)
    said = {"table": table, "namespace": within.path, "name": name, "id": shown}
    project = within.warehouse.project
    return Target(said, place, project.authz_epoch, project.id)
