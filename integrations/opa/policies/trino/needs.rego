# METADATA
# title: What each operation of Trino needs in Lakewarden
# description: |
#   A list of groups; of each group one check must hold. Trino does not say whether a name is a table's or a view's, so
#   that both are asked. An operation without a rule is undefined, and refused.
package trino.needs

import data.lakewarden.client
import data.lakewarden.settings

# What of a table's name is the name of one of its metadata tables.
_metadata_tables := {
	"all_entries", "all_manifests", "entries", "files", "history", "manifests", "metadata_log_entries", "partitions",
	"position_deletes", "properties", "refs", "snapshots",
}

_information_schema := "information_schema"

# operation -> action on the warehouse
_on_warehouse := {
	"AccessCatalog": "use",
	"FilterCatalogs": "use",
	"SetCatalogSessionProperty": "use",
	"ShowSchemas": "list_namespaces",
}

# operation -> action on the namespace
_on_namespace := {
	"FilterSchemas": "get_metadata",
	"ShowTables": "get_metadata",
	"ShowFunctions": "get_metadata",
	"ShowCreateSchema": "get_metadata",
	"DropSchema": "delete",
	"CreateTable": "create_table",
	"CreateView": "create_view",
}

# operation -> actions on the table, on the view; none where Trino's operation is for the other
_on_tabular := {
	"FilterTables": {"table": "include_in_list", "view": "include_in_list"},
	"ShowColumns": {"table": "get_metadata", "view": "get_metadata"},
	"FilterColumns": {"table": "get_metadata", "view": "get_metadata"},
	"ShowCreateTable": {"table": "get_metadata", "view": "get_metadata"},
	"SelectFromColumns": {"table": "read_data", "view": "select"},
	"CreateViewWithSelectFromColumns": {"table": "read_data", "view": "select"},
	"InsertIntoTable": {"table": "write_data"},
	"DeleteFromTable": {"table": "write_data"},
	"TruncateTable": {"table": "write_data"},
	"UpdateTableColumns": {"table": "write_data"},
	"ExecuteTableProcedure": {"table": "write_data"},
	"AddColumn": {"table": "commit"},
	"AlterColumn": {"table": "commit"},
	"DropColumn": {"table": "commit"},
	"RenameColumn": {"table": "commit"},
	"SetTableProperties": {"table": "commit"},
	"SetTableComment": {"table": "commit"},
	"SetColumnComment": {"table": "commit", "view": "commit"},
	"SetViewComment": {"view": "commit"},
	"RefreshView": {"view": "commit"},
	"DropTable": {"table": "drop"},
	"DropView": {"view": "drop"},
	"RenameTable": {"table": "rename"},
	"RenameView": {"view": "rename"},
}

_created_by_rename := {"RenameTable": "create_table", "RenameView": "create_view"}

of(operation, resource, _) := [[{"warehouse": {
	"action": _on_warehouse[operation],
	"warehouse-id": client.warehouse_id(resource.catalog.name),
}}]] if {
	resource.catalog
}

# Everybody who may use the warehouse: Trino shows in it what the user may see.
of(operation, resource, _) := [[_used(_schema(resource).catalogName)]] if {
	operation in {
		"FilterSchemas", "ShowTables", "FilterTables", "ShowColumns", "FilterColumns", "SelectFromColumns",
		"ShowCreateTable", "ShowCreateSchema",
	}
	_schema(resource).schemaName == _information_schema
}

of(operation, resource, _) := [[_namespace(_schema(resource), _on_namespace[operation])]] if {
	_schema(resource).schemaName != _information_schema
}

of("CreateSchema", resource, _) := [[_container(resource.schema)]]

of(operation, resource, target) := array.concat([_tabular(resource.table, operation)], _destination(operation, target)) if {
	_on_tabular[operation]
	resource.table.schemaName != _information_schema
}

creations := {"CreateTable", "CreateView"}

# What this client itself may see, where something is to be created: the whole namespace, a table, a view.
seen_at(table) := [
	_namespace(table, "read_grants"),
	_named("table", "get_metadata", table),
	_named("view", "get_metadata", table),
]

# What replaces a table or view is, for its owner, its end.
replacement_of(table) := [_named("table", "drop", table), _named("view", "drop", table)]

_destination(operation, target) := [[_namespace(target.table, _created_by_rename[operation])]]

_destination(operation, _) := [] if not _created_by_rename[operation]

_tabular(table, operation) := [_named(kind, action, table) | some kind, action in _on_tabular[operation]]

_named(kind, action, table) := {kind: {
	"action": action,
	"warehouse-id": client.warehouse_id(table.catalogName),
	"namespace": _path(table.schemaName),
	kind: _base_name(table.tableName),
}}

_namespace(schema, action) := {"namespace": {
	"action": action,
	"warehouse-id": client.warehouse_id(schema.catalogName),
	"namespace": _path(schema.schemaName),
}}

_used(catalog) := {"warehouse": {"action": "use", "warehouse-id": client.warehouse_id(catalog)}}

# Where a schema is created: in the namespace around it, else in the warehouse.
_container(schema) := {"warehouse": {
	"action": "create_namespace",
	"warehouse-id": client.warehouse_id(schema.catalogName),
}} if {
	count(_path(schema.schemaName)) == 1
}

_container(schema) := {"namespace": {
	"action": "create_namespace",
	"warehouse-id": client.warehouse_id(schema.catalogName),
	"namespace": array.slice(path, 0, count(path) - 1),
}} if {
	path := _path(schema.schemaName)
	count(path) > 1
}

# Whether Trino means `a.b` as two levels is its own setting (`iceberg.rest-catalog.nested-namespace-enabled`). Until the
# same is said here, such names are refused: the rights on one of the two must not open the other.
_path(name) := [name] if not contains(name, ".")

_path(name) := split(name, ".") if {
	contains(name, ".")
	settings.nested_namespaces == "true"
}

_path(name) := [name] if {
	contains(name, ".")
	settings.nested_namespaces == "false"
}

_base_name(name) := substring(name, 0, at) if {
	at := indexof(name, "$")
	substring(name, at + 1, -1) in _metadata_tables
} else := name

_schema(resource) := resource.schema

_schema(resource) := resource.table
