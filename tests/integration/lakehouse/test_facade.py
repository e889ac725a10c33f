"""`/lakehouse/v1`: the catalog without a prefix, in the shapes of the change-data gateway's paper."""

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import OperationalError, connection
from psycopg.errors import DeadlockDetected

from catalog.api.urls import CAPABILITIES
from catalog.services import namespaces
from lakewarden import asgi, config
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.actions import ProjectAction, ServerAction
from lakewarden.config import LakehouseConfig
from lakewarden.context import RequestContext
from lakewarden.errors import Unavailable
from lakewarden.storage.profiles import parse_profile
from tenants import access
from tenants.models import User, Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects, warehouses
from tests.installation import Grant
from tests.integration.lakehouse.house import House
from tests.servers.asgi_client import AsgiClient, close_connections

Add = Callable[..., Warehouse]


@pytest.fixture
def add_warehouse(warehouse: Warehouse, admin_context: RequestContext) -> Add:
    """`add_warehouse("pond", project="blue")` makes a further one."""

    def add(name: str, *, project: str = DEFAULT_PROJECT_ID) -> Warehouse:
        granted = access.project(admin_context, project, ProjectAction.CREATE_WAREHOUSE)
        profile = parse_profile(
            {"type": "local", "base-path": f"{warehouse.storage_profile['base-path']}-{project}-{name}"}
        )
        return warehouses.create(granted, name, profile=profile, delete_profile={"type": "hard"})

    return add


