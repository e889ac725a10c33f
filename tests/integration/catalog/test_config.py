"""`GET /v1/config`: where a client starts."""

from urllib.parse import quote

import pytest

from catalog.api.urls import CAPABILITIES, WAREHOUSE_ROUTES
from lakewarden.authz.actions import ProjectAction, ServerAction
from lakewarden.context import RequestContext
from lakewarden.storage.profiles import parse_profile
from tenants import access
from tenants.models import User, Warehouse
from tenants.services import projects, warehouses
from tests.installation import Grant
from tests.openapi.catalog import ours
from tests.servers.asgi_client import Answer, AsgiClient

CONFIG = "/catalog/v1/config"
TEMPLATES = {route.template for route in WAREHOUSE_ROUTES}
NIL = "00000000-0000-0000-0000-000000000000"


def config(client: AsgiClient, warehouse: str, **headers: str) -> Answer:
    return client.get(f"{CONFIG}?warehouse={quote(warehouse, safe='')}", headers=headers)


def test_config_tells_prefix_separator_and_address(engine: AsgiClient, warehouse: Warehouse) -> None:
    told = config(engine, "lake").json()
    assert told["defaults"] == {}
    assert told["overrides"] == {
        "uri": "http://catalog.test/catalog",
        "prefix": str(warehouse.id),
        "namespace-separator": "%1F",
    }


def test_capabilities_are_the_routes_and_documented(engine: AsgiClient) -> None:
    endpoints = config(engine, "lake").json()["endpoints"]
    assert endpoints == CAPABILITIES
    assert {each.split(" ")[1] for each in endpoints} == TEMPLATES
    assert set(ours().templates) >= TEMPLATES
    assert len(set(endpoints)) == len(endpoints)


def test_each_capability_is_routed_and_no_other_method_is(engine: AsgiClient, warehouse: Warehouse) -> None:
    for template in TEMPLATES:
        url = "/catalog" + template.replace("{prefix}", str(warehouse.id)).replace("{", "no-").replace("}", "")
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            answer = engine.call(method, url)
            if f"{method} {template}" in CAPABILITIES:
                assert answer.status in {200, 400, 404}
                assert b"NoSuchRoute" not in answer.body
            else:
                assert answer.status == 405
                allowed = [each.split(" ")[0] for each in CAPABILITIES if each.split(" ")[1] == template]
                assert answer.headers["allow"] == ", ".join(allowed)


@pytest.mark.parametrize("name", ["lake", "LAKE", f"{NIL}/lake", f"{NIL}/Lake"])
def test_warehouse_is_found_by_its_name_without_case_and_by_project(
    engine: AsgiClient, warehouse: Warehouse, name: str
) -> None:
    assert config(engine, name).json()["overrides"]["prefix"] == str(warehouse.id)


def test_warehouse_of_another_project_by_header_and_by_name(
    admin: AsgiClient, admin_context: RequestContext, warehouse: Warehouse
) -> None:
    blue = projects.create(access.server(admin_context, ServerAction.CREATE_PROJECT), "Blue", project_id="blue")
    granted = access.project(admin_context, blue.id, ProjectAction.CREATE_WAREHOUSE)
    profile = parse_profile({"type": "local", "base-path": warehouse.storage_profile["base-path"] + "-blue"})
    other = warehouses.create(granted, "lake", profile=profile, delete_profile={"type": "hard"})
    found = [
        config(admin, "blue/lake"),
        config(admin, "lake", **{"x-project-id": "blue"}),
        config(admin, f"{NIL}/lake", **{"x-project-id": "blue"}),
    ]
    assert [answer.json()["overrides"]["prefix"] for answer in found] == [str(other.id)] * 2 + [str(warehouse.id)]


@pytest.mark.parametrize("name", ["pond", "no-project/lake", "a b/../c", "né%20", "nul\x00", "x" * 3000])
def test_unknown_warehouse_is_named(engine: AsgiClient, name: str) -> None:
    answer = config(engine, name)
    assert answer.error() == (404, "NoSuchWarehouseException")
    assert name.rpartition("/")[2] in answer.message()


def test_hidden_warehouse_is_answered_like_an_unknown_one(stranger: AsgiClient, warehouse: Warehouse) -> None:
    hidden, unknown = config(stranger, "lake"), config(stranger, "pond")
    assert hidden.error() == unknown.error() == (404, "NoSuchWarehouseException")
    assert hidden.message().replace("lake", "pond") == unknown.message()


@pytest.mark.parametrize("query", ["", "?", "?warehouse=", "?warehouse=x/", "?Warehouse=lake"])
def test_missing_parameter_is_a_bad_request_that_says_so(engine: AsgiClient, query: str) -> None:
    answer = engine.get(CONFIG + query)
    assert answer.error() == (400, "BadRequestException")
    assert "`warehouse`" in answer.message()


@pytest.mark.parametrize("query", ["?warehouse=lake", "?warehouse=pond", ""])
def test_the_caller_is_remembered_even_when_refused(stranger: AsgiClient, warehouse: Warehouse, query: str) -> None:
    assert stranger.get(CONFIG + query).status in {400, 404}
    user = User.objects.get(id="oidc~stranger")
    assert (user.name, user.email, user.user_type) == ("Stranger", "stranger@example.org", "human")
    assert user.last_updated_with == "config-call-creation"


def test_no_other_route_remembers_callers(client: AsgiClient, warehouse: Warehouse) -> None:
    client.as_user("passer-by").get(f"/catalog/v1/{warehouse.id}/namespaces")
    assert not User.objects.filter(id="oidc~passer-by").exists()


def test_any_right_on_the_warehouse_opens_it(client: AsgiClient, grant: Grant) -> None:
    grant("reader", "describe")
    assert config(client.as_user("reader"), "lake").status == 200


def test_nobody_without_a_token(client: AsgiClient, warehouse: Warehouse) -> None:
    answer = config(client, "lake")
    assert answer.error() == (401, "NotAuthorizedException")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert User.objects.count() == 1


def test_the_deprecated_token_route_says_where_tokens_are(client: AsgiClient) -> None:
    answer = client.post("/catalog/v1/oauth/tokens", body=b"grant_type=client_credentials")
    assert answer.status == 400
    assert answer.json()["error"] == "unsupported_grant_type"
    assert "oauth2-server-uri" in answer.json()["error_description"]
