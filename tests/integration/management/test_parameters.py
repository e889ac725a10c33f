"""No route ignores a parameter that the OpenAPI document names: each one is sent, and changes the answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from tenants import access
from tenants.services import projects
from tests.integration.isolation.asked import Asked
from tests.integration.isolation.cases import CATALOG, Case
from tests.integration.isolation.management_cases import management
from tests.integration.isolation.world import ADMIN, World
from tests.integration.isolation.worlds import world  # noqa: F401 a fixture
from tests.integration.management.openapi import operations
from tests.openapi.catalog import ours
from tests.servers.asgi_client import Answer, AsgiClient

CASES = CATALOG | management()
CHANGING = {"POST", "PUT", "DELETE"}
M = "/management/v1"
_TABLES = "/catalog/v1/{prefix}/namespaces/{namespace}/tables"
_SEES = {"project": {"action": "get_metadata"}}
ASKING = {
    f"POST {M}/action/batch-check": Case({"checks": [{"operation": _SEES}]}),
    f"POST {M}/permissions/check": Case({"operation": _SEES}),
}
"""Routes that change nothing, with a request that depends on the project."""
NOBODY = "0197f1c2-0000-7000-8000-000000000000"
VALUES = {
    "Idempotency-Key": "no-uuid",
    "Last-Event-ID": "rainbow",
    "action": "rainbow",
    "actor": "oidc~nobody",
    "assumed-role": NOBODY,
    "createdAfter": "rainbow",
    "createdBefore": "rainbow",
    "effective": "rainbow",
    "expand": "rainbow",
    "force": "rainbow",
    "from": "2100-01-01T00:00:00Z",
    "name": "no-such-name",
    "namespaceId": "rainbow",
    "numAttempts": "rainbow",
    "object-id": "nothing",
    "object-type": "view",
    "outcome": "denied",
    "pageToken": "rainbow",
    "page_size": "0",
    "page_token": "rainbow",
    "pageSize": "1",
    "principalRole": "{role}",
    "table": "no.table",
    "principalUser": "oidc~nobody",
    "project-id": "nowhere",
    "projectId": "nowhere",
    "providerIds": "nobody",
    "relations": "rainbow",
    "report-type": "rainbow",
    "request-id": "nothing",
    "roleIds": NOBODY,
    "sourceIds": "nothing",
    "targetType": "rainbow",
    "to": "2000-01-01T00:00:00Z",
    "type": "rainbow",
    "value": "nothing",
    "warehouseId": "rainbow",
    "warehouseStatus": "inactive",
    "If-None-Match": "{etag}",
    "X-Iceberg-Access-Delegation": "vended-credentials",
    "X-Project-Id": "nowhere",
    "parent": "nowhere",
    "purge": "rainbow",
    "purgeRequested": "rainbow",
    "recursive": "rainbow",
    "returnProtectionStatus": "true",
    "returnUuid": "true",
    "returnUuids": "true",
    "since": "rainbow",
    "sink": "rainbow",
    "snapshots": "rainbow",
    "wait": "rainbow",
    "warehouse": "nowhere",
    "without-project": "true",
    "x-project-id": "nowhere",
}
"""By parameter, a value with which no answer is the same as without it: it selects nothing, somebody without rights,
one entry of several, or is refused."""
REFUSED = {"pageSize": "0", "principalRole": "rainbow", "principalUser": "rainbow"}
"""For a list of one entry or none, from which nothing is left out: a value that is refused."""


IGNORED = "Accepted and ignored."
"""What the catalog's document says of the parameters that only engines with another kind of catalog need."""


def of_catalog() -> list[tuple[str, str, dict[str, Any]]]:
    """As `operations`, of the catalog's document."""
    shared = ours().document["components"].get("parameters", {})
    told = []
    for method, template, operation in ours().operations():
        named = [*ours().document["paths"][template].get("parameters", ()), *operation.get("parameters", ())]
        resolved = [shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each for each in named]
        sent = [each for each in resolved if each.get("description") != IGNORED]
        base = "/lakekeeper" if "/generic-tables" in template else "/catalog"
        told.append((method, f"{base}{template}", {"parameters": sent}))
    return told


