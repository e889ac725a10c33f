"""Every route of the console with the weakest privileges that reach it; a new route needs a row here.

`of` is the kind of object on which somebody holds one privilege, `least` those privileges of which no weaker one is
enough. Forms are sent with what the service behind them refuses or ignores, because the decision comes before that.
"""

from dataclasses import dataclass, field
from typing import Final

from lakewarden.authz.actions import ObjectType

_W: Final = "/console/warehouses/{warehouse}"
_N: Final = "/console/namespaces/{namespace}"
_T: Final = f"{_W}/tables/{{table}}"
_SERVER, _PROJECT, _WAREHOUSE = ObjectType.SERVER, ObjectType.PROJECT, ObjectType.WAREHOUSE


@dataclass(frozen=True)
class Route:
    """Without `of`, it is for everybody who is signed in. `sent`: it is a form, with these fields. `is_hidden`: who
    has no right gets a 404 although everybody knows the server.
    """

    path: str
    of: ObjectType | None = None
    least: str = ""
    sent: dict[str, str] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    is_hidden: bool = False


_PART: Final = {"hx-request": "true"}
_ROLE: Final = "/console/roles/{role}"
WITHOUT_SIGNING_IN: Final = {
    "root": "/",
    "home": "/console",
    None: "/console/static/style.css",
    "sign-in": "/console/sign-in",
    "callback": "/console/callback",
    "sign-out": "/console/sign-out",
}
ROUTES: Final[dict[str, Route]] = {
    # everybody who is signed in: they show what the visitor may see
    "welcome": Route("/console/welcome"),
    "bootstrap": Route("/console/welcome/bootstrap", sent={}),
    "projects": Route("/console/projects"),
    "choose": Route("/console/choice", sent={}),
    "warehouses": Route("/console/warehouses"),
    "tree": Route("/console/tree"),
    "find-everywhere": Route("/console/search?q=orders"),
    "design": Route("/console/design"),
    # the server
    "new-project": Route("/console/projects/new", _SERVER, "admin or operator", sent={"name": ""}),
    "users": Route("/console/users", _SERVER, "admin or operator"),
    "user": Route("/console/user?id=oidc~admin", _SERVER, "admin or operator", is_hidden=True),
    "describe-user": Route(
        "/console/user/description",
        _SERVER,
        "admin or operator",
        sent={"id": "oidc~admin", "seen": "other"},
        is_hidden=True,
    ),
    "delete-user": Route(
        "/console/user/deletion", _SERVER, "admin or operator", sent={"id": "oidc~admin"}, is_hidden=True
    ),
    "status": Route("/console/status", _SERVER, "admin or operator"),
    "events": Route("/console/events", _SERVER, "admin or operator"),
    "letters": Route("/console/events/letters", _SERVER, "operator", sent={"verb": "none"}),
    # a project
    "new-warehouse": Route("/console/new-warehouse", _PROJECT, "create"),
    "check-warehouse": Route("/console/new-warehouse/check", _PROJECT, "create", sent={"type": "local"}),
    "create-warehouse": Route("/console/new-warehouse/create", _PROJECT, "create", sent={"type": "local"}),
    "audit": Route("/console/audit", _PROJECT, "security_admin"),
    "audit-export": Route("/console/audit/export", _PROJECT, "security_admin"),
    "roles": Route("/console/roles", _PROJECT, "describe or role_creator or tag_creator"),
    "new-role": Route("/console/roles/new", _PROJECT, "role_creator", sent={"name": ""}),
    "role": Route(_ROLE, _PROJECT, "describe or role_creator or tag_creator"),
    "role-members": Route(f"{_ROLE}/members", _PROJECT, "security_admin", sent={"member": "nobody"}),
    "delete-role": Route(f"{_ROLE}/delete", _PROJECT, "security_admin", sent={"name": "none"}),
    # a warehouse, and what lies in it
    "warehouse": Route(_W, _WAREHOUSE, "describe or pass_grants"),
    "find": Route(f"{_W}/search?q=orders", _WAREHOUSE, "describe or pass_grants"),
    "tree-warehouse": Route(
        "/console/tree/warehouses/{warehouse}", _WAREHOUSE, "describe or pass_grants", headers=_PART
    ),
    "tree-namespace": Route("/console/tree/namespaces/{namespace}", _WAREHOUSE, "describe", headers=_PART),
    "activity": Route(f"{_W}/activity", _WAREHOUSE, "describe"),
    "tasks": Route(f"{_W}/tasks", _WAREHOUSE, "describe"),
    "task": Route(f"{_W}/tasks/{{task}}", _WAREHOUSE, "describe"),
    "control-task": Route(f"{_W}/tasks/{{task}}/control", _WAREHOUSE, "modify", sent={"verb": "none"}),
    "deleted": Route(f"{_W}/dropped", _WAREHOUSE, "describe or pass_grants"),
    "undrop": Route(f"{_W}/undrop", _WAREHOUSE, "modify", sent={"kind": "table", "id": "{gone}"}),
    "storage": Route(f"{_W}/storage", _WAREHOUSE, "modify"),
    "check-storage": Route(f"{_W}/storage/check", _WAREHOUSE, "modify", sent={}),
    "change-storage": Route(f"{_W}/storage/change", _WAREHOUSE, "modify", sent={"seen": "other"}),
    "namespace": Route(_N, _WAREHOUSE, "describe"),
    "manage-namespace": Route(f"{_N}/manage", _WAREHOUSE, "describe"),
    "protect-namespace": Route(f"{_N}/protection", _WAREHOUSE, "modify", sent={"seen": "other"}),
    "drop-namespace": Route(f"{_N}/drop", _WAREHOUSE, "modify", sent={"name": "none"}),
    "table": Route(_T, _WAREHOUSE, "describe"),
    "table-file": Route(f"{_T}/metadata.json", _WAREHOUSE, "describe"),
    "rows": Route(f"{_T}/rows", _WAREHOUSE, "select"),
    "restore": Route(f"{_T}/restore", _WAREHOUSE, "describe"),
    "restore-now": Route(f"{_T}/restore/now", _WAREHOUSE, "write", sent={"snapshot": "x"}),
    "restore-metadata": Route(f"{_T}/metadata/restore", _WAREHOUSE, "describe"),
    "restore-metadata-now": Route(f"{_T}/metadata/restore/now", _WAREHOUSE, "write", sent={"name": "none"}),
    "view": Route(f"{_W}/views/{{view}}", _WAREHOUSE, "describe"),
    "generic-table": Route(f"{_W}/generic-tables/{{generic}}", _WAREHOUSE, "describe"),
    "manage": Route(f"{_W}/table/{{table}}/manage", _WAREHOUSE, "describe"),
    "protect": Route(f"{_W}/table/{{table}}/protection", _WAREHOUSE, "modify", sent={"seen": "other"}),
    "drop": Route(f"{_W}/table/{{table}}/drop", _WAREHOUSE, "modify", sent={"name": "none"}),
    "rights": Route(f"{_W}/rights/table/{{table}}", _WAREHOUSE, "manage_grants"),
    "change-rights": Route(
        f"{_W}/rights/table/{{table}}/change",
        _WAREHOUSE,
        "manage_grants",
        sent={"principal": "oidc~nobody", "privilege": "select", "revoke": "true"},
    ),
    "why": Route(f"{_W}/rights/table/{{table}}/why", _WAREHOUSE, "describe"),
}
