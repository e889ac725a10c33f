"""Changes of a warehouse: name, state, policies, protection, who manages it."""

from collections.abc import Callable
from typing import Any

import pytest

from lakewarden.audit.models import AuditEntry
from lakewarden.events.models import OutboxEvent
from tenants.models import Project, Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import SCHEMA, Lake
from tests.servers.asgi_client import Answer, AsgiClient

GZIP = {"accept-encoding": "gzip"}
Call = Callable[..., Answer]


@pytest.fixture
def change(admin: AsgiClient, warehouse: Warehouse) -> Call:
    def call(what: str, body: Any = None, *, by: AsgiClient = admin) -> Answer:
        return by.post(f"/management/v1/warehouse/{warehouse.id}/{what}", body)

    return call


@pytest.fixture
def read(admin: AsgiClient, warehouse: Warehouse) -> Callable[[], dict[str, Any]]:
    def call() -> dict[str, Any]:
        found: dict[str, Any] = admin.get(f"/management/v1/warehouse/{warehouse.id}").json()
        return found

    return call


@pytest.fixture
def lake(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    found = Lake(engine, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    assert found.create_table("orders").status == 200
    assert found.create_view("report").status == 200
    return found


CHANGES: list[tuple[str, Any, str]] = [
    ("rename", {"new-name": "Sea"}, "renameWarehouse"),
    ("deactivate", None, "deactivateWarehouse"),
    ("format-version-policy", {"allowed-format-versions": [3]}, "updateWarehouseFormatVersionPolicy"),
    ("protection", {"protected": True}, "updateWarehouseProtection"),
    ("managed-by", {"managed-by": "instance-admin"}, "updateWarehouseManagedBy"),
]


@pytest.mark.parametrize(("what", "body", "event"), CHANGES)
def test_a_change_is_told_and_recorded_once(change: Call, read: Any, what: str, body: Any, event: str) -> None:
    before = read()
    answer = change(what, body)
    assert answer.status == 200
    assert read() != before
    assert read()["updated-at"]
    if what != "protection":
        assert answer.json() == read()
    assert AuditEntry.objects.filter(action=event, object_type="warehouse").count() == 1
    assert OutboxEvent.objects.filter(type=event, project_id=before["project-id"]).count() == 1
    again = change(what, body)
    assert again.json() == answer.json()
    assert AuditEntry.objects.filter(action=event).count() == 1


@pytest.mark.parametrize(
    "request_",
    [*CHANGES, ("activate", None, ""), ("delete-profile", {"delete-profile": {"type": "hard"}}, "")],
)
def test_a_change_needs_more_than_to_see_the_warehouse(
    change: Call, client: AsgiClient, stranger: AsgiClient, grant: Grant, request_: tuple[str, Any, str]
) -> None:
    what, body, _ = request_
    for privilege in ("select", "create", "write"):
        grant("alice", privilege)
    assert change(what, body, by=client.as_user("alice")).error() == (403, "ForbiddenException")
    hidden = change(what, body, by=stranger)
    assert hidden.error() == (404, "NoSuchWarehouseException")
    grant("alice", "modify")
    assert change(what, body, by=client.as_user("alice")).status == (403 if what == "managed-by" else 200)


@pytest.mark.parametrize(
    ("what", "body", "reason"),
    [
        ("rename", {"new-name": ""}, "new-name"),
        ("rename", {"new-name": "a/b"}, "must not contain '/'"),
        ("rename", {"new-name": "x" * 256}, "at most 255"),
        ("rename", {"new-name": "a\u0000"}, "new-name"),
        ("rename", {"new-name": "a\u0007"}, "control character"),
        ("rename", {"name": "a"}, "did you mean 'new-name'"),
        ("rename", {}, "new-name"),
        (
            "delete-profile",
            {"delete-profile": {"type": "soft", "expiration-seconds": 0}},
            "expiration-seconds is '0'",
        ),
        ("delete-profile", {"delete-profile": {"type": "x" * 5000}}, "is not known"),
        ("delete-profile", {"delete-profile": "hard"}, "delete-profile"),
        ("format-version-policy", {"allowed-format-versions": []}, "is empty"),
        ("format-version-policy", {"allowed-format-versions": [0]}, "0 is not a known version"),
        (
            "format-version-policy",
            {"allowed-format-versions": [1], "default-format-version": 2},
            "not one of the allowed",
        ),
        ("format-version-policy", {"default-format-version": 2}, "allowed-format-versions"),
        ("protection", {"protected": "perhaps"}, "protected"),
        ("protection", {"reason": "why"}, "protected"),
        ("protection", {"protected": True, "reason": "x" * 1001}, "at most 1000"),
        ("protection", {"protected": True, "reason": "a\u0000"}, "reason"),
        ("protection", {"protected": False, "reason": "done"}, "omit it"),
        ("managed-by", {"managed-by": "terraform"}, "one of self-managed, instance-admin"),
        ("managed-by", {"managed-by": ["a"]}, "managed-by"),
    ],
)
def test_a_bad_change_is_refused(change: Call, read: Any, what: str, body: Any, reason: str) -> None:
    before = read()
    answer = change(what, body)
    assert answer.status == 400
    assert reason in answer.message()
    assert read() == before


def test_a_renamed_warehouse_is_found_by_its_new_name_only(change: Call, lake: Lake) -> None:
    config = "/catalog/v1/config?warehouse="
    for _ in range(2):
        assert lake.client.get(f"{config}lake").status == 200
    change("rename", {"new-name": "Sea"})
    assert lake.client.get(f"{config}lake").error() == (404, "NoSuchWarehouseException")
    assert lake.client.get(f"{config}SEA").json()["overrides"]["prefix"] == lake.warehouse_id
    assert lake.load("orders")["metadata"]


def test_a_taken_name_is_refused_and_another_case_of_its_own_is_not(
    admin: AsgiClient, change: Call, tmp_path: Any
) -> None:
    body = {"warehouse-name": "Sea", "storage-profile": {"type": "local", "base-path": str(tmp_path / "sea")}}
    assert admin.post("/management/v1/warehouse", body).status == 201
    assert change("rename", {"new-name": "SEA"}).error() == (409, "AlreadyExistsException")
    assert change("rename", {"new-name": "LAKE"}).json()["name"] == "LAKE"


def catalog_calls(lake: Lake) -> dict[str, Callable[[], Answer]]:
    client = lake.client
    return {
        "config": lambda: client.get("/catalog/v1/config?warehouse=lake"),
        "load": lambda: client.get(lake.table("orders"), headers=GZIP),
        "head": lambda: client.head(lake.table("orders")),
        "view": lambda: client.get(lake.view("report"), headers=GZIP),
        "namespace": lambda: client.get(lake.namespace("sales")),
        "namespaces": lambda: client.get(lake.path("namespaces")),
        "tables": lambda: client.get(lake.namespace("sales", "tables")),
        "commit": lambda: lake.commit("orders"),
        "transaction": lambda: client.post(
            lake.path("transactions", "commit"),
            {
                "table-changes": [
                    {"identifier": {"namespace": ["sales"], "name": "orders"}, "requirements": [], "updates": []}
                ]
            },
        ),
        "create namespace": lambda: lake.create_namespace("more"),
        "create table": lambda: lake.create_table("more"),
        "drop": lambda: client.delete(lake.table("orders")),
        "lakehouse": lambda: client.get("/lakehouse/w/lake/v1/config"),
    }


def test_an_inactive_warehouse_refuses_every_catalog_call_at_once_warm_ones_too(
    change: Call, read: Any, lake: Lake
) -> None:
    warm = ("config", "load", "head", "view", "namespace", "namespaces", "tables")
    calls = catalog_calls(lake)
    for _ in range(3):
        assert {calls[name]().status for name in warm} <= {200, 204}
    assert change("deactivate").json()["status"] == "inactive"
    for _ in range(3):  # the refusals leave nothing behind that would let a later call in
        for name, call in calls.items():
            answer = call()
            assert answer.status == 404, name
            if name != "head":
                assert answer.error()[1] == "NoSuchWarehouseException", name
                assert "The warehouse 'lake' is inactive" in answer.message(), name
    assert read()["status"] == "inactive"
    assert change("activate").json()["status"] == "active"
    assert {calls[name]().status for name in warm} <= {200, 204}


def test_a_stranger_is_not_told_that_it_is_inactive(change: Call, lake: Lake, stranger: AsgiClient) -> None:
    change("deactivate")
    hidden = stranger.get("/catalog/v1/config?warehouse=lake")
    missing = stranger.get("/catalog/v1/config?warehouse=gone")
    assert hidden.message().replace("lake", "gone") == missing.message()
    table = stranger.get(lake.table("orders"))
    assert table.error() == (404, "NoSuchTableException")
    assert "inactive" not in table.message()


def test_deactivation_voids_what_was_decided(change: Call, warehouse: Warehouse) -> None:
    before = Project.objects.get(id=warehouse.project_id).authz_epoch
    change("deactivate")
    change("deactivate")
    assert Project.objects.get(id=warehouse.project_id).authz_epoch == before + 1
    change("activate")
    assert Project.objects.get(id=warehouse.project_id).authz_epoch == before + 2


def test_management_of_an_inactive_warehouse_works(change: Call, admin: AsgiClient, warehouse: Warehouse) -> None:
    change("deactivate")
    assert change("rename", {"new-name": "Sea"}).status == 200
    assert admin.get(f"/management/v1/warehouse/{warehouse.id}/statistics").status == 200
    assert admin.get(f"/management/v1/warehouse/{warehouse.id}/protection").status == 200
    assert admin.delete(f"/management/v1/warehouse/{warehouse.id}").status == 204


def protection(admin: AsgiClient, warehouse: Warehouse) -> dict[str, Any]:
    told: dict[str, Any] = admin.get(f"/management/v1/warehouse/{warehouse.id}/protection").json()
    return told


def test_a_protected_warehouse_is_not_deleted_until_that_is_lifted(
    change: Call, read: Any, admin: AsgiClient, warehouse: Warehouse
) -> None:
    assert protection(admin, warehouse) == {"protected": False}
    told = change("protection", {"protected": True, "reason": "audited"}).json()
    assert (told["protected"], told["protected-by"], told["reason"]) == (True, "oidc~admin", "audited")
    assert told == protection(admin, warehouse)
    assert read()["protected"] is True
    refused = admin.delete(f"/management/v1/warehouse/{warehouse.id}")
    assert refused.error() == (409, "ProtectedException")
    assert told["protected-at"] in refused.message()
    assert told["protected-at"].endswith("Z")
    assert f"by oidc~admin since {told['protected-at']} (audited)" in refused.message()
    lifted = change("protection", {"protected": False}).json()
    assert lifted["protected"] is False
    assert set(lifted) == {"protected", "updated-at", "updated_at"}
    assert admin.delete(f"/management/v1/warehouse/{warehouse.id}").status == 204


def test_protecting_again_keeps_who_did_it_first_unless_the_reason_is_another(
    change: Call, client: AsgiClient, grant: Grant
) -> None:
    grant("bob", "modify")
    first = change("protection", {"protected": True, "reason": "audited"}).json()
    assert change("protection", {"protected": True}, by=client.as_user("bob")).json() == first
    second = change("protection", {"protected": True, "reason": "sold"}, by=client.as_user("bob")).json()
    assert (second["protected-by"], second["reason"]) == ("oidc~bob", "sold")


def test_a_reader_sees_the_protection_and_a_stranger_nothing(
    client: AsgiClient, stranger: AsgiClient, warehouse: Warehouse, grant: Grant
) -> None:
    grant("alice", "describe")
    path = f"/management/v1/warehouse/{warehouse.id}/protection"
    assert client.as_user("alice").get(path).json() == {"protected": False}
    assert stranger.get(path).error() == (404, "NoSuchWarehouseException")


def test_a_warehouse_managed_from_above_is_changed_by_administrators_of_the_server_only(
    change: Call, client: AsgiClient, grant: Grant, admin: AsgiClient, warehouse: Warehouse
) -> None:
    grant("owner", "ownership")
    owner = client.as_user("owner")
    change("managed-by", {"managed-by": "instance-admin"})
    for what, body, _ in CHANGES:
        answer = change(what, body, by=owner)
        assert answer.error() == (403, "ForbiddenException"), what
    assert owner.delete(f"/management/v1/warehouse/{warehouse.id}").error() == (403, "ForbiddenException")
    profile = {"storage-profile": {"type": "local", "base-path": str(warehouse.location.removeprefix("file://"))}}
    assert change("storage", profile, by=owner).error() == (403, "ForbiddenException")
    assert change("managed-by", {"managed-by": "self-managed"}, by=owner).status == 403
    assert change("rename", {"new-name": "Sea"}).status == 200
    assert change("managed-by", {"managed-by": "self-managed"}).status == 200
    assert change("rename", {"new-name": "Lake"}, by=owner).status == 200


def set_policy(change: Call, *allowed: int, default: int | None = None) -> None:
    body: dict[str, Any] = {"allowed-format-versions": list(allowed)}
    assert (
        change("format-version-policy", body | ({} if default is None else {"default-format-version": default})).status
        == 200
    )


@pytest.mark.parametrize(
    ("allowed", "default", "expected"),
    [((1, 2, 3), None, 2), ((1, 2, 3), 3, 3), ((1, 3), None, 3), ((1,), None, 1), ((1, 2), 1, 1)],
)
def test_a_table_that_asks_for_no_format_gets_the_warehouses(
    change: Call, lake: Lake, allowed: tuple[int, ...], default: int | None, expected: int
) -> None:
    set_policy(change, *allowed, default=default)
    assert lake.create_table("new").json()["metadata"]["format-version"] == expected
    staged = lake.create_table("staged", stage_create=True).json()["metadata"]
    assert staged["format-version"] == expected


def upgrade(version: int) -> dict[str, Any]:
    return {"action": "upgrade-format-version", "format-version": version}


def first_updates(location: str) -> list[dict[str, Any]]:
    """What finishes a staged creation, without a format version."""
    return [
        {"action": "set-location", "location": location},
        {"action": "add-schema", "schema": SCHEMA},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]


def test_a_creation_by_updates_gets_the_warehouses_format_too(change: Call, lake: Lake) -> None:
    set_policy(change, 1, 3, default=1)
    location = lake.load("orders")["metadata"]["location"] + "-made"
    created = lake.commit("made", *first_updates(location), requirements=[{"type": "assert-create"}])
    assert created.json()["metadata"]["format-version"] == 1


def refused(answer: Answer, version: int) -> None:
    assert answer.error() == (400, "ValidationException")
    assert f"Format version {version} is not allowed in this warehouse; allowed: 1, 2" in answer.message()


def test_a_format_outside_the_policy_is_refused_wherever_it_comes_from(change: Call, lake: Lake) -> None:
    lake.create_table("third", properties={"format-version": "3"})
    file = lake.load("third")["metadata-location"]
    set_policy(change, 1, 2)

    refused(lake.create_table("new", properties={"format-version": "3"}), 3)
    refused(lake.create_table("new", properties={"format-version": "3"}, stage_create=True), 3)
    refused(lake.commit("orders", upgrade(3)), 3)
    location = lake.load("orders")["metadata"]["location"] + "-made"
    updates = [upgrade(3), *first_updates(location)]
    created = lake.commit("made", *updates, requirements=[{"type": "assert-create"}])
    refused(created, 3)
    transaction = {
        "identifier": {"namespace": ["sales"], "name": "orders"},
        "requirements": [],
        "updates": [upgrade(3)],
    }
    refused(lake.client.post(lake.path("transactions", "commit"), {"table-changes": [transaction]}), 3)
    lake.client.delete(lake.table("third"))
    body = {"name": "third", "metadata-location": file}
    refused(lake.client.post(lake.namespace("sales", "register"), body), 3)

    assert lake.load("orders")["metadata"]["format-version"] == 2
    set_policy(change, 1, 2, 3)
    assert lake.commit("orders", upgrade(3)).status == 200


def test_a_table_of_a_format_that_is_allowed_no_more_can_still_be_changed(change: Call, lake: Lake) -> None:
    lake.create_table("third", properties={"format-version": "3"})
    set_policy(change, 1, 2)
    changed = lake.commit("third", {"action": "set-properties", "updates": {"a": "1"}}, upgrade(3))
    assert changed.status == 200


def test_decisions_known_before_do_not_open_an_inactive_warehouse(change: Call, lake: Lake) -> None:
    lake.client.get(lake.table("orders"), headers=GZIP)
    Warehouse.objects.update(status=Warehouse.Status.INACTIVE)  # the epoch stands
    assert lake.client.get(lake.table("orders"), headers=GZIP).status == 404
    assert lake.client.head(lake.table("orders")).status == 404
    assert lake.client.get(lake.table("orders"), headers=GZIP).status == 404