def set_properties(**values: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": values}]}


def test_config_names_the_warehouse(house: House, warehouse: Warehouse) -> None:
    told = house.call("GET", "/config").json()
    assert told["overrides"] == {}
    assert told["defaults"] == {
        "warehouse": warehouse.location,
        "catalog-impl": "org.apache.iceberg.rest.RESTCatalog",
    }
    assert told["endpoints"] == CAPABILITIES


def test_config_remembers_the_caller_even_when_refused(stranger: AsgiClient, warehouse: Warehouse) -> None:
    assert House(stranger).call("GET", "/config").status == 404
    assert User.objects.filter(id="oidc~stranger").exists()


def test_namespaces_as_the_paper_writes_them(house: House) -> None:
    created = house.create_namespace("production")
    assert (created.status, created.json()["namespace"]) == (200, ["production"])
    assert created.json()["properties"]["owner"] == "data"
    house.create_namespace("production", "users")
    loaded = house.call("GET", "/namespaces/production%1Fusers")
    assert (loaded.status, loaded.json()["namespace"]) == (200, ["production", "users"])
    changed = house.call("POST", "/namespaces/production/properties", {"updates": {"a": "b"}, "removals": ["owner"]})
    assert changed.json() == {"updated": ["a"], "removed": ["owner"], "missing": []}
    assert house.call("HEAD", "/namespaces/production").status == 204
    assert house.call("HEAD", "/namespaces/nowhere").status == 404
    assert house.call("DELETE", "/namespaces/production%1Fusers").status == 204


def test_the_list_holds_all_levels_unless_a_parent_is_asked(house: House) -> None:
    for path in (("b",), ("b", "c"), ("b", "c", "d"), ("a",)):
        house.create_namespace(*path)
    everything = [["a"], ["b"], ["b", "c"], ["b", "c", "d"], ["default"]]
    for query in ("", "?parent="):
        told = house.call("GET", "/namespaces" + query).json()
        assert told == {"namespaces": everything, "next-page-token": None}
    assert house.call("GET", "/namespaces?parent=b").json()["namespaces"] == [["b", "c"]]
    assert house.call("GET", "/namespaces?parent=b%1Fc").json()["namespaces"] == [["b", "c", "d"]]
    assert house.call("GET", "/namespaces?parent=nowhere").error() == (404, "NoSuchNamespaceError")

    pages: list[list[list[str]]] = []
    token: str | None = ""
    while token is not None:
        told = house.call("GET", f"/namespaces?pageSize=2&pageToken={token}").json()
        pages.append(told["namespaces"])
        token = told["next-page-token"]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [path for page in pages for path in page] == everything


def test_a_page_holds_a_hundred_unless_told(house: House) -> None:
    for number in range(101):
        house.create_namespace(f"n{number:03}")
    told = house.call("GET", "/namespaces?pageToken=").json()
    assert len(told["namespaces"]) == 100
    assert told["next-page-token"]
    rest = house.call("GET", f"/namespaces?pageToken={told['next-page-token']}").json()
    assert len(rest["namespaces"]) == 2
    assert len(house.call("GET", "/namespaces").json()["namespaces"]) == 102


def test_tables_as_the_paper_writes_them(house: House, warehouse: Warehouse) -> None:
    created = house.create_table("users")
    assert created.status == 200
    assert created.json()["metadata"]["location"].startswith(warehouse.location)
    listed = house.call("GET", "/namespaces/default/tables").json()["identifiers"]
    assert listed == [{"namespace": ["default"], "name": "users"}]
    committed = house.call("POST", "/namespaces/default/tables/users", set_properties(a="b"))
    assert committed.json()["metadata"]["properties"]["a"] == "b"
    loaded = house.call("GET", "/namespaces/default/tables/users").json()
    assert loaded["metadata"] == committed.json()["metadata"]
    assert house.call("HEAD", "/namespaces/default/tables/users").status == 204
    assert house.call("DELETE", "/namespaces/default/tables/users?purgeRequested=true").status == 204
    assert house.call("HEAD", "/namespaces/default/tables/users").status == 404


def test_both_apis_tell_of_the_same_table(house: House, warehouse: Warehouse) -> None:
    house.create_table("users")
    below = "/namespaces/default/tables/users"
    catalog = house.at(f"/catalog/v1/{warehouse.id}")
    assert house.call("GET", below).json() == catalog.call("GET", below).json()
    assert list(AuditEntry.objects.order_by("id").values_list("action", flat=True))[-2:] == [
        "createNamespace",
        "createTable",
    ]


def test_every_operation_of_the_catalog_is_there(house: House) -> None:
    for capability in CAPABILITIES:
        method, template = capability.split(" ")
        url = template.replace("/v1/{prefix}", "").replace("{", "no-").replace("}", "")
        answer = house.call(method, url)
        assert answer.status in {200, 400, 404}, capability
        assert b"NoSuchRoute" not in answer.body


@pytest.mark.parametrize(
    ("method", "path", "body", "error"),
    [
        ("GET", "/namespaces/nowhere", None, (404, "NoSuchNamespaceError")),
        ("GET", "/namespaces/default/tables/nowhere", None, (404, "NoSuchTableError")),
        ("POST", "/namespaces/default/tables/nowhere", set_properties(a="b"), (404, "NoSuchTableError")),
        ("POST", "/namespaces", {"namespace": ["DEFAULT"]}, (409, "AlreadyExistsError")),
        ("POST", "/namespaces", {"namespace": 7}, (400, "BadRequestException")),
        ("DELETE", "/namespaces/default", None, (409, "NamespaceNotEmptyError")),
        ("PUT", "/namespaces/default", None, (405, "MethodNotAllowedException")),
        (
            "POST",
            "/namespaces/default/tables/users",
            {"requirements": [{"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}], "updates": []},
            (409, "CommitFailedException"),
        ),
    ],
)
def test_errors_carry_the_papers_types(house: House, method: str, path: str, body: Any, error: tuple[int, str]) -> None:
    house.create_table("users")
    answer = house.call(method, path, body)
    assert answer.error() == error
    assert answer.headers["x-request-id"]
    assert set(answer.json()) == {"error"}


def test_a_refusal_too_long_for_one_packet_carries_its_type_too(house: House) -> None:
    path = "/namespaces/" + "n" * 2000
    assert house.call("GET", path, **{"accept-encoding": "identity"}).error() == (404, "NoSuchNamespaceError")


def test_a_defect_is_an_internal_error(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("catalog.services.lakehouse.all_namespaces", fail)
    answer = house.call("GET", "/namespaces")
    assert answer.error() == (500, "InternalError")
    assert "a defect" not in answer.message()


@pytest.mark.parametrize("base", ["/lakehouse/v1", "/catalog/v1/{warehouse}"])
def test_a_session_that_was_cut_is_made_anew(house: House, warehouse: Warehouse, base: str) -> None:
    caller = house.at(base.format(warehouse=warehouse.id))
    for method, path, body in (("GET", "/namespaces", None), ("POST", "/namespaces", {"namespace": ["fresh"]})):
        with connection.cursor() as cursor:
            cursor.execute(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity "
                "where pid <> pg_backend_pid() and datname = current_database()"
            )
        assert caller.call(method, path, body).status == 200


@pytest.mark.parametrize("base", ["/lakehouse/v1", "/catalog/v1/{warehouse}"])
def test_a_lost_deadlock_is_begun_once_more(
    house: House, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, base: str
) -> None:
    monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    close_connections()  # a stale one would use up the only repetition
    losses = [DeadlockDetected("deadlock detected")]
    create = namespaces.create

    def lose_once(*arguments: Any) -> Any:
        if losses:
            undone = OperationalError()
            undone.__cause__ = losses.pop()
            raise Unavailable("undone") from undone
        return create(*arguments)

    monkeypatch.setattr(namespaces, "create", lose_once)
    caller = house.at(base.format(warehouse=warehouse.id))
    assert caller.call("POST", "/namespaces", {"namespace": ["fresh"]}).status == 200
    assert losses == []


def test_a_repeated_mutation_is_answered_as_the_first(house: House) -> None:
    key = {"idempotency-key": str(uuid.uuid4())}
    body = {"namespace": ["fresh"]}
    first, second = (house.call("POST", "/namespaces", body, **key) for _ in range(2))
    assert (first.status, first.body) == (second.status, second.body)

    key = {"idempotency-key": str(uuid.uuid4())}
    first, second = (house.call("POST", "/namespaces", body, **key) for _ in range(2))
    assert first.error() == (409, "AlreadyExistsError")
    assert second.body == first.body


def test_nobody_without_a_token(client: AsgiClient, warehouse: Warehouse) -> None:
    answer = House(client).call("GET", "/namespaces")
    assert answer.error() == (401, "NotAuthorizedException")
    assert "www-authenticate" in answer.headers


def test_a_stranger_learns_nothing(house: House, warehouse: Warehouse) -> None:
    stranger = house.as_user("stranger")
    hidden = stranger.call("GET", "/namespaces")
    named = stranger.at("/lakehouse/w/lake/v1").call("GET", "/namespaces")
    unknown = stranger.at("/lakehouse/w/pond/v1").call("GET", "/namespaces")
    assert hidden.error() == named.error() == unknown.error() == (404, "NoSuchWarehouseException")
    assert str(warehouse.id) not in hidden.message()
    assert named.message().replace("lake", "pond") == unknown.message()


def test_rights_are_the_catalogs(house: House, grant: Grant) -> None:
    grant("reader", "select")
    reader = house.as_user("reader")
    assert reader.call("GET", "/namespaces").status == 200
    assert reader.create_table("users").error() == (403, "ForbiddenException")


@pytest.mark.parametrize("base", ["/lakehouse/w/LAKE", f"/lakehouse/w/{DEFAULT_PROJECT_ID}/lake"])
def test_a_warehouse_may_be_named(house: House, base: str) -> None:
    assert house.at(f"{base}/v1").call("GET", "/namespaces").json()["namespaces"] == [["default"]]
    encoded = house.at(f"/lakehouse/w/{DEFAULT_PROJECT_ID}%2Flake/v1")
    assert encoded.call("GET", "/namespaces/default").status == 200


def test_a_warehouse_of_another_project(
    house: House, admin: AsgiClient, admin_context: RequestContext, add_warehouse: Add
) -> None:
    projects.create(access.server(admin_context, ServerAction.CREATE_PROJECT), "Blue", project_id="blue")
    other = add_warehouse("lake", project="blue")
    caller = replace(house, client=admin)
    assert (
        caller.at("/lakehouse/w/blue/lake/v1").call("GET", "/config").json()["defaults"]["warehouse"] == other.location
    )
    named = caller.at("/lakehouse/w/lake/v1").call("GET", "/config", **{"x-project-id": "blue"})
    assert named.json()["defaults"]["warehouse"] == other.location
    assert caller.call("GET", "/namespaces").json()["namespaces"] == [["default"]]


def test_among_several_warehouses_one_must_be_named_or_called_default(house: House, add_warehouse: Add) -> None:
    add_warehouse("pond")
    answer = house.call("GET", "/namespaces")
    assert answer.error() == (404, "NoSuchWarehouseException")
    assert "/lakehouse/w/<warehouse>/v1" in answer.message()
    assert house.at("/lakehouse/w/lake/v1").call("GET", "/namespaces").status == 200

    chosen = add_warehouse("Default")
    admin = house.as_user("admin")
    assert admin.call("GET", "/config").json()["defaults"]["warehouse"] == chosen.location


@pytest.mark.parametrize("name", ["POND", "blue/pond", "blue/nothing", "nothing"])
def test_the_default_warehouse_may_be_configured(
    house: House, admin_context: RequestContext, add_warehouse: Add, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    projects.create(access.server(admin_context, ServerAction.CREATE_PROJECT), "Blue", project_id="blue")
    there = {"POND": add_warehouse("pond"), "blue/pond": add_warehouse("pond", project="blue")}
    settings = config.current().model_copy(update={"lakehouse": LakehouseConfig(warehouse=name)})
    monkeypatch.setattr(config, "current", lambda: settings)
    answer = house.as_user("admin").call("GET", "/config")
    if name in there:
        assert answer.json()["defaults"]["warehouse"] == there[name].location
    else:
        assert answer.error() == (404, "NoSuchWarehouseException")
