"""Who may call which management route: `endpoints` is the table, so that a new route fails here until it is listed."""

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from catalog.access import namespace_chain, tabular_chain
from catalog.models import Namespace, Tabular
from lakewarden.authz.actions import ObjectType
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import GRANTABLE
from lakewarden.context import PrincipalId
from tenants import access
from tenants.models import Role, TagDefinition, Warehouse
from tenants.services import projects
from tests.integration.catalog.routes import CASES as CATALOG_CASES
from tests.integration.catalog.routes import mount
from tests.integration.isolation.asked import Asked
from tests.integration.isolation.cases import Case, success
from tests.integration.isolation.management_cases import management
from tests.integration.isolation.served import served, short_form
from tests.integration.isolation.world import ADMIN, World
from tests.integration.isolation.worlds import application, built, fresh_world, world  # noqa: F401 fixtures
from tests.integration.management.endpoints import RULES, UNRESTRICTED, WITHOUT_TOKEN, M, Rule
from tests.servers.asgi_client import Answer

CASES = management()
ROUTES = [*RULES, *UNRESTRICTED]
BEHIND_THE_TOKEN = {
    *("GET /catalog/v1/config", "POST /catalog/v1/oauth/tokens"),
    *("GET /catalog/v1/openapi.json", "GET /catalog/v1/openapi.yaml"),
    "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/sign",
    "POST /catalog/v1/signer/{prefix}/tabular-id/{table_id}/v1/aws/s3/sign",
    *("POST /catalog/v1/{prefix}/v1/aws/s3/sign", "POST /catalog/{prefix}/v1/aws/s3/sign"),
}
"""Routes of the catalog that have tests of their own: test_config.py, test_openapi.py, test_signing.py."""
AFTER_THE_DECISION = {400, 409}
"""What a case's object cannot take, whoever asks: said only to who may."""
_UNREADABLE = Case({}, owner=400)
OTHERWISE = {
    f"POST {M}/user": Case({"id": "oidc~fresh", "name": "x", "user-type": "human"}),
    f"GET {M}/server/event-dead-letter/{{letter_id}}": Case(path=f"{M}/server/event-dead-letter/x", owner=400),
    f"POST {M}/server/event-sink/{{sink}}/replay": _UNREADABLE,
    f"POST {M}/server/event-dead-letter/send": _UNREADABLE,
    f"POST {M}/server/event-dead-letter/drop": _UNREADABLE,
}
"""Cases where the isolation of tenants asks about what is there already, or what only a worker brings there."""

READS = [route for route in RULES if route.startswith("GET")]
DELETIONS = [route for route in RULES if route.startswith("DELETE") or route.endswith("/deactivate")]
"""What others cannot be asked about afterwards."""
WRITES = [route for route in RULES if route not in {*READS, *DELETIONS}]

each_rule = pytest.mark.parametrize("route", RULES)

_done: set[str] = set()


def give_rights(of: World) -> None:
    """Give everybody named `c-<kind>-<privilege>` that one right on the object of the kind that the cases are about."""
    values = of.a.values
    if values["warehouse"] not in _done:
        project = access.project_chain(values["project"])
        found = {
            ObjectType.SERVER: [access.SERVER],
            ObjectType.PROJECT: project,
            ObjectType.ROLE: access.role_chain(Role.objects.get(id=values["role"])),
            ObjectType.TAG_DEFINITION: access.tag_chain(TagDefinition.objects.get(id=values["tag"])),
            ObjectType.WAREHOUSE: access.warehouse_chain(Warehouse.objects.get(id=values["warehouse"])),
            ObjectType.NAMESPACE: namespace_chain(Namespace.objects.get(id=values["namespace_id"])),
            ObjectType.TABLE: tabular_chain(Tabular.everything.get(uuid=values["table_id"])),
            ObjectType.VIEW: tabular_chain(Tabular.everything.get(uuid=values["view_id"])),
            ObjectType.GENERIC_TABLE: tabular_chain(Tabular.everything.get(uuid=values["generic_table_id"])),
        }
        for kind, chain in found.items():
            for privilege in GRANTABLE[kind]:
                ledger.give(chain, [(PrincipalId(f"oidc~c-{kind}-{privilege}"), privilege)], granted_by=ADMIN)
        projects.bump_epoch(values["project"])
        _done.add(values["warehouse"])


def case_of(route: str) -> Case:
    return OTHERWISE.get(route) or CASES.get(route, [Case()])[0]


def allowed(route: str) -> int:
    """The one status that its case is answered with to who may."""
    told = case_of(route).owner
    return told if told in AFTER_THE_DECISION else success(route)


