"""Every page of the console with an address in the measured warehouse; a new route without a row here is an error."""

from dataclasses import dataclass
from typing import Final

from benchmarks.failures import BenchmarkError


@dataclass(frozen=True)
class Ids:
    """`namespace` holds a share of the tables, `small` only `table`, `view` and `generic`. `file`: of the table's
    metadata log, as it stands in an address.
    """

    warehouse: str
    namespace: str
    small: str
    table: str
    file: str
    view: str
    generic: str
    role: str
    task: str


_W: Final = "/console/warehouses/{warehouse}"
_TABS: Final = ("schema", "snapshots", "properties", "connect", "metadata")
PAGES: Final[dict[str, list[str]]] = {
    "warehouses": ["/console/warehouses"],
    "projects": ["/console/projects"],
    "warehouse": [_W],
    "namespace": ["/console/namespaces/{namespace}"],
    "tree": ["/console/tree", "/console/tree?open={warehouse},{namespace},{small}"],
    "tree-warehouse": ["/console/tree/warehouses/{warehouse}"],
    "tree-namespace": ["/console/tree/namespaces/{namespace}"],
    "find": [f"{_W}/search?q=t4711", f"{_W}/search?q=zzz"],
    "find-everywhere": ["/console/search?q=t4711"],
    "table": [f"{_W}/tables/{{table}}?tab={tab}" for tab in _TABS],
    "table-file": [f"{_W}/tables/{{table}}/metadata.json"],
    "view": [f"{_W}/views/{{view}}"],
    "generic-table": [f"{_W}/generic-tables/{{generic}}"],
    "manage": [f"{_W}/table/{{table}}/manage"],
    "manage-namespace": ["/console/namespaces/{namespace}/manage"],
    "restore": [f"{_W}/tables/{{table}}/restore?a=7"],
    "restore-metadata": [f"{_W}/tables/{{table}}/metadata/restore?file={{file}}"],
    "deleted": [f"{_W}/dropped"],
    "rights": [f"{_W}/rights/warehouse/{{warehouse}}", f"{_W}/rights/table/{{table}}"],
    "why": [f"{_W}/rights/table/{{table}}/why?action=write_data&principal=oidc~part"],
    "users": ["/console/users"],
    "user": ["/console/user?id=oidc~part"],
    "roles": ["/console/roles"],
    "role": ["/console/roles/{role}"],
    "storage": [f"{_W}/storage"],
    "tasks": [f"{_W}/tasks"],
    "task": [f"{_W}/tasks/{{task}}"],
    "activity": [f"{_W}/activity"],
    "audit": ["/console/audit"],
    "events": ["/console/events"],
    "status": ["/console/status"],
    "new-warehouse": ["/console/new-warehouse?type=s3"],
    "design": ["/console/design"],
}
NOT_MEASURED: Final = {
    "root": "a redirection",
    "home": "a redirection for who is signed in, and no more than the addresses for others",
    "sign-in": "asks the identity provider",
    "callback": "asks the identity provider",
    "welcome": "a redirection once the server is set up",
    "rows": "a process of its own reads the rows, after the page",
    "audit-export": "a file of up to 5,000 entries",
    None: "a file that browsers keep",
}
FORMS: Final = {
    *("sign-out", "bootstrap", "new-project", "choose", "letters", "change-rights", "restore-now", "control-task"),
    "restore-metadata-now",
    *("check-warehouse", "create-warehouse", "check-storage", "change-storage"),
    *("protect-namespace", "drop-namespace", "protect", "drop", "undrop"),
    *("new-role", "role-members", "delete-role", "describe-user", "delete-user"),
}


def addresses(ids: Ids) -> list[tuple[str, str]]:
    """(name of the route, address), of all pages. Raises BenchmarkError if a route has no row, or a row no route."""
    from console.urls import urlpatterns  # noqa: PLC0415 needs settings

    served = {each.name for each in urlpatterns}
    known = {*PAGES, *NOT_MEASURED, *FORMS}
    if served != known:
        raise BenchmarkError(
            f"benchmarks/console/pages.py and console/urls.py differ: {sorted(map(str, served ^ known))}"
        )
    return [(name, path.format(**ids.__dict__)) for name, paths in PAGES.items() for path in paths]
