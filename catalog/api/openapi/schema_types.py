"""The wire types of the catalog API by their names in the OpenAPI document, and details that types cannot express."""

from typing import Any, Final, Literal

import msgspec

from catalog.api import multi_table_commit, signing, wire_types
from catalog.api.generic_tables import wire_types as generic_wire
from catalog.iceberg import (
    partition_and_sort_updates,
    partition_specs,
    ref_updates,
    refs,
    requirements,
    schema_updates,
    schemas,
    snapshot_updates,
    sort_orders,
    statistics_updates,
    table_creation,
    table_metadata_reader,
    table_updates,
    types,
    view_draft,
    view_updates,
    views,
    wire,
)
from catalog.services import generic_tables, tables
from catalog.services import views as view_services


class ErrorModel(msgspec.Struct, forbid_unknown_fields=True):
    message: str
    type: str
    code: int


class Error(msgspec.Struct, forbid_unknown_fields=True):
    error: ErrorModel


class TokenError(msgspec.Struct, forbid_unknown_fields=True):
    error: Literal["unsupported_grant_type"]
    error_description: str


class TokenRequest(msgspec.Struct):
    grant_type: str


class ChangedProperties(msgspec.Struct):
    updated: list[str]
    removed: list[str]
    missing: list[str]


class LoadedTable(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    metadata: table_metadata_reader.TableDocument
    config: dict[str, str]
    metadata_location: str | None = None
    storage_credentials: list[wire_types.StorageCredential] = []


class CommittedTable(msgspec.Struct, rename="kebab"):
    metadata_location: str
    metadata: table_metadata_reader.TableDocument


class LoadedView(msgspec.Struct, rename="kebab"):
    metadata_location: str
    metadata: views.ViewDocument
    config: dict[str, str]


NAMES: Final[dict[type, str]] = {
    ErrorModel: "ErrorModel",
    Error: "Error",
    TokenError: "TokenError",
    TokenRequest: "TokenRequest",
    wire_types.CatalogConfig: "CatalogConfig",
    wire_types.CreateNamespace: "CreateNamespace",
    wire_types.NamespaceDetails: "NamespaceDetails",
    wire_types.NamespaceList: "NamespaceList",
    wire_types.UpdateProperties: "UpdateProperties",
    ChangedProperties: "ChangedProperties",
    wire_types.Identifier: "Identifier",
    wire_types.IdentifierList: "IdentifierList",
    wire_types.Rename: "Rename",
    wire_types.Register: "RegisterTable",
    wire_types.RegisterView: "RegisterView",
    wire_types.MetricsReport: "MetricsReport",
    wire_types.StorageCredential: "StorageCredential",
    wire_types.Credentials: "Credentials",
    signing.RemoteSignRequest: "RemoteSignRequest",
    signing.RemoteSignResult: "RemoteSignResult",
    LoadedTable: "LoadedTable",
    CommittedTable: "CommittedTable",
    LoadedView: "LoadedView",
    tables.CommitTable: "CommitTable",
    view_services.CommitView: "CommitView",
    generic_tables.CreateGenericTable: "CreateGenericTable",
    generic_wire.GenericTableData: "GenericTable",
    generic_wire.LoadedGenericTable: "LoadedGenericTable",
    generic_wire.ListedGenericTable: "ListedGenericTable",
    generic_wire.GenericTableList: "GenericTableList",
    multi_table_commit.TableChange: "TableChange",
    multi_table_commit.CommitTransaction: "CommitTransaction",
    table_metadata_reader.TableDocument: "TableMetadata",
    table_metadata_reader.LogEntry: "SnapshotLogEntry",
    table_metadata_reader.FileEntry: "MetadataLogEntry",
    schemas.SchemaDocument: "Schema",
    types.StructType: "StructType",
    types.ListType: "ListType",
    types.MapType: "MapType",
    types.NestedField: "StructField",
    partition_specs.SpecDocument: "PartitionSpec",
    partition_specs.FieldDocument: "PartitionField",
    sort_orders.OrderDocument: "SortOrder",
    sort_orders.FieldDocument: "SortField",
    snapshot_updates.SnapshotDocument: "Snapshot",
    refs.SnapshotRef: "SnapshotReference",
    statistics_updates.StatisticsFile: "StatisticsFile",
    statistics_updates.BlobMetadata: "BlobMetadata",
    statistics_updates.PartitionStatisticsFile: "PartitionStatisticsFile",
    table_updates.EncryptedKey: "EncryptedKey",
    views.ViewDocument: "ViewMetadata",
    views.HistoryDocument: "ViewHistoryEntry",
    view_draft.ViewVersion: "ViewVersion",
    view_draft.SqlRepresentation: "SqlRepresentation",
}
"""The name of the component for each type."""

READ_TWICE: Final[dict[str, tuple[type, type]]] = {
    "CreateTable": (tables.CreateTable, table_creation.CreateTable),
    "CreateView": (view_services.CreateView, views.CreateView),
}
"""Bodies that are decoded twice: some members by the catalog's services, the others by the metadata engine."""

TABLE_UPDATES: Final[dict[str, type[wire.Wire]]] = {
    "assign-uuid": table_updates.AssignUuid,
    "upgrade-format-version": table_updates.UpgradeFormatVersion,
    "add-schema": schema_updates.AddSchema,
    "set-current-schema": schema_updates.SetCurrentSchema,
    "remove-schemas": schema_updates.RemoveSchemas,
    "add-spec": partition_and_sort_updates.AddSpec,
    "set-default-spec": partition_and_sort_updates.SetDefaultSpec,
    "remove-partition-specs": partition_and_sort_updates.RemovePartitionSpecs,
    "add-sort-order": partition_and_sort_updates.AddSortOrder,
    "set-default-sort-order": partition_and_sort_updates.SetDefaultSortOrder,
    "add-snapshot": snapshot_updates.AddSnapshot,
    "set-snapshot-ref": ref_updates.SetSnapshotRef,
    "remove-snapshots": snapshot_updates.RemoveSnapshots,
    "remove-snapshot-ref": ref_updates.RemoveSnapshotRef,
    "set-location": table_updates.SetLocation,
    "set-properties": table_updates.SetProperties,
    "remove-properties": table_updates.RemoveProperties,
    "set-statistics": statistics_updates.SetStatistics,
    "remove-statistics": statistics_updates.RemoveStatistics,
    "set-partition-statistics": statistics_updates.SetPartitionStatistics,
    "remove-partition-statistics": statistics_updates.RemovePartitionStatistics,
    "add-encryption-key": table_updates.AddEncryptionKey,
    "remove-encryption-key": table_updates.RemoveEncryptionKey,
}
VIEW_UPDATES: Final[dict[str, type[wire.Wire]]] = {
    **{
        action: TABLE_UPDATES[action]
        for action in ("assign-uuid", "upgrade-format-version", "add-schema", "set-location", "set-properties")
    },
    "remove-properties": table_updates.RemoveProperties,
    "add-view-version": view_updates.AddViewVersion,
    "set-current-view-version": view_updates.SetCurrentViewVersion,
}


class AssertCreate(wire.Wire):
    pass


TABLE_REQUIREMENTS: Final[dict[str, type[wire.Wire]]] = {
    requirements.CREATE: AssertCreate,
    "assert-table-uuid": requirements.AssertUuid,
    "assert-ref-snapshot-id": requirements.AssertRefSnapshotId,
    "assert-last-assigned-field-id": requirements.AssertLastAssignedFieldId,
    "assert-current-schema-id": requirements.AssertCurrentSchemaId,
    "assert-last-assigned-partition-id": requirements.AssertLastAssignedPartitionId,
    "assert-default-spec-id": requirements.AssertDefaultSpecId,
    "assert-default-sort-order-id": requirements.AssertDefaultSortOrderId,
}
VIEW_REQUIREMENTS: Final[dict[str, type[wire.Wire]]] = {requirements.VIEW_UUID: requirements.AssertUuid}

RAW: Final[dict[str, dict[str, str]]] = {
    "CommitTable": {"requirements": "TableRequirement", "updates": "TableUpdate"},
    "CommitView": {"requirements": "ViewRequirement", "updates": "ViewUpdate"},
    "TableChange": {"requirements": "TableRequirement", "updates": "TableUpdate"},
    "CreateTable": {"schema": "Schema", "partition-spec": "PartitionSpec", "write-order": "SortOrder"},
    "CreateView": {"schema": "Schema", "view-version": "ViewVersion"},
    "TableMetadata": {
        "schemas": "Schema",
        "schema": "Schema",
        "partition-specs": "PartitionSpec",
        "partition-spec": "PartitionField",
        "sort-orders": "SortOrder",
    },
    "ViewMetadata": {"schemas": "Schema", "versions": "ViewVersion"},
    "add-schema": {"schema": "Schema"},
    "add-spec": {"spec": "PartitionSpec"},
    "add-sort-order": {"sort-order": "SortOrder"},
    "add-snapshot": {"snapshot": "Snapshot"},
    "set-statistics": {"statistics": "StatisticsFile"},
    "set-partition-statistics": {"partition-statistics": "PartitionStatisticsFile"},
    "add-encryption-key": {"encryption-key": "EncryptedKey"},
    "add-view-version": {"view-version": "ViewVersion"},
}
"""The components of raw members, which are stored as the client wrote them; by component or action."""

MORE: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "CommitTable": {"identifier": {"$ref": "#/components/schemas/Identifier"}},
    "CommitView": {"identifier": {"$ref": "#/components/schemas/Identifier"}},
    "add-schema": {"last-column-id": {"type": "integer", "format": "int32", "deprecated": True}},
    "set-statistics": {"snapshot-id": {"type": "integer", "format": "int64", "deprecated": True}},
}
"""Members that clients send and the server ignores."""

