"""Every route of the catalog, with what it acts upon and the weakest privilege that allows it."""

from dataclasses import dataclass
from typing import Any, Literal

from tests.integration.catalog.lake import SCHEMA, VIEW_VERSION

Target = Literal["warehouse", "namespace", "table", "view", "generic table"]
Needs = Literal["describe", "select", "create", "write", "modify", "ownership"]


@dataclass(frozen=True)
class Case:
    """What a call acts upon, the weakest privilege on the warehouse that allows it, its body, and the exact answer.

    `{left table}` and `{left view}` stand for metadata files that may be registered.
    """

    target: Target
    needs: Needs
    body: Any = None
    allowed: int = 200
    query: str = ""


def move(name: str) -> dict[str, Any]:
    return {
        "source": {"namespace": ["sales"], "name": name},
        "destination": {"namespace": ["sales"], "name": "moved"},
    }


_COMMIT: dict[str, Any] = {"requirements": [], "updates": []}
_CHANGE = {**_COMMIT, "identifier": {"namespace": ["sales"], "name": "orders"}}
_P = "/v1/{prefix}"
NAMESPACE = _P + "/namespaces/{namespace}"
_T = NAMESPACE + "/tables/{table}"
_V = NAMESPACE + "/views/{view}"
_GENERIC = NAMESPACE + "/generic-tables"
_G = _GENERIC + "/{table}"
CASES = {
    f"GET {_P}/namespaces": Case("warehouse", "describe"),
    f"POST {_P}/namespaces": Case("warehouse", "create", {"namespace": ["fresh"]}),
    f"GET {NAMESPACE}": Case("namespace", "describe"),
    f"HEAD {NAMESPACE}": Case("namespace", "describe", allowed=204),
    f"DELETE {NAMESPACE}": Case("namespace", "modify", allowed=204, query="?recursive=true"),
    f"POST {NAMESPACE}/properties": Case("namespace", "modify", {"updates": {"a": "b"}}),
    f"GET {NAMESPACE}/tables": Case("namespace", "describe"),
    f"POST {NAMESPACE}/tables": Case("namespace", "create", {"name": "fresh", "schema": SCHEMA}),
    f"GET {_T}": Case("table", "describe"),
    f"HEAD {_T}": Case("table", "describe", allowed=204),
    f"POST {_T}": Case("table", "write", _COMMIT),
    f"DELETE {_T}": Case("table", "modify", allowed=204),
    f"GET {_T}/credentials": Case("table", "select"),
    f"POST {_T}/metrics": Case("table", "select", {"report-type": "scan-report"}, allowed=204),
    f"POST {_T}/unregister": Case("table", "ownership"),
    f"POST {NAMESPACE}/register": Case("namespace", "create", {"name": "fresh", "metadata-location": "{left table}"}),
    f"POST {_P}/tables/rename": Case("table", "modify", move("orders"), allowed=204),
    f"GET {NAMESPACE}/views": Case("namespace", "describe"),
    f"POST {NAMESPACE}/views": Case(
        "namespace", "create", {"name": "fresh", "schema": SCHEMA, "view-version": VIEW_VERSION}
    ),
    f"GET {_V}": Case("view", "describe"),
    f"HEAD {_V}": Case("view", "describe", allowed=204),
    f"POST {_V}": Case("view", "modify", _COMMIT),
    f"DELETE {_V}": Case("view", "modify", allowed=204),
    f"POST {NAMESPACE}/register-view": Case(
        "namespace", "create", {"name": "fresh", "metadata-location": "{left view}"}
    ),
    f"POST {_P}/views/rename": Case("view", "modify", move("report"), allowed=204),
    f"GET {_GENERIC}": Case("namespace", "describe"),
    f"POST {_GENERIC}": Case("namespace", "create", {"name": "fresh", "format": "lance"}),
    f"GET {_G}": Case("generic table", "describe"),
    f"DELETE {_G}": Case("generic table", "modify", allowed=204),
    f"GET {_G}/credentials": Case("generic table", "select"),
    f"POST {_P}/generic-tables/rename": Case("generic table", "modify", move("birds"), allowed=204),
    f"POST {_P}/transactions/commit": Case("table", "write", {"table-changes": [_CHANGE]}, allowed=204),
}


def mount(template: str) -> str:
    """Below which the route is served."""
    return "/generic" if "/generic-tables" in template else "/catalog"
