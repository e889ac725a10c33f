"""Where a warehouse lies: changed while it is empty, tried out at any time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from lakewarden.audit.models import AuditEntry
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer, AsgiClient

Call = Callable[..., Answer]
DRY = ("storage/validate-profile", "storage/validate-credential", "storage/validate-access")


def at(directory: Path | str) -> dict[str, Any]:
    return {"storage-profile": {"type": "local", "base-path": str(directory)}}


@pytest.fixture
def change(admin: AsgiClient, warehouse: Warehouse) -> Call:
    def call(what: str, body: Any = None, *, by: AsgiClient = admin) -> Answer:
        return by.post(f"/management/v1/warehouse/{warehouse.id}/{what}", body)

    return call


@pytest.fixture
def lake(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    found = Lake(engine, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


def failed(answer: Answer) -> dict[str, str]:
    """Reasons of the checks that failed, by name."""
    assert answer.status == 200, answer.body
    checks = answer.json()["checks"]
    assert len(checks) == 13
    return {check["name"]: check["reason"] for check in checks if check["status"] == "failed"}


def test_an_empty_warehouse_moves_and_its_old_place_is_free(
    admin: AsgiClient, change: Call, warehouse: Warehouse, tmp_path: Path
) -> None:
    answer = change("storage", at(tmp_path / "other"))
    assert answer.status == 200
    assert answer.json()["storage-profile"]["base-path"] == str(tmp_path / "other")
    assert Warehouse.objects.get().location == f"file://{tmp_path}/other"
    told = AuditEntry.objects.get(action="updateWarehouseStorage").details
    assert (told["before"], told["location"]) == (warehouse.location, f"file://{tmp_path}/other")
    body = {"warehouse-name": "second", **at(tmp_path / "lake")}
    assert admin.post("/management/v1/warehouse", body).status == 201
    lake = Lake(admin, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    assert lake.create_table("orders").json()["metadata"]["location"].startswith(f"file://{tmp_path}/other/")


def test_the_same_place_is_no_change(change: Call, lake: Lake, tmp_path: Path) -> None:
    assert change("storage", at(f"{tmp_path}//lake/")).status == 200
    assert not AuditEntry.objects.filter(action="updateWarehouseStorage").exists()


def test_a_warehouse_with_namespaces_stays_where_it_is(change: Call, lake: Lake, tmp_path: Path) -> None:
    answer = change("storage", at(tmp_path / "other"))
    assert answer.error() == (400, "BadRequestException")
    assert "once the warehouse has namespaces" in answer.message()
    assert set(failed(change("storage/validate-profile", at(tmp_path / "other")))) == {"profile-compatible"}
    assert not (tmp_path / "other").exists()


def test_a_warehouse_whose_files_are_still_being_removed_stays(change: Call, lake: Lake, tmp_path: Path) -> None:
    lake.create_table("orders")
    lake.client.delete(lake.table("orders", purgeRequested="true"))
    lake.client.delete(lake.namespace("sales"))
    assert change("storage", at(tmp_path / "other")).error() == (409, "WarehouseHasUnfinishedTasksException")
    with connection.cursor() as cursor:
        cursor.execute("update procrastinate_jobs set status = 'succeeded'")
    assert change("storage", at(tmp_path / "other")).status == 200


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"storage-profile": {"type": "hdfs", "bucket": "b"}}, "this server knows 'adls', 'gcs', 'local'"),
        (at("relative"), "not an absolute path"),
        (at("/etc/lake"), "storage.local_roots"),
        ({**at("/x"), "storage-credential": {"type": "s3"}}, "has none"),
        ({}, "storage-profile"),
        ({"storage-profile": []}, "storage-profile"),
        ({**at("/x"), "flavor": "minio"}, "unknown member 'flavor'"),
    ],
)
def test_bad_storage_is_refused(change: Call, body: Any, reason: str) -> None:
    answer = change("storage", body)
    assert answer.status == 400
    assert reason in answer.message()


def test_another_warehouses_place_is_refused_and_not_touched(admin: AsgiClient, change: Call, tmp_path: Path) -> None:
    admin.post("/management/v1/warehouse", {"warehouse-name": "second", **at(tmp_path / "second")})
    assert change("storage", at(tmp_path / "second" / "inner")).error() == (409, "AlreadyExistsException")
    assert set(failed(change("storage/validate-profile", at(tmp_path / "second")))) == {"location-exclusive"}
    assert not (tmp_path / "second" / "inner").exists()


def test_local_storage_has_no_credential_to_change(change: Call) -> None:
    for body in ({"new-storage-credential": {"type": "s3"}}, {"new-storage-credential": None}, {}):
        answer = change("storage-credential", body)
        assert answer.status == 400
        assert "has no credential" in answer.message()
    assert set(failed(change("storage/validate-credential", {"new-storage-credential": {"type": "s3"}}))) == {
        "profile-well-formed"
    }


def test_dry_runs_change_nothing(change: Call, warehouse: Warehouse, lake: Lake, tmp_path: Path) -> None:
    audited = AuditEntry.objects.count()
    assert failed(change("storage/validate-access")) == {}
    assert failed(change("storage/validate-credential", {})) == {}
    assert failed(change("storage/validate-profile", at(tmp_path / "lake"))) == {}
    assert AuditEntry.objects.count() == audited
    assert Warehouse.objects.get().location == warehouse.location
    assert list((tmp_path / "lake").rglob(".lakewarden-probe*")) == []


def test_storage_that_is_gone_fails_the_dry_run(change: Call, lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "lake").rmdir()
    (tmp_path / "lake").write_text("a file where the directory was")
    assert set(failed(change("storage/validate-access"))) == {"lakekeeper-read-write"}


@pytest.mark.parametrize("what", ["storage", "storage-credential", *DRY])
def test_storage_needs_the_right(change: Call, client: AsgiClient, grant: Grant, what: str, tmp_path: Path) -> None:
    stranger = client.as_user("stranger")
    grant("alice", "write")
    bodies = {"storage": at(tmp_path / "o"), "storage/validate-profile": at(tmp_path / "o")}
    body = bodies.get(what, {})
    assert change(what, body, by=client.as_user("alice")).error() == (403, "ForbiddenException")
    assert change(what, body, by=stranger).error() == (404, "NoSuchWarehouseException")
    assert not (tmp_path / "o").exists()