UNIQUE: Final = {
    ("ChangedProperties", "updated"),
    ("IdentifierList", "identifiers"),
    ("NamespaceList", "namespaces"),
    ("UpdateProperties", "removals"),
}
"""Lists without duplicates."""

NULLABLE: Final = {
    ("NamespaceList", "next-page-token"),
    ("IdentifierList", "next-page-token"),
    ("GenericTableList", "next-page-token"),
    ("CreateGenericTable", "base-location"),
    ("CreateGenericTable", "doc"),
    ("TableMetadata", "current-snapshot-id"),
    ("assert-ref-snapshot-id", "snapshot-id"),
}
"""Members in which null has a meaning; other members are omitted instead."""

REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "CreateView": ("properties",),
    "SortOrder": ("order-id",),
    "Snapshot": ("manifest-list", "summary"),
    "assert-ref-snapshot-id": ("snapshot-id",),
    "set-properties": ("updates",),
    "remove-properties": ("removals",),
    "TableMetadata": (
        *("table-uuid", "schemas", "current-schema-id", "partition-specs", "default-spec-id", "last-partition-id"),
        *("sort-orders", "default-sort-order-id", "properties", "current-snapshot-id", "refs", "snapshots"),
        *("statistics", "partition-statistics", "snapshot-log", "metadata-log"),
    ),
    "ViewMetadata": ("properties",),
}
"""Members that are optional for the server's decoder but that it always writes, or that clients must send."""

