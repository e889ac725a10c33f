package trino_test

import data.lakewarden.client
import data.trino
import data.trino.needs

environment := {
	"LAKEWARDEN_URL": "http://lake:8181/",
	"LAKEWARDEN_TOKEN_ENDPOINT": "http://issuer/token",
	"LAKEWARDEN_CLIENT_ID": "opa",
	"LAKEWARDEN_CLIENT_SECRET": "secret",
	"TRINO_CATALOGS": `{"lake": "demo"}`,
	"TRINO_ADMINISTRATORS": `["root"]`,
	"TRINO_NESTED_NAMESPACES": "true",
}

runtime := {"env": environment}

table(name) := {"table": {"catalogName": "lake", "schemaName": "sales.eu", "tableName": name}}

asks(operation, resource) := {
	"context": {"identity": {"user": "anna"}},
	"action": {"operation": operation, "resource": resource},
}

# A Lakewarden in which anna may read the table `orders` and nothing else.
lakewarden(request) := {"status_code": 200, "body": {"access_token": "t"}} if {
	request.url == "http://issuer/token"
}

lakewarden(request) := {"status_code": 200, "body": {"overrides": {"prefix": "w1"}}} if {
	request.url == "http://lake:8181/catalog/v1/config?warehouse=demo"
	request.headers.authorization == "Bearer t"
}

lakewarden(request) := {"status_code": 200, "body": {"results": results}} if {
	request.url == "http://lake:8181/management/v1/action/batch-check"
	results := [{"allowed": is_allowed(check)} | some check in request.body.checks]
}

is_allowed(check) if {
	check.identity.user == "oidc~anna"
	check.operation.table.action in {"read_data", "get_metadata", "include_in_list"}
	check.operation.table["warehouse-id"] == "w1"
	check.operation.table.namespace == ["sales", "eu"]
	check.operation.table.table == "orders"
} else := false

refusing(request) := lakewarden(request) if not contains(request.url, "batch-check")

refusing(request) := {"status_code": 503, "body": {}} if contains(request.url, "batch-check")

short(request) := lakewarden(request) if not contains(request.url, "batch-check")

short(request) := {"status_code": 200, "body": {"results": [{"allowed": true}]}} if contains(request.url, "batch-check")

test_a_reader_reads if {
	trino.allow with input as asks("SelectFromColumns", table("orders"))
		with opa.runtime as runtime
		with http.send as lakewarden
}

test_a_metadata_table_is_read_as_its_table if {
	trino.allow with input as asks("SelectFromColumns", table("orders$snapshots"))
		with opa.runtime as runtime
		with http.send as lakewarden
}

test_other_names_with_a_dollar_are_names if {
	not trino.allow with input as asks("SelectFromColumns", table("orders$mine"))
		with opa.runtime as runtime
		with http.send as lakewarden
}

test_a_reader_does_not_write if {
	every operation in {"InsertIntoTable", "DeleteFromTable", "DropTable", "AddColumn", "NotKnown"} {
		not trino.allow with input as asks(operation, table("orders"))
			with opa.runtime as runtime
			with http.send as lakewarden
	}
}

test_a_name_with_a_dot_is_refused_until_its_meaning_is_set if {
	every changed in [{"TRINO_NESTED_NAMESPACES": "false"}, {"TRINO_NESTED_NAMESPACES": ""}] {
		not trino.allow with input as asks("SelectFromColumns", table("orders"))
			with opa.runtime as {"env": object.union(environment, changed)}
			with http.send as lakewarden
	}
	needs._path("sales.eu") == ["sales.eu"] with opa.runtime as {"env": {"TRINO_NESTED_NAMESPACES": "false"}}
}

test_other_catalogs_are_refused if {
	elsewhere := {"table": {"catalogName": "other", "schemaName": "sales.eu", "tableName": "orders"}}
	not trino.allow with input as asks("SelectFromColumns", elsewhere)
		with opa.runtime as runtime
		with http.send as lakewarden
	trino.allow with input as asks("SelectFromColumns", elsewhere)
		with opa.runtime as {"env": object.union(environment, {"TRINO_OTHER_CATALOGS": "allow"})}
		with http.send as lakewarden
}

test_a_failure_allows_nothing if {
	not trino.allow with input as asks("SelectFromColumns", table("orders"))
		with opa.runtime as runtime
		with http.send as refusing
}

test_an_answer_with_other_results_allows_nothing if {
	given := {
		"context": {"identity": {"user": "anna"}},
		"action": {"operation": "FilterTables", "filterResources": [table("a"), table("b")]},
	}
	count(trino.batch) == 0 with input as given
		with opa.runtime as runtime
		with http.send as short
}

test_lists_hold_what_is_seen if {
	given := {
		"context": {"identity": {"user": "anna"}},
		"action": {"operation": "FilterTables", "filterResources": [table("a"), table("orders"), table("b")]},
	}
	trino.batch == {1} with input as given
		with opa.runtime as runtime
		with http.send as lakewarden
}

test_columns_of_a_table_that_is_seen if {
	resource := {"table": object.union(table("orders").table, {"columns": ["id", "name"]})}
	given := {
		"context": {"identity": {"user": "anna"}},
		"action": {"operation": "FilterColumns", "filterResources": [resource]},
	}
	trino.batch == {0, 1} with input as given
		with opa.runtime as runtime
		with http.send as lakewarden
}

test_queries_of_others_are_for_administrators if {
	query := {"user": {"user": "ben"}}
	not trino.allow with input as asks("ViewQueryOwnedBy", query) with opa.runtime as runtime
	trino.allow with input as asks("ViewQueryOwnedBy", {"user": {"user": "anna"}}) with opa.runtime as runtime
	trino.allow with input as object.union(asks("ViewQueryOwnedBy", query), {"context": {"identity": {"user": "root"}}})
		with opa.runtime as runtime
}

test_a_nested_schema_is_created_by_those_who_may_in_the_one_around_it if {
	needs.of("CreateSchema", {"schema": {"catalogName": "lake", "schemaName": "sales.eu"}}, {}) == [[{"namespace": {
		"action": "create_namespace",
		"warehouse-id": "w1",
		"namespace": ["sales"],
	}}]] with opa.runtime as runtime
		with http.send as lakewarden
}

test_a_rename_needs_rights_at_both_ends if {
	groups := needs.of("RenameTable", table("orders"), table("new")) with opa.runtime as runtime
		with http.send as lakewarden
	[operation | some group in groups; some operation in group] == [
		{"table": {"action": "rename", "warehouse-id": "w1", "namespace": ["sales", "eu"], "table": "orders"}},
		{"namespace": {"action": "create_table", "warehouse-id": "w1", "namespace": ["sales", "eu"]}},
	]
}

test_what_is_refused_is_false if {
	client.allowed("anna", [{"table": {"action": "drop"}}]) == [false] with opa.runtime as runtime
		with http.send as lakewarden
}
