"""Each route of the console: who reaches it with one privilege, and what all others get instead."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest

from console.urls import urlpatterns
from lakewarden.authz.actions import ObjectType
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import GRANTABLE, Level, Privilege, effective
from lakewarden.context import PrincipalId
from tenants import access
from tenants.models import Warehouse
from tenants.services import projects
from tests.installation import ADMIN
from tests.integration.catalog.lake import Lake
from tests.integration.console.routes import ROUTES, WITHOUT_SIGNING_IN, Route
from tests.integration.console.visitor import Visitor, text_of
from tests.servers.asgi_client import Answer, AsgiClient

NOBODY = "nobody"
REFUSED = {403: "You are not allowed to do this", 404: "There is nothing here"}


@dataclass
class Scene:
    """Objects to ask for, and people who hold one privilege each: `warehouse-select` has that on the warehouse."""

    visitor: Visitor
    ids: dict[str, str]

    def ask(self, name: str, route: Route) -> Answer:
        browser, path = self.visitor(name), route.path.format(**self.ids)
        if route.sent is None:
            return browser.get(path, headers=route.headers)
        form = browser.get("/console/design")
        (token,) = set(re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.body.decode()))
        cookies = f"{browser.headers['cookie']}; {form.headers['set-cookie'].partition(';')[0]}"
        sent = {key: value.format(**self.ids) for key, value in route.sent.items()}
        return browser.post(
            path,
            body=urlencode({"csrfmiddlewaretoken": token, **sent}).encode(),
            headers={"cookie": cookies, "content-type": "application/x-www-form-urlencoded"},
        )

    def reaching(self, route: Route) -> set[Privilege]:
        """The privileges that reach it; all others, and none at all, get the page that says so."""
        assert route.of is not None
        answers = {privilege: self.ask(f"{route.of}-{privilege}", route) for privilege in GRANTABLE[route.of]}
        for answer in (*answers.values(), self.ask(NOBODY, route)):
            assert answer.status < 500, answer.body
            if answer.status in REFUSED:
                assert REFUSED[answer.status] in text_of(answer)
        is_hidden = route.is_hidden or route.of is not ObjectType.SERVER
        assert self.ask(NOBODY, route).status == (404 if is_hidden else 403)
        return {privilege for privilege, answer in answers.items() if answer.status not in REFUSED}


@pytest.fixture
def scene(visitor: Visitor, admin: AsgiClient, warehouse: Warehouse) -> Scene:
    lake = Lake(admin, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    orders = lake.create_table("orders").json()["metadata"]["table-uuid"]
    view = lake.create_view("all_orders").json()["metadata"]["view-uuid"]
    lake.create_generic("pictures")
    keep = {"delete-profile": {"type": "soft", "expiration-seconds": 3600}}
    assert admin.post(f"/management/v1/warehouse/{warehouse.id}/delete-profile", keep).status == 200
    gone = lake.create_table("gone").json()["metadata"]["table-uuid"]
    assert admin.delete(lake.table("gone")).status == 204
    assert lake.create_table("gone").status == 200, "its name is taken, so nobody brings the dropped one back"
    found: dict[str, Any] = admin.post(f"/management/v1/warehouse/{warehouse.id}/task/list", {}).json()
    namespaces = admin.get(lake.path("namespaces", returnUuids="true")).json()
    generic = admin.get(f"/generic/v1/{warehouse.id}/namespaces/sales/generic-tables").json()["identifiers"]
    ids = {
        "warehouse": str(warehouse.id),
        "namespace": namespaces["namespace-uuids"][0],
        "table": orders,
        "gone": gone,
        "view": view,
        "generic": generic[0]["id"],
        "role": admin.post("/management/v1/role", {"name": "analysts"}).json()["id"],
        "task": found["tasks"][0]["task-id"],
    }
    chain = access.warehouse_chain(warehouse)
    for place, kind in enumerate((ObjectType.SERVER, ObjectType.PROJECT, ObjectType.WAREHOUSE), start=1):
        held = [(PrincipalId(f"oidc~{kind}-{privilege}"), privilege) for privilege in GRANTABLE[kind]]
        ledger.give(chain[:place], held, granted_by=ADMIN)
    projects.bump_epoch(warehouse.project_id)
    return Scene(visitor, ids)


def weakest(kind: ObjectType, reaching: set[Privilege]) -> set[Privilege]:
    """Those of which none includes another one that is enough."""
    return {each for each in reaching if not (effective([Level(kind, frozenset({each}))]) - {each}) & reaching}


def test_every_route_has_a_row() -> None:
    served = {each.name for each in urlpatterns}
    assert served == {*ROUTES, *WITHOUT_SIGNING_IN}


@pytest.mark.parametrize("kind", [None, ObjectType.SERVER, ObjectType.PROJECT, ObjectType.WAREHOUSE])
def test_who_reaches_each_route(scene: Scene, client: AsgiClient, kind: ObjectType | None) -> None:
    reached: dict[str, str] = {}
    routes = {name: route for name, route in ROUTES.items() if route.of is kind}
    for name, route in routes.items():
        if kind is None:
            assert scene.ask(NOBODY, route).status not in REFUSED, name
            continue
        reached[name] = " or ".join(sorted(weakest(kind, scene.reaching(route))))
    assert reached == {name: route.least for name, route in routes.items() if kind is not None}


@pytest.mark.parametrize("name", ROUTES)
def test_nobody_reaches_it_without_signing_in(client: AsgiClient, name: str) -> None:
    route, missing = ROUTES[name], "00000000-0000-4000-8000-000000000000"
    path = re.sub(r"\{\w+\}", missing, route.path)
    if route.sent is None:
        assert client.get(path).status == 302
    else:
        assert client.post(path).status == 403, "without the token of a page"
