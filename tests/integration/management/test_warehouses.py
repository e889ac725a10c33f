from pathlib import Path
from typing import Any

import pytest

from lakewarden.audit.models import AuditEntry
from tenants.models import Warehouse
from tests.servers.asgi_client import AsgiClient

NIL = "00000000-0000-0000-0000-000000000000"


def body_for(directory: Path, name: str = "lake", **more: Any) -> dict[str, Any]:
    return {"warehouse-name": name, "storage-profile": {"type": "local", "base-path": str(directory)}, **more}


def test_create_warehouse_answers_with_all_of_it(admin: AsgiClient, tmp_path: Path) -> None:
    created = admin.post("/management/v1/warehouse", body_for(tmp_path / "lake"))
    told = created.json()
    assert created.status == 201
    assert told.pop("id") == told.pop("warehouse-id")
    assert told == {
        "name": "lake",
        "project-id": NIL,
        "status": "active",
        "storage-profile": {"type": "local", "base-path": str(tmp_path / "lake")},
        "delete-profile": {"type": "hard"},
    }
    assert AuditEntry.objects.filter(action="createWarehouse").count() == 1


def test_a_warehouse_is_found_by_id_and_in_the_list(admin: AsgiClient, tmp_path: Path) -> None:
    created = [
        admin.post("/management/v1/warehouse", body_for(tmp_path / name, name)).json() for name in ("west", "East")
    ]
    assert admin.get(f"/management/v1/warehouse/{created[0]['id']}").json() == created[0]
    assert admin.get("/management/v1/warehouse").json() == {"warehouses": [created[1], created[0]]}


def test_nulls_and_defaults_of_a_generated_client_are_accepted(admin: AsgiClient, tmp_path: Path) -> None:
    nothing = {"storage-credential": None, "managed-by": None, "delete-profile": {"type": "hard"}}
    body = {**body_for(tmp_path / "lake"), **nothing}
    assert admin.post("/management/v1/warehouse", body).status == 201


def test_the_body_may_name_the_project_and_the_header_wins(admin: AsgiClient, tmp_path: Path) -> None:
    for project in ("blue", "red"):
        admin.post("/management/v1/project", {"project-name": project, "project-id": project})
    by_body = admin.post("/management/v1/warehouse", body_for(tmp_path / "a", "a", **{"project-id": "blue"}))
    by_header = admin.post(
        "/management/v1/warehouse",
        body_for(tmp_path / "b", "b", **{"project-id": "blue"}),
        headers={"x-project-id": "red"},
    )
    assert (by_body.json()["project-id"], by_header.json()["project-id"]) == ("blue", "red")
    listed = admin.get("/management/v1/warehouse?projectId=blue").json()["warehouses"]
    assert [warehouse["name"] for warehouse in listed] == ["a"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"delete-profile": {"type": "soft", "expiration-seconds": 3600}}, "soft deletion is not served"),
        ({"delete-profile": {"type": "never"}}, "is not known"),
        ({"delete-profile": {"type": "hard", "more": 1}}, "is not known"),
        ({"storage-credential": {"type": "s3", "credential-type": "access-key"}}, "has none"),
        ({"storage-profile": {"type": "s3", "bucket": "b"}}, "this server knows 'local'"),
        ({"storage-profile": "local"}, "storage-profile"),
        ({"storage-profile": {"type": "local"}}, "base-path"),
        ({"storage-profile": {"type": "local", "base-path": "lake"}}, "not an absolute path"),
        ({"storage-profile": {"type": "local", "base-path": "/x/../y"}}, "'..'"),
        ({"storage-profile": {"type": "local", "base-path": "/etc/lake"}}, "storage.local_roots"),
        ({"allowed-format-versions": [2]}, "'allowed-format-versions' is not served"),
        ({"warehouse-name": "a/b"}, "must not hold '/'"),
        ({"warehouse-name": ""}, "warehouse-name"),
    ],
)
def test_create_warehouse_with_a_bad_member_is_refused(
    admin: AsgiClient, tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    answer = admin.post("/management/v1/warehouse", {**body_for(tmp_path / "lake"), **changes})
    assert answer.status == 400
    assert reason in answer.message()
    assert not Warehouse.objects.exists()


def test_storage_that_cannot_be_written_is_refused(admin: AsgiClient, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file where the directory should be")
    answer = admin.post("/management/v1/warehouse", body_for(tmp_path / "lake"))
    assert answer.status == 400
    assert "storage cannot be used" in answer.message()


def test_the_probe_leaves_nothing_behind(admin: AsgiClient, tmp_path: Path) -> None:
    admin.post("/management/v1/warehouse", body_for(tmp_path / "lake"))
    assert list((tmp_path / "lake").iterdir()) == []


@pytest.mark.parametrize("inner", ["", "/below"])
def test_overlapping_locations_are_refused_before_anything_is_written(
    admin: AsgiClient, tmp_path: Path, inner: str
) -> None:
    admin.post("/management/v1/warehouse", body_for(tmp_path / "lake"))
    answer = admin.post("/management/v1/warehouse", body_for(Path(f"{tmp_path}/lake{inner}"), "other"))
    assert answer.error() == (409, "AlreadyExistsException")
    around = admin.post("/management/v1/warehouse", body_for(tmp_path, "around"))
    assert around.status == 409
    assert list((tmp_path / "lake").iterdir()) == []


def test_a_taken_name_is_refused_without_regard_to_case(admin: AsgiClient, tmp_path: Path) -> None:
    admin.post("/management/v1/warehouse", body_for(tmp_path / "a", "Lake"))
    answer = admin.post("/management/v1/warehouse", body_for(tmp_path / "b", "lake"))
    assert answer.error() == (409, "AlreadyExistsException")


def test_a_hidden_warehouse_answers_like_a_missing_one(stranger: AsgiClient, warehouse: Warehouse) -> None:
    hidden = stranger.get(f"/management/v1/warehouse/{warehouse.id}")
    missing = stranger.get("/management/v1/warehouse/0197f1c2-0000-7000-8000-000000000000")
    assert hidden.error() == missing.error() == (404, "NoSuchWarehouseException")


@pytest.mark.parametrize("strange", ["no-uuid", "%00", "..%2F..%2Fetc", "%ff"])
def test_an_id_that_cannot_be_one_is_missing(admin: AsgiClient, strange: str) -> None:
    assert admin.get(f"/management/v1/warehouse/{strange}").error() == (404, "NoSuchWarehouseException")


def test_a_seen_warehouse_can_be_read(client: AsgiClient, warehouse: Warehouse, grant: Any) -> None:
    grant("alice", "describe")
    assert client.as_user("alice").get(f"/management/v1/warehouse/{warehouse.id}").status == 200


def test_create_warehouse_without_rights_answers_as_if_the_project_were_missing(
    stranger: AsgiClient, tmp_path: Path
) -> None:
    answer = stranger.post("/management/v1/warehouse", body_for(tmp_path / "lake"))
    assert answer.error() == (404, "NoSuchProjectException")
    assert not (tmp_path / "lake").exists()


def test_the_list_can_be_narrowed_to_a_status(admin: AsgiClient, warehouse: Warehouse) -> None:
    Warehouse.objects.update(status=Warehouse.Status.INACTIVE)
    listed = {
        query: len(admin.get(f"/management/v1/warehouse{query}").json()["warehouses"])
        for query in ("", "?warehouseStatus=inactive", "?warehouseStatus=active&warehouseStatus=inactive")
    }
    assert list(listed.values()) == [0, 1, 1]
    assert admin.get("/management/v1/warehouse?warehouseStatus=odd").status == 400
