"""Who may call which route: a table over all of them, so that a new route fails here until it is listed."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from uuid import uuid4

import pytest

from catalog.api.generic_tables.urls import ROUTES as GENERIC_ROUTES
from catalog.api.urls import CAPABILITIES
from lakewarden.audit.models import AuditEntry
from lakewarden.events.models import OutboxEvent
from tests.installation import Grant
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.routes import CASES, Needs, Target, mount, move
from tests.servers.asgi_client import Answer

MISSING_TYPES: dict[Target, str] = {
    "warehouse": "NoSuchWarehouseException",
    "namespace": "NoSuchNamespaceException",
    "table": "NoSuchTableException",
    "view": "NoSuchViewException",
    "generic table": "NoSuchGenericTableException",
}
MISSING_NAMES = {"sales": "hides", "orders": "nobody", "report": "no-one", "birds": "gulls"}
"""As long as the names that exist, and none of them there."""


WEAKER: dict[Needs, Needs | None] = {
    "describe": None,
    "select": "describe",
    "create": "describe",
    "write": "select",
    "modify": "write",
    "ownership": "modify",
}
"""The strongest privilege that is not enough."""

each_route = pytest.mark.parametrize("route", CASES)


def call(lake: Lake, route: str, *, there: bool = True, left: Mapping[str, str] = MappingProxyType({})) -> Answer:
    """The route's call on what exists, or the same call on what does not; `left` are files that may be registered."""
    method, template = route.split(" ")
    table = "birds" if mount(template) == "/generic" else "orders"
    path = template.format(prefix=lake.warehouse_id, namespace="sales", table=table, view="report")
    path += CASES[route].query
    body = json.dumps(CASES[route].body)
    for name, location in left.items():
        body = body.replace(f"{{{name}}}", location)
    if not there:
        for name, missing in MISSING_NAMES.items():
            path, body = path.replace(name, missing), body.replace(f'"{name}"', f'"{missing}"')
    return lake.client.call(method, mount(template) + path, json=json.loads(body))


def without_names(answer: Answer) -> bytes:
    text = answer.body
    for name, missing in MISSING_NAMES.items():
        text = text.replace(name.encode(), missing.encode())
    return text


@pytest.fixture
def filled(lake: Lake) -> Lake:
    """The warehouse with a table, a view and a generic table in it."""
    assert lake.create_table("orders").status == 200
    assert lake.create_view("report").status == 200
    assert lake.create_generic("birds").status == 200
    return lake


def changes() -> tuple[int, int]:
    return AuditEntry.objects.count(), OutboxEvent.objects.count()


def test_every_route_is_listed() -> None:
    beside = {capability for route in GENERIC_ROUTES for capability in route.capabilities}
    assert set(CASES) == {*CAPABILITIES, *beside}


@each_route
def test_without_credentials_nothing_is_told(filled: Lake, route: str) -> None:
    before = changes()
    nobody = Lake(type(filled.client)(), filled.warehouse_id)
    told = [call(nobody, route), call(nobody, route, there=False), call(filled.as_user("expired"), route)]
    assert [answer.status for answer in told] == [401] * 3
    assert len({answer.body for answer in told}) == 1
    assert all("www-authenticate" in answer.headers for answer in told)
    assert changes() == before


@each_route
def test_a_stranger_cannot_tell_what_exists(filled: Lake, route: str) -> None:
    before = changes()
    stranger = filled.as_user("stranger")
    if CASES[route].target == "warehouse":
        elsewhere = Lake(stranger.client, str(uuid4()))
        hidden, missing = call(stranger, route), call(elsewhere, route)
        assert hidden.body.replace(stranger.warehouse_id.encode(), elsewhere.warehouse_id.encode()) == missing.body
    else:
        hidden, missing = call(stranger, route), call(stranger, route, there=False)
        assert without_names(hidden) == missing.body
    assert hidden.status == missing.status == 404
    if hidden.body:
        assert hidden.error() == (404, MISSING_TYPES[CASES[route].target])
    assert changes() == before


@each_route
def test_who_sees_but_may_not_is_told_so(filled: Lake, grant: Grant, route: str) -> None:
    weaker = WEAKER[CASES[route].needs]
    before = changes()
    if weaker is None:
        return
    grant("weak", weaker)
    answer = call(filled.as_user("weak"), route)
    assert answer.error() == (403, "ForbiddenException")
    assert CASES[route].needs in answer.message()
    assert changes() == before


@each_route
def test_the_privilege_that_is_needed_is_enough(filled: Lake, grant: Grant, route: str) -> None:
    case = CASES[route]
    grant("able", case.needs)
    if route.endswith("/rename"):
        grant("able", "create")
    answer = call(filled.as_user("able"), route, left=left_behind(filled))
    assert answer.status == case.allowed, answer.body
    assert bool(answer.body) is (case.allowed != 204)


def left_behind(lake: Lake) -> dict[str, str]:
    """The metadata files of a table and a view that were dropped without them."""
    told = {}
    for kind, made, path in (
        ("table", lake.create_table("left"), lake.table("left")),
        ("view", lake.create_view("left-view"), lake.view("left-view")),
    ):
        told[f"left {kind}"] = made.json()["metadata-location"]
        assert lake.client.delete(f"{path}?purgeRequested=false").status == 204
    return told


@each_route
def test_an_identity_provider_that_is_away_is_no_refusal(filled: Lake, route: str) -> None:
    answer = call(filled.as_user("unavailable"), route)
    assert answer.status == 503
    assert answer.headers["retry-after"]


def test_rename_needs_the_right_to_create_where_it_goes(filled: Lake, grant: Grant) -> None:
    grant("mover", "modify")
    for kind, name in (("tables", "orders"), ("views", "report")):
        answer = filled.as_user("mover").client.post(filled.path(kind, "rename"), move(name))
        assert answer.error() == (403, "ForbiddenException")


def test_owners_of_a_namespace_may_change_and_drop_it(filled: Lake, grant: Grant) -> None:
    grant("maker", "create")
    maker = filled.as_user("maker")
    assert maker.create_namespace("mine").status == 200
    assert maker.client.post(maker.namespace("mine", "properties"), {"updates": {"a": "b"}}).status == 200
    assert maker.client.delete(maker.namespace("mine")).status == 204
    assert maker.client.delete(maker.namespace("sales")).error() == (403, "ForbiddenException")


def test_owners_of_a_table_may_change_and_drop_it(filled: Lake, grant: Grant) -> None:
    grant("maker", "create")
    maker = filled.as_user("maker")
    assert maker.create_table("mine").status == 200
    assert maker.commit("mine").status == 200
    assert maker.commit("orders").error() == (403, "ForbiddenException")
    assert maker.client.delete(maker.table("mine")).status == 204
