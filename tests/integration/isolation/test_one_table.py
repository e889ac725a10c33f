"""A caller who may read one table learns nothing about other objects in its project, on any route of any API.

The routes are those of the isolation matrix, which a test compares with the URLs, so a new route is included.
"""

import json

import pytest

from catalog.access import tabular_chain
from catalog.models import Deletion, Namespace, Tabular
from lakewarden.authz.ledger import grants
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants.models import User
from tests.integration.isolation.asked import Asked
from tests.integration.isolation.matrix import CASES
from tests.integration.isolation.world import ADMIN, SECRET, World
from tests.servers.asgi_client import AsgiClient

READER = "one-table"
NAMES = {f"{SECRET}-ns", f"{SECRET}-ledger", f"{SECRET}-view", "shared-report", "shelved", '"eu"', "oidc~a-security"}
"""What the first project has beside the table, the way to it, and its roles, which everybody sees who sees it."""


@pytest.fixture
def reader(world: World) -> AsgiClient:
    table = Tabular.objects.select_related("namespace__warehouse__project").get(uuid=world.a.values["table_id"])
    grants.give(tabular_chain(table), [(PrincipalId(f"oidc~{READER}"), Privilege.SELECT)], granted_by=ADMIN)
    caller = world.client.as_user(READER)
    if not User.objects.filter(id=f"oidc~{READER}").exists():
        assert caller.get("/management/v1/whoami").status == 200
    return caller


def hidden(world: World) -> set[str]:
    """All names and ids of the project that the reader may not see."""
    values = world.a.values
    place = {"warehouse_id": values["warehouse"]}
    ids = {str(each) for each in Namespace.everything.filter(**place).values_list("id", flat=True)}
    for rows, member in (
        (Tabular.everything.filter(**place), "id"),
        (Tabular.everything.filter(**place), "uuid"),
        (Deletion.objects.filter(**place), "id"),
    ):
        ids |= {str(each) for each in rows.values_list(member, flat=True)}
    ids |= {values["task"], values["project_task"]}
    locations = set(Tabular.everything.filter(**place).values_list("location", flat=True))
    return (ids | locations | NAMES) - {values[name] for name in ("namespace_id", "table_id", "location")}


@pytest.mark.parametrize("route", CASES)
def test_a_reader_of_one_table_learns_of_nothing_else(world: World, reader: AsgiClient, route: str) -> None:
    before, secrets, values = world.state(), hidden(world), world.a.values
    own = {f"own_{name}": value for name, value in world.b.values.items()}
    for case in CASES[route]:
        asked = Asked.of(route, case)
        answer = asked.ask(reader, values | own, values["project"])
        told = answer.body.decode() + json.dumps(answer.headers)
        for name in asked.names:
            told = told.replace(values[name], "")
        sent = json.dumps(asked.body) + asked.path
        assert [secret for secret in secrets if secret in told and secret not in sent] == [], (asked, answer.status)
        assert answer.status < 500, (asked, answer.body)
    assert world.state() == before


def test_the_table_itself_and_the_way_to_it_are_listed(world: World, reader: AsgiClient) -> None:
    values = world.a.values
    base = f"/catalog/v1/{values['warehouse']}/namespaces"
    assert reader.get(base).json()["namespaces"] == [[values["namespace"]]]
    house = f"/lakehouse/w/{values['lake']}/v1/namespaces"
    assert reader.get(house).json()["namespaces"] == [[values["namespace"]]]
    tables = reader.get(f"{base}/{values['namespace']}/tables").json()["identifiers"]
    assert [each["name"] for each in tables] == [values["table"]]
    assert reader.get(f"{base}/{values['namespace']}/views").json()["identifiers"] == []
    search = f"/management/v1/warehouse/{values['warehouse']}/search-tabular"
    found = reader.post(search, {"search": "shared"}).json()["tabulars"]
    assert [each["tabular-id"]["id"] for each in found] == [values["table_id"]]