def ask(of: World, route: str, name: str | None) -> Answer:
    """The route's case, asked by a user of the first project; None: without a token."""
    asked = Asked.of(route, case_of(route))
    caller = of.client if name is None else of.client.as_user(name)
    return asked.ask(caller, of.a.values, of.a.values["project"])


_changed: list[World] = []


@pytest.fixture
def changed_world(
    database_url: str, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """One for all tests that change something and leave every object where it is."""
    with application(django_db_blocker) as client:
        if not (_changed and _changed[0].is_there()):
            _changed[:] = [built(client, tmp_path_factory.mktemp("changed"))]
        yield _changed[0]


def test_every_route_has_a_case_without_a_token_and_one_without_the_right() -> None:
    there = served()
    listed = {*ROUTES, *WITHOUT_TOKEN}
    assert listed | {short_form(route) for route in listed} == {each for each in there if f" {M[:11]}" in each}
    # the facade serves the same code under other addresses: tests/integration/isolation asks it all
    catalog = {f"{method} {mount(path)}{path}" for method, _, path in (each.partition(" ") for each in CATALOG_CASES)}
    assert catalog | BEHIND_THE_TOKEN == {each for each in there if " /catalog/" in each or " /generic/" in each}


def test_the_table_tells_apart_who_may_and_who_may_not() -> None:
    for route, rule in RULES.items():
        assert rule.least(), route
        assert set(rule.least()).isdisjoint(privilege for privilege, _ in rule.most()), route


@pytest.mark.parametrize("route", ROUTES)
def test_without_a_token_nothing_is_told(world: World, route: str) -> None:  # noqa: F811
    give_rights(world)
    before = world.state()
    told = [ask(world, route, None), ask(world, route, "expired")]
    assert [answer.error() for answer in told] == [(401, "NotAuthorizedException")] * 2
    assert all(answer.headers["www-authenticate"].startswith("Bearer") for answer in told)
    assert len({answer.message() for answer in told}) == 1
    assert world.state() == before


@pytest.mark.parametrize("route", WITHOUT_TOKEN)
def test_the_document_of_the_api_is_for_everybody(world: World, route: str) -> None:  # noqa: F811
    assert ask(world, route, None).status == 200


@pytest.mark.parametrize("route", UNRESTRICTED)
def test_some_routes_are_for_everybody_with_a_token(world: World, route: str) -> None:  # noqa: F811
    status = 400 if route.endswith("/bootstrap") else 200  # it is done already
    assert ask(world, route, "nobody").status == status


def refused(rule: Rule) -> list[tuple[str, int]]:
    """Callers who may not, with the status that each gets: with the most that is not enough, and without any right."""
    first = rule.needs[0]
    nothing = first.refusal(frozenset())
    assert nothing is not None
    told = [(f"c-{rule.by}-{privilege}", status) for privilege, status in rule.most()]
    told += [("nobody", nothing)]
    if rule.by is ObjectType.SERVER and first.of is ObjectType.SERVER:
        told.append(("c-project-project_admin", nothing))
    return told


@each_rule
def test_who_may_not_is_refused_and_changes_nothing(world: World, route: str) -> None:  # noqa: F811
    give_rights(world)
    before = world.state()
    for name, status in refused(RULES[route]):
        answer = ask(world, route, name)
        assert answer.status == status, (name, answer.body)
        if status == 403:
            assert answer.error() == (403, "ForbiddenException")
            assert answer.message().startswith("Not allowed"), answer.message()
    assert world.state() == before


def ensure_least_is_enough(of: World, route: str) -> None:
    rule = RULES[route]
    give_rights(of)
    for privilege in rule.least() if route in READS else rule.least()[:1]:
        answer = ask(of, route, f"c-{rule.by}-{privilege}")
        assert answer.status == allowed(route), (privilege, answer.body)


@pytest.mark.parametrize("route", READS)
def test_the_least_right_that_is_needed_to_read_is_enough(world: World, route: str) -> None:  # noqa: F811
    ensure_least_is_enough(world, route)


@pytest.mark.parametrize("route", WRITES)
def test_the_least_right_that_is_needed_to_change_is_enough(changed_world: World, route: str) -> None:
    ensure_least_is_enough(changed_world, route)


@pytest.mark.parametrize("route", DELETIONS)
def test_the_least_right_that_is_needed_to_delete_is_enough(fresh_world: World, route: str) -> None:  # noqa: F811
    ensure_least_is_enough(fresh_world, route)
