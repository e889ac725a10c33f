"""A project with a user who tries to get more rights than she has; for tests of refusals.

Eve owns the namespace `hers` and may change, not grant, in `shared`; she has no right in `closed`, where `secret` is.
She is not a member of the role `auditors`, which reads the whole warehouse; she owns the role `mine`, which has no
right.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from catalog.access import namespace_chain, tabular_chain
from catalog.models import Namespace, Tabular
from lakewarden import backends
from lakewarden.audit import refusals
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.interface import ObjectRef, Principal
from lakewarden.authz.ledger.models import Grant, Membership
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants import access
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer, AsgiClient

M = "/management/v1"
EVE = PrincipalId("oidc~eve")
UNKNOWN = "0197f1c2-0000-7000-8000-000000000000"
FORBIDDEN = (403, "ForbiddenException")
Rights = dict[str, frozenset[Privilege]]


@dataclass(frozen=True)
class Town:
    """What eve looks at; `place` gives the management path of a namespace or table by its name."""

    admin: Lake
    eve: Lake
    warehouse: Warehouse
    auditors: str
    mine: str

    def place(self, name: str) -> str:
        row = Namespace.objects.filter(path=[name]).first() or Tabular.objects.get(name=name)
        kind = "namespace" if isinstance(row, Namespace) else row.kind
        identifier = row.id if isinstance(row, Namespace) else row.uuid
        return f"{M}/warehouse/{self.warehouse.id}/{kind}/{identifier}"

    def rights(self) -> Rights:
        """All that eve holds on everything, as the authorizer says now; with her roles and without."""
        chains: dict[str, list[ObjectRef]] = {"warehouse": access.warehouse_chain(self.warehouse)}
        for namespace in Namespace.objects.select_related("warehouse__project"):
            chains[str(namespace)] = namespace_chain(namespace)
        for tabular in Tabular.objects.select_related("namespace__warehouse__project"):
            chains[str(tabular.id)] = tabular_chain(tabular)
        authorizer = backends.authorizer()
        return {name: authorizer.privileges(Principal(EVE), chain) for name, chain in chains.items()}

    @contextmanager
    def refusing(self, action: str | None = None, *, actor: str = EVE) -> Iterator[None]:
        """Nothing that is granted changes, nor what eve holds; `action`: a row of the audit says what was refused."""
        refusals.flush()
        known, before = set(AuditEntry.objects.values_list("id", flat=True)), (self.rights(), ledger())
        yield
        refusals.flush()
        assert (self.rights(), ledger()) == before
        rows = AuditEntry.objects.exclude(id__in=known)
        assert not rows.filter(outcome="done").exists()
        if action is not None:
            denied = rows.filter(outcome="denied", actor=actor)
            assert action in set(denied.values_list("action", flat=True)), list(denied.values("action", "reason"))


def ledger() -> set[tuple[object, ...]]:
    grants = Grant.objects.values_list("principal_id", "object_type", "object_id", "privilege")
    return {*grants, *Membership.objects.values_list("role_id", "member_id")}


def on(privilege: str, principal: str, kind: str = "user") -> dict[str, Any]:
    return {"writes": [{"privilege": privilege, "principal": {kind: principal}}]}


def ok(answer: Answer) -> Answer:
    assert answer.status in {200, 201, 204}, answer.body
    return answer


def settle(admin: AsgiClient, warehouse: Warehouse) -> Town:
    """Arrange it; called once for each test."""
    lake = Lake(admin, str(warehouse.id))
    eve = lake.as_user("eve")
    ok(eve.client.get(f"{M}/whoami"))
    for name in ("hers", "shared", "closed"):
        ok(lake.create_namespace(name))
    for name, within in (("secret", "closed"), ("common", "shared"), ("own", "hers")):
        ok(lake.create_table(name, within=within))
    auditors = ok(admin.post(f"{M}/role", {"name": "auditors"})).json()["id"]
    made = Town(lake, eve, warehouse, auditors, "")
    ok(admin.post(f"{M}/warehouse/{warehouse.id}/grants", on("select", auditors, "role")))
    ok(admin.post(f"{made.place('hers')}/grants", on("ownership", EVE)))
    for privilege in ("modify", "create"):
        ok(admin.post(f"{made.place('shared')}/grants", on(privilege, EVE)))
    ok(admin.post(f"{M}/project/grants", on("role_creator", EVE)))
    mine = ok(eve.client.post(f"{M}/role", {"name": "mine"})).json()["id"]
    return Town(lake, eve, warehouse, auditors, mine)
