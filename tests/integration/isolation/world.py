"""Two projects that are alike but for their ids and what only the first has in it: whatever holds `aurora`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.db import transaction

from catalog.models import Namespace, Tabular
from lakewarden.audit.models import AuditEntry
from lakewarden.authn.interface import VerifiedToken
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.ledger import grants, members
from lakewarden.authz.ledger.models import Grant, Membership
from lakewarden.authz.model import Privilege
from lakewarden.context import Caller, PrincipalId, RequestContext
from lakewarden.events.models import OutboxEvent
from lakewarden.ids import new_id
from lakewarden.tasks import cleanup
from tenants import access
from tenants.models import Project, Role, TagDefinition, Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects, servers
from tests.integration.catalog.lake import SCHEMA, VIEW_VERSION
from tests.servers.asgi_client import Answer, AsgiClient
from tests.servers.stub_authenticator import StubAuthenticator

LAKE = "shared-lake"
SECRET = "aurora"
"""In everything of the first project that only it has."""
ADMIN = PrincipalId("oidc~admin")
INTRUDERS = ("b-admin", "b-security", "b-member", "b-analyst", "nobody")
"""The second project's administrator, its security administrator, a member of its role `readers`, somebody whose token
says `analysts`, which is the source of a role there; and a user without any right."""
TOKEN_ROLES = {"b-analyst": ("analysts",)}


class TokenRoles(StubAuthenticator):
    """Some tokens carry names of roles."""

    def authenticate(self, authorization: str | None, *, source: str = "") -> VerifiedToken:  # noqa: ARG002 the contract's
        found = super().authenticate(authorization)
        roles = TOKEN_ROLES.get(found.id.removeprefix("oidc~"), ())
        return VerifiedToken(
            id=found.id,
            name=found.name,
            email=found.email,
            kind=found.kind,
            issuer=found.issuer,
            expires_at=found.expires_at,
            token_roles=roles,
        )


@dataclass(frozen=True)
class Tenant:
    """A project, its `owner`, and what can be said of it in a request: `{warehouse}` is an id, `{lake}` its name, …"""

    owner: AsgiClient
    values: dict[str, str]


@dataclass(frozen=True)
class World:
    """`a` is looked at from `b`; `client` calls without credentials."""

    client: AsgiClient
    a: Tenant
    b: Tenant
    secrets: set[str] = field(default_factory=set)

    def is_there(self) -> bool:
        """Whether the database still holds this very world."""
        return Warehouse.objects.filter(id=self.a.values["warehouse"]).exists()

    def state(self) -> tuple[int, ...]:
        """What no refused request changes."""
        done = AuditEntry.objects.filter(outcome="done").count()
        return done, OutboxEvent.objects.count(), Grant.objects.count(), Membership.objects.count()


def build(client: AsgiClient, directory: Path) -> World:
    """The default project is the first: it is also meant where a request names none."""
    context = RequestContext(caller=Caller(ADMIN, name="Admin", kind="human"), request_id="arranged")
    servers.bootstrap(context.caller, context)
    Project.objects.filter(id=DEFAULT_PROJECT_ID).update(name="Aurora", name_key=SECRET)
    Project.objects.create(id="borealis", name="Borealis", name_key="borealis")
    a = _tenant(client, "a", DEFAULT_PROJECT_ID, directory / f"{SECRET}-lake")
    b = _tenant(client, "b", "borealis", directory / "borealis-lake")
    _only_in_a(a)
    _token_role(b)
    for name in INTRUDERS:
        assert client.as_user(name).get("/management/v1/whoami").status == 200
    secrets = {SECRET, *(value for name, value in a.values.items() if value not in b.values.values())}
    secrets |= _ids_of_a(Namespace, a) | _ids_of_a(Tabular, a)
    return World(client, a, b, secrets - {DEFAULT_PROJECT_ID})


def missing_like(values: dict[str, str]) -> dict[str, str]:
    """Names and ids of the same forms, of nothing that exists."""
    told = {name: str(uuid4()) for name in values}
    names = {
        "lake": "gone-lake",
        "namespace": "gone-ns",
        "table": "gone-t",
        "view": "gone-v",
        "generic_table": "gone-g",
        "tag_name": "gone-tag",
        "user": "oidc~gone",
    }
    places = {name: values[name].replace(SECRET, "gone") for name in ("location", "metadata")}
    return told | names | places


def _tenant(client: AsgiClient, letter: str, project_id: str, directory: Path) -> Tenant:
    chain = access.project_chain(project_id)
    _give(chain, f"oidc~{letter}-admin", Privilege.PROJECT_ADMIN)
    _give(chain, f"oidc~{letter}-security", Privilege.SECURITY_ADMIN)
    owner = AsgiClient({**client.as_user(f"{letter}-admin").headers, "x-project-id": project_id})
    profile = {"type": "local", "base-path": str(directory)}
    made = _ok(owner.post("/management/v1/warehouse", {"warehouse-name": LAKE, "storage-profile": profile}))
    warehouse = made.json()["id"]
    base = f"/catalog/v1/{warehouse}"
    for path in (["shared-sales"], ["shared-sales", "eu"]):
        _ok(owner.post(f"{base}/namespaces", {"namespace": path}))
    _ok(owner.post(f"{base}/namespaces/shared-sales/tables", {"name": "shared-orders", "schema": SCHEMA}))
    _ok(owner.post(f"{base}/namespaces/shared-sales/views", view_body("shared-report")))
    generic = base.replace("/catalog", "/generic", 1)
    birds = {"name": "shared-birds", "format": "lance"}
    _ok(owner.post(f"{generic}/namespaces/shared-sales/generic-tables", birds))
    _ok(owner.post(f"{base}/namespaces/shared-sales/tables", {"name": "dropped", "schema": SCHEMA}))
    _ok(owner.delete(f"{base}/namespaces/shared-sales/tables/dropped?purgeRequested=true"))
    with transaction.atomic():
        cleanup.request(project_id)
    shelved = _shelved(owner, warehouse)
    table, view, generic_table = (Tabular.objects.get(warehouse_id=warehouse, kind=kind) for kind in Tabular.Kind)
    role = _role(project_id, "readers")
    members.add(role.principal, [PrincipalId(f"oidc~{letter}-member")], project_id=project_id, added_by=ADMIN)
    for privilege in (Privilege.CREATE, Privilege.MODIFY):
        _give(chain, role.principal, privilege)
    inner = _role(project_id, "inner")
    members.add(role.principal, [inner.principal], project_id=project_id, added_by=ADMIN)
    _ok(client.as_user(f"{letter}-member").get("/management/v1/whoami"))
    projects.bump_epoch(project_id)
    values = {
        "project": project_id,
        "warehouse": warehouse,
        "lake": LAKE,
        "namespace": "shared-sales",
        "namespace_id": str(Namespace.objects.get(warehouse_id=warehouse, path=["shared-sales"]).id),
        "inner_id": str(Namespace.objects.get(warehouse_id=warehouse, path=["shared-sales", "eu"]).id),
        "table": "shared-orders",
        "table_id": str(table.uuid),
        "shelved_id": shelved,
        "view": "shared-report",
        "view_id": str(view.uuid),
        "generic_table": "shared-birds",
        "generic_table_id": str(generic_table.uuid),
        "tag": _tag(project_id),
        "tag_name": "shared-tag",
        "column_name": "place",
        "role": str(role.id),
        "inner_role": str(inner.id),
        "user": f"oidc~{letter}-member",
        "task": _task(owner, f"warehouse/{warehouse}", "tabular_purge"),
        "project_task": _task(owner, "project", "task_log_cleanup"),
        "location": table.location,
        "metadata": table.metadata_location,
        "base": str(directory),
        "free": f"{directory}-free",
    }
    return Tenant(owner, values)


def _shelved(owner: AsgiClient, warehouse: str) -> str:
    """The id of a table that is dropped and can be restored."""
    profile, tables = f"/management/v1/warehouse/{warehouse}/delete-profile", "namespaces/shared-sales/tables"
    _ok(owner.post(profile, {"delete-profile": {"type": "soft", "expiration-seconds": 3600}}))
    _ok(owner.post(f"/catalog/v1/{warehouse}/{tables}", {"name": "shelved", "schema": SCHEMA}))
    _ok(owner.delete(f"/catalog/v1/{warehouse}/{tables}/shelved"))
    _ok(owner.post(profile, {"delete-profile": {"type": "hard"}}))
    return str(Tabular.everything.get(warehouse_id=warehouse, name="shelved").uuid)


def _task(owner: AsgiClient, place: str, queue: str) -> str:
    """The id of the only task there."""
    (task,) = _ok(owner.post(f"/management/v1/{place}/task/list", {"queue-name": [queue]})).json()["tasks"]
    return str(task["task-id"])


def view_body(name: str) -> dict[str, Any]:
    return {"name": name, "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {}}


def _only_in_a(a: Tenant) -> None:
    base = f"/catalog/v1/{a.values['warehouse']}/namespaces"
    properties = {"owner": SECRET}
    _ok(a.owner.post(f"{base}/shared-sales/properties", {"updates": properties}))
    _ok(a.owner.post(base, {"namespace": [f"{SECRET}-ns"], "properties": properties}))
    for within in ("shared-sales", f"{SECRET}-ns"):
        body = {"name": f"{SECRET}-ledger", "schema": SCHEMA, "properties": properties}
        _ok(a.owner.post(f"{base}/{within}/tables", body))
        _ok(a.owner.post(f"{base}/{within}/views", view_body(f"{SECRET}-view")))
        birds = {"name": f"{SECRET}-birds", "format": "lance", "doc": SECRET, "properties": properties}
        _ok(a.owner.post(f"{base.replace('/catalog', '/generic', 1)}/{within}/generic-tables", birds))
    _role(a.values["project"], f"{SECRET}-readers")
    _role(a.values["project"], "analysts")  # the same name as in the token, and of no identity provider


def _token_role(b: Tenant) -> None:
    role = _role(b.values["project"], "analysts", provider="oidc", source="analysts")
    _give(access.project_chain(b.values["project"]), role.principal, Privilege.MODIFY)
    projects.bump_epoch(b.values["project"])


def _role(project_id: str, name: str, *, provider: str = "lakewarden", source: str = "") -> Role:
    identifier = new_id()
    return Role.objects.create(
        id=identifier,
        project_id=project_id,
        name=name,
        name_key=name,
        provider_id=provider,
        source_id=source or str(identifier),
    )


def _tag(project_id: str) -> str:
    """The id of a definition that both projects have, and that is set nowhere."""
    scope = ["warehouse", "namespace", "table", "view", "generic-table", "column"]
    made = TagDefinition.objects.create(
        id=new_id(), project_id=project_id, name="shared-tag", name_key="shared-tag", scope=scope, value_kind="marker"
    )
    return str(made.id)


def _give(chain: list[ObjectRef], principal: str, privilege: Privilege) -> None:
    grants.give(chain, [(PrincipalId(principal), privilege)], granted_by=ADMIN)


def _ids_of_a(model: type[Namespace] | type[Tabular], a: Tenant) -> set[str]:
    rows = model.everything.filter(warehouse__project_id=a.values["project"])
    return {str(name) for row in rows for name in (row.pk, getattr(row, "uuid", row.pk))}


def _ok(answer: Answer) -> Answer:
    assert answer.status in {200, 201, 204}, (answer.status, answer.body)
    return answer