PARAMETERS = [
    (method, template, parameter["name"], parameter["in"])
    for method, template, operation in [*operations(), *of_catalog()]
    for parameter in operation.get("parameters", ())
    if parameter["in"] != "path"
]
ELSEWHERE = {
    (f"POST {M}/search/user", "x-project-id"): "test_search.py::test_others_find_the_people_of_their_project_only",
    (f"GET {M}/warehouse/{{warehouse_id}}/maintenance", "table"): "test_warehouse_maintenance.py::test_one_tables_runs",
    (f"GET {M}/server/event-dead-letter", "sink"): (
        "../events/test_delivery_administration.py::test_dead_letters_are_listed_in_pages_and_shown"
    ),
    **{
        (f"GET {M}/{route}", name): "../events/test_event_reading.py::test_filters"
        for route in ("events", "server/events")
        for name in ("object-id", "object-type")
    },
    **{
        (
            f"GET {M}/{route}",
            "Last-Event-ID",
        ): "../events/test_event_streams.py::test_a_stream_begins_with_what_comes_and_resumes_where_it_ended"
        for route in ("events", "server/events")
    },
    **{
        (route, "X-Iceberg-Access-Delegation"): "storage of the type `local` has no credential to hand out"
        for route in (f"POST {_TABLES}", f"GET {_TABLES}/{{table}}", f"POST {_TABLES.replace('tables', 'register')}")
    },
}
"""Parameters that change nothing here: the test that shows what they do for others, or why there is nothing to do."""


def case_of(method: str, template: str) -> Case:
    route = f"{method} {template}"
    return ASKING.get(route) or CASES.get(route, [Case()])[0]


def ask(of: World, caller: AsgiClient, asked: Asked, *, project: str | None, headers: dict[str, str]) -> Answer:
    return asked.ask(AsgiClient({**caller.headers, **headers}), of.a.values, project)


@pytest.fixture
def everything(world: World) -> tuple[World, AsgiClient]:  # noqa: F811
    """An operator, who sees all that there is, and has the grants that lists are about."""
    operator = world.client.as_user("admin")
    chain = access.project_chain(world.a.values["project"])
    ledger.give([access.SERVER], [(ADMIN, Privilege.OPERATOR)], granted_by=ADMIN)
    ledger.give(chain, [(ADMIN, Privilege.PROJECT_ADMIN), (ADMIN, Privilege.DESCRIBE)], granted_by=ADMIN)
    projects.bump_epoch(world.a.values["project"])
    tagged = f"PUT {M}/warehouse/{{warehouse_id}}/tags/{{tag_name}}"
    assert Asked.of(tagged, CASES[tagged][0]).ask(operator, world.a.values, None).status == 200
    return world, operator


def test_every_parameter_has_a_value_that_proves_it() -> None:
    assert PARAMETERS
    assert {name for _, _, name, _ in PARAMETERS} - VALUES.keys() == set()


def shown(answer: Answer) -> tuple[int, Any]:
    return answer.status, json.loads(answer.body) if answer.body else None


def with_parameter(case: Case, name: str, value: str) -> Case:
    kept = [each for each in case.query.split("&") if each and not each.startswith(f"{name}=")]
    return Case(case.body, query="&".join([*kept, f"{name}={value}"]), path=case.path)


@pytest.mark.parametrize(("method", "template", "name", "place"), PARAMETERS)
def test_it_changes_the_answer(
    everything: tuple[World, AsgiClient], method: str, template: str, name: str, place: str
) -> None:
    of, operator = everything
    if (named := ELSEWHERE.get((f"{method} {template}", name))) is not None:
        file, _, test = named.partition("::")
        assert not test or f"def {test}(" in (Path(__file__).parent / file).read_text()
        return
    case, value = case_of(method, template), VALUES[name]
    if place == "header":
        asked, headers = Asked.of(f"{method} {template}", case), {name: value}
    else:
        asked, headers = Asked.of(f"{method} {template}", with_parameter(case, name, value)), {}
    if method in CHANGING and (name == "Idempotency-Key" or f"{method} {template}" not in ASKING):
        # asked without it, it would change something: that it succeeds then is what `test_authorization` is about
        assert ask(of, operator, asked, project=None, headers=headers).status in {400, 404}
        return
    plain = Asked.of(f"{method} {template}", case)
    before = [shown(ask(of, operator, plain, project=None, headers={})) for _ in range(2)]
    assert before[0] == before[1], "the answer must change because of the parameter, not by itself"
    if name in REFUSED and len(entries(before[0][1])) < 2:
        asked = Asked.of(f"{method} {template}", with_parameter(case, name, REFUSED[name]))
    if name == "If-None-Match":
        headers = {name: ask(of, operator, plain, project=None, headers={}).headers["etag"]}
    changed = shown(ask(of, operator, asked, project=None, headers=headers))
    assert changed != before[0]
    if name == "pageSize" and changed[0] == 200:
        assert len(entries(changed[1])) == 1
        assert any(each.startswith("next-page") for each in changed[1])


def entries(body: Any) -> list[Any]:
    return next((each for each in body.values() if isinstance(each, list)), []) if isinstance(body, dict) else []
