"""The parameters of the catalog API in its OpenAPI document."""

from typing import Any, Final

_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}


def _in_path(name: str, description: str) -> dict[str, Any]:
    return {"in": "path", "name": name, "required": True, "description": description, "schema": _TEXT}


def _in_query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"in": "query", "name": name, "description": description, "schema": schema}


def _in_header(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"in": "header", "name": name, "description": description, "schema": schema}


PATH_PARAMETERS: Final = {
    "prefix": _in_path("prefix", "The `prefix` in the configuration (`GET /v1/config`): the warehouse's id."),
    "namespace": _in_path("namespace", "The namespace; its levels are separated by `%1F`."),
    "table": _in_path("table", "The table's name."),
    "table_id": _in_path("table_id", "The table's id, its `table-uuid`."),
    "view": _in_path("view", "The view's name."),
}

PARAMETERS: Final = {
    "warehouse": _in_query(
        "warehouse",
        _TEXT,
        "The warehouse's name, or `<project id>/<name>`. A name alone is looked up in the project of `X-Project-Id`, "
        "else in the default project.",
    ),
    "X-Project-Id": _in_header("X-Project-Id", _TEXT, "The project of the warehouse, if `warehouse` does not name it."),
    "pageToken": _in_query(
        "pageToken",
        {"type": ["string", "null"]},
        "The `next-page-token` of the previous page; empty for the first page. Without `pageToken` "
        "and `pageSize` all entries are returned.",
    ),
    "pageSize": _in_query(
        "pageSize", {"type": "integer", "minimum": 1}, "The maximum number of entries on a page, up to 1,000."
    ),
    "parent": _in_query("parent", _TEXT, "Lists the namespaces directly below this one; without it, the top level."),
    "returnUuids": _in_query("returnUuids", _FLAG, "Also returns the id of each entry, in the order of the list."),
    "returnProtectionStatus": _in_query(
        "returnProtectionStatus", _FLAG, "Also returns whether each entry is protected, in the order of the list."
    ),
    "returnUuid": _in_query("returnUuid", _FLAG, "Also returns the namespace's id."),
    "recursive": _in_query(
        "recursive",
        _FLAG,
        "Also drops everything in the namespace. Without it, only an empty namespace can be dropped.",
    ),
    "force": _in_query(
        "force", _FLAG, "Also drops protected objects, and drops permanently what could be restored otherwise."
    ),
    "purgeRequested": _in_query(
        "purgeRequested",
        _FLAG,
        "Whether the files are removed too. `true`: immediately; `false`: never; omitted: after a "
        "short time, unless the table is registered again before.",
    ),
    "purge": _in_query("purge", _FLAG, "Another name for `purgeRequested`."),
    "snapshots": _in_query(
        "snapshots",
        {"type": "string", "enum": ["all", "refs"]},
        "`refs` leaves out the snapshots that no branch or tag points to. Default: `all`.",
    ),
    "planId": _in_query("planId", _TEXT, "Accepted and ignored."),
    "referenced-by": _in_query("referenced-by", _TEXT, "Accepted and ignored."),
    "If-None-Match": _in_header(
        "If-None-Match",
        _TEXT,
        "The `ETag` of the response that the client holds. If it is still current, the response is 304.",
    ),
    "X-Iceberg-Access-Delegation": {
        **_in_header(
            "X-Iceberg-Access-Delegation",
            {"type": "array", "items": {"type": "string", "enum": ["vended-credentials", "remote-signing"]}},
            "How the client can receive access to the files. With neither, or both, the server chooses. The further "
            "value `client-managed` asks for no means of access. Not needed for warehouses of type `local`.",
        ),
        "style": "simple",
        "explode": False,
    },
    "Idempotency-Key": _in_header(
        "Idempotency-Key",
        {"type": "string", "format": "uuid", "minLength": 36, "maxLength": 36},
        "A UUID that the client generates for this change. If the same request is sent again within "
        "30 minutes, the change is not made twice.",
    ),
}
