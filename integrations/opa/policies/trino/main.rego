# METADATA
# title: What Trino asks
# description: |
#   `opa.policy.uri` is /v1/data/trino/allow, `opa.policy.batched-uri` is /v1/data/trino/batch. What no rule names is
#   refused.
package trino

import data.lakewarden.client
import data.lakewarden.settings
import data.trino.needs

user := input.context.identity.user

action := input.action

default allow := false

# Nothing of a catalog is concerned.
allow if permitted(action.operation, object.get(action, "resource", {}))

allow if {
	groups := needs.of(action.operation, action.resource, object.get(action, "targetResource", {}))
	all_hold(groups)
	nothing_is_in_the_way
}

# Each group is a list of operations of which one must be allowed.
all_hold(groups) if {
	count(groups) > 0
	asked := [{"group": group, "operation": operation} | some group, members in groups; some operation in members]
	answers := client.allowed(user, [each.operation | some each in asked])
	met := {asked[i].group | some i; answers[i]}
	count(met) == count(groups)
}

# `CREATE OR REPLACE` asks as `CREATE` does: what is there already may be replaced by those who may drop it.
nothing_is_in_the_way if not action.operation in needs.creations

# This client must see all of the namespace: what is hidden from it would look free.
nothing_is_in_the_way if client.allowed_here(needs.seen_at(action.resource.table)) == [true, false, false]

nothing_is_in_the_way if true in client.allowed(user, needs.replacement_of(action.resource.table))

# The indices of the resources that the user may see, for FilterCatalogs, FilterSchemas, FilterTables and the like.
batch contains i if {
	some i, resource in action.filterResources
	permitted(action.operation, resource)
}

batch contains i if {
	action.operation != "FilterColumns"
	asked := [{"index": index, "operation": operation} |
		some index, resource in action.filterResources
		some operation in needs.of(action.operation, resource, {})[0]
	]
	count(asked) > 0
	answers := client.allowed(user, [each.operation | some each in asked])
	some k, each in asked
	answers[k]
	i := each.index
}

# Columns come as one table with all of its columns: whoever may see the table sees its columns.
batch contains i if {
	action.operation == "FilterColumns"
	some resource in action.filterResources
	_columns_seen(resource)
	some i, _ in resource.table.columns
}

_columns_seen(resource) if permitted(action.operation, resource)

_columns_seen(resource) if all_hold(needs.of(action.operation, resource, {}))

# What needs no right in a catalog.
permitted(operation, _) if operation in {"ExecuteQuery", "SetSystemSessionProperty"}

permitted(operation, _) if {
	operation in {"ReadSystemInformation", "WriteSystemInformation", "ImpersonateUser"}
	user in settings.administrators
}

# one's own queries; of others for administrators
permitted(operation, resource) if {
	operation in {"ViewQueryOwnedBy", "FilterViewQueryOwnedBy", "KillQueryOwnedBy"}
	user in ({resource.user.user} | {each | some each in settings.administrators})
}

# the functions of Trino itself, such as count
permitted(operation, resource) if {
	operation in {"ExecuteFunction", "FilterFunctions", "CreateViewWithExecuteFunction"}
	resource.function.catalogName == "system"
	resource.function.schemaName == "builtin"
}

# Trino's own catalog: its tables show what the other rules let the user see.
permitted(operation, resource) if {
	_catalog(resource) == "system"
	operation in {
		"AccessCatalog", "FilterCatalogs", "ShowSchemas", "FilterSchemas", "ShowTables", "FilterTables", "ShowColumns",
		"FilterColumns", "SelectFromColumns",
	}
}

permitted(_, resource) if {
	settings.other_catalogs == "allow"
	catalog := _catalog(resource)
	not catalog in ({"system"} | object.keys(settings.catalogs))
}

_catalog(resource) := resource.catalog.name

_catalog(resource) := resource.schema.catalogName

_catalog(resource) := resource.table.catalogName

_catalog(resource) := resource.function.catalogName
