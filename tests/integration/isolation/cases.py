"""What is asked of every route: data, so that a route that is added is one line here (and fails until it is).

A route's parts stand for what they are called, e.g. `{warehouse_id}`; bodies and queries name things of the first
project as `{role}`, and of the second one, whose people ask, as `{own_role}`.
"""

from dataclasses import dataclass
from typing import Any

from tests.integration.catalog.lake import SCHEMA
from tests.integration.isolation.world import view_body

PARTS = {
    "prefix": "warehouse",
    "warehouse_id": "warehouse",
    "project_id": "project",
    "role_id": "role",
    "tag_definition_id": "tag",
    "user_id": "user",
}
"""Parts of routes that are called otherwise than what they are filled with."""


@dataclass(frozen=True)
class Case:
    """One request. `path` where it is not the route's own; `open`: the answer is not about anything of a project.

    `in_own`: it is also asked in the second project, where it is about the first one still. `with_header`: it is also
    asked with `x-project-id`, which must not contradict the project in the request.
    `owner` is the exact status that the first project's administrator gets for the same request (0: the route's own for
    success), None: they are not asked.
    """

    body: Any = None
    query: str = ""
    path: str = ""
    open: bool = False
    in_own: bool = True
    with_header: bool = True
    owner: int | None = 0


def success(route: str) -> int:
    """The exact status of the route's answer to who may."""
    method, _, path = route.partition(" ")
    if method in {"HEAD", "DELETE"} or (method == "POST" and path.endswith(_EMPTY)):
        return 204
    return 201 if route in _MADE else 200


_MADE = {f"POST /management/v1/{noun}" for noun in ("project", "role", "tag-definition", "user", "warehouse")}
_EMPTY = (
    *("/metrics", "/tables/rename", "/views/rename", "/generic-tables/rename", "/transactions/commit"),
    *("/assignments", "/grants", "/task/control", "/config", "/undrop"),
)
OPEN = Case(open=True, owner=None)
"""About the server, or about the caller."""
OPERATORS = Case(owner=403)
"""The administrator of a project may not do it either."""

_COMMIT: dict[str, Any] = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
_MOVE = {"namespace": ["{namespace}"], "name": "moved"}
_N = "/catalog/v1/{prefix}/namespaces/{namespace}"
_T = _N + "/tables/{table}"
_V = _N + "/views/{view}"


_SIGN = Case({"region": "local", "uri": "https://s3.test/b/k", "method": "GET", "headers": {}}, owner=400)
"""Requests to a directory are not signed, which only those are told who may read in it."""


def _rename(kind: str) -> Case:
    return Case({"source": {"namespace": ["{namespace}"], "name": f"{{{kind}}}"}, "destination": _MOVE})


def _transaction(**identifier: Any) -> Case:
    return Case({"table-changes": [{**_COMMIT, "identifier": identifier}]})