HIDDEN: Final = {("set-properties", "updated"), ("remove-properties", "removed")}
"""Members that the server only accepts for old clients."""

_DEFAULT = {"anyOf": [{"type": "boolean"}, {"type": "number"}, {"type": "string"}]}
_KIND_OF_REF = {"type": "string", "enum": ["branch", "tag"]}
EXACT: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("SnapshotReference", "type"): _KIND_OF_REF,
    ("set-snapshot-ref", "type"): _KIND_OF_REF,
    ("StructField", "initial-default"): _DEFAULT,
    ("StructField", "write-default"): _DEFAULT,
    ("ErrorModel", "code"): {"type": "integer", "minimum": 400, "maximum": 599},
    ("TableMetadata", "format-version"): {"type": "integer", "minimum": 1, "maximum": 3},
    **{(name, member): {} for name in ("CreateGenericTable", "GenericTable") for member in ("schema", "statistics")},
    ("CreateGenericTable", "format"): {"type": "string", "pattern": f"^{generic_tables.FORMAT.pattern}$"},
    ("ViewMetadata", "format-version"): {"type": "integer", "const": 1},
    ("Snapshot", "summary"): {
        "type": "object",
        "properties": {"operation": {"type": "string", "enum": ["append", "replace", "overwrite", "delete"]}},
        "required": ["operation"],
        "additionalProperties": {"type": "string"},
    },
}
"""Members whose schema is narrower than their type."""