CATALOG: dict[str, list[Case]] = {
    "GET /catalog/v1/{prefix}/namespaces": [Case(), Case(query="parent={namespace}")],
    "POST /catalog/v1/{prefix}/namespaces": [
        Case({"namespace": ["fresh"]}),
        Case({"namespace": ["{namespace}", "fresh"]}),
        Case({"namespace": ["{namespace}"]}, owner=409),
    ],
    f"GET {_N}": [Case()],
    f"HEAD {_N}": [Case()],
    f"DELETE {_N}": [Case(owner=409)],
    f"POST {_N}/properties": [Case({"updates": {"a": "b"}})],
    f"GET {_N}/tables": [Case(), Case(query="pageSize=1")],
    f"POST {_N}/tables": [
        Case({"name": "fresh", "schema": SCHEMA}),
        Case({"name": "fresh", "schema": SCHEMA, "stage-create": True}),
        Case({"name": "fresh", "schema": SCHEMA, "location": "{location}"}, path=f"{_N}/tables", owner=409),
    ],
    f"GET {_T}": [Case(), Case(query="snapshots=refs")],
    f"HEAD {_T}": [Case()],
    f"POST {_T}": [Case(_COMMIT)],
    f"DELETE {_T}": [Case(), Case(query="purgeRequested=true")],
    f"GET {_T}/credentials": [Case()],
    f"POST {_T}/metrics": [Case({"report-type": "scan-report"})],
    f"POST {_T}/unregister": [Case()],
    f"POST {_T}/sign": [_SIGN],
    "POST /catalog/v1/signer/{prefix}/tabular-id/{table_id}/v1/aws/s3/sign": [_SIGN],
    "POST /catalog/v1/{prefix}/v1/aws/s3/sign": [_SIGN],
    "POST /catalog/{prefix}/v1/aws/s3/sign": [_SIGN],
    f"POST {_N}/register": [
        Case({"name": "fresh", "metadata-location": "{metadata}"}, owner=409),
        Case(
            {"name": "fresh", "metadata-location": "{metadata}"},
            path="/catalog/v1/{own_warehouse}/namespaces/{own_namespace}/register",
            owner=None,
        ),
    ],
    "POST /catalog/v1/{prefix}/tables/rename": [_rename("table")],
    f"GET {_N}/views": [Case()],
    f"POST {_N}/views": [Case(view_body("fresh"))],
    f"GET {_V}": [Case()],
    f"HEAD {_V}": [Case()],
    f"POST {_V}": [Case(_COMMIT)],
    f"DELETE {_V}": [Case()],
    f"POST {_N}/register-view": [Case({"name": "fresh", "metadata-location": "{metadata}"}, owner=409)],
    "POST /catalog/v1/{prefix}/views/rename": [_rename("view")],
    "POST /catalog/v1/{prefix}/transactions/commit": [_transaction(namespace=["{namespace}"], name="{table}")],
    "GET /catalog/v1/config": [Case(query="warehouse={lake}"), Case(query="warehouse={project}/{lake}")],
    "POST /catalog/v1/oauth/tokens": [OPEN],
    "GET /catalog/v1/openapi.json": [OPEN],
    "GET /catalog/v1/openapi.yaml": [OPEN],
}


def generic_tables() -> dict[str, list[Case]]:
    """At both addresses."""
    told: dict[str, list[Case]] = {}
    for base in ("/generic/v1", "/lakekeeper/v1"):
        tables = base + "/{prefix}/namespaces/{namespace}/generic-tables"
        table, body = tables + "/{generic_table}", {"name": "fresh", "format": "lance"}
        told |= {
            f"GET {tables}": [Case(), Case(query="pageSize=1")],
            f"POST {tables}": [Case(body), Case({**body, "base-location": "{location}"}, owner=409)],
            f"GET {tables}/{{table}}": [Case(path=table)],
            f"DELETE {tables}/{{table}}": [Case(path=table), Case(query="purgeRequested=true", path=table)],
            f"GET {tables}/{{table}}/credentials": [Case(path=f"{table}/credentials")],
            f"POST {base}/{{prefix}}/generic-tables/rename": [_rename("generic_table")],
        }
    return told


def lakehouse() -> dict[str, list[Case]]:
    """The catalog's routes without a prefix, in each of the facade's three places."""
    told: dict[str, list[Case]] = {}
    for base, place in _FACADES.items():
        for route, cases in CATALOG.items():
            method, _, path = route.partition(" ")
            if "/openapi." in path or path.endswith("/sign"):
                continue  # they are the catalog's only: it describes its own routes, and engines sign there
            is_config = path == "/catalog/v1/config"
            rest = path.removeprefix("/catalog/v1").replace("/{prefix}", "")
            asked = [
                Case(
                    case.body,
                    "" if is_config else case.query,
                    place + rest,
                    open=case.open,
                    in_own="{project}" in place,
                    owner=None,
                )
                for case in cases
                if not case.path.startswith("/catalog/v1/{own_warehouse}")
            ]
            told[f"{method} {base}{rest}"] = asked[:1] if is_config else asked
    return told


_FACADES = {
    "/lakehouse/v1": "/lakehouse/v1",
    "/lakehouse/w/{warehouse}/v1": "/lakehouse/w/{lake}/v1",
    "/lakehouse/w/{project}/{warehouse}/v1": "/lakehouse/w/{project}/{lake}/v1",
}
