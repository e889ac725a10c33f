from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lakewarden.audit.models import AuditEntry
from lakewarden.authz.actions import ProjectAction
from lakewarden.authz.ledger.models import Grant as GrantRow
from lakewarden.context import RequestContext
from lakewarden.events.models import OutboxEvent
from lakewarden.paging import Page
from tenants import access
from tenants.models import Warehouse
from tenants.services import warehouses
from tests.installation import Grant as Give
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer, AsgiClient

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
        "protected": False,
        "allowed-format-versions": [1, 2, 3],
        "managed-by": "self-managed",
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


def test_the_body_may_name_the_project_but_no_other_than_the_header(admin: AsgiClient, tmp_path: Path) -> None:
    for project in ("blue", "red"):
        admin.post("/management/v1/project", {"project-name": project, "project-id": project})
    by_body = admin.post("/management/v1/warehouse", body_for(tmp_path / "a", "a", **{"project-id": "blue"}))
    by_header = admin.post(
        "/management/v1/warehouse",
        body_for(tmp_path / "b", "b", **{"project-id": "blue"}),
        headers={"x-project-id": "red"},
    )
    assert (by_body.json()["project-id"], by_header.status) == ("blue", 400)
    listed = admin.get("/management/v1/warehouse?projectId=blue").json()["warehouses"]
    assert [warehouse["name"] for warehouse in listed] == ["a"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"delete-profile": {"type": "soft", "expiration-seconds": 0}}, "expiration-seconds is '0'"),
        ({"delete-profile": {"type": "never"}}, "is not known"),
        ({"delete-profile": {"type": "hard", "more": 1}}, "is not known"),
        ({"storage-credential": {"type": "s3", "credential-type": "access-key"}}, "has none"),
        ({"storage-profile": {"type": "hdfs", "bucket": "b"}}, "this server knows 'adls', 'gcs', 'local'"),
        ({"storage-profile": "local"}, "storage-profile"),
        ({"storage-profile": {"type": "local"}}, "base-path"),
        ({"storage-profile": {"type": "local", "base-path": "lake"}}, "not an absolute path"),
        ({"storage-profile": {"type": "local", "base-path": "/x/../y"}}, "'..'"),
        ({"storage-profile": {"type": "local", "base-path": "/etc/lake"}}, "storage.local_roots"),
        ({"storage-profile": {"type": ["hdfs"]}}, "this server knows 'adls', 'gcs', 'local'"),
        ({"storage-profile": {"type": "local", "base-path": "/x/%2e%2E/y"}}, "'..'"),
        ({"storage-profile": {"type": "local", "base-path": "/x/\u0000"}}, "control character"),
        ({"storage-profile": {"type": "local", "base-path": "/x/\n"}}, "control character"),
        ({"storage-profile": {"type": "local", "base-path": "/" + "x" * 256}}, "too long"),
        ({"storage-profile": {"type": "local", "base-path": "/x" * 500}}, "too long"),
        ({"storage-profile": {"type": "local", "base-path": 7}}, "base-path"),
        ({"allowed-format-versions": []}, "is empty"),
        ({"allowed-format-versions": [2, 4]}, "4 is not a known version"),
        ({"allowed-format-versions": [10**30]}, "is not a known version"),
        ({"allowed-format-versions": 2}, "allowed-format-versions"),
        ({"allowed-format-versions": ["two"]}, "allowed-format-versions"),
        ({"allowed-format-versions": [True]}, "allowed-format-versions"),
        ({"allowed-format-versions": [1, 2], "default-format-version": 3}, "not one of the allowed versions (1, 2)"),
        ({"default-format-version": 4}, "not one of the allowed versions"),
        ({"managed-by": "nobody"}, "is one of self-managed, instance-admin"),
        ({"warehouse-name": "a/b"}, "must not contain '/'"),
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


def report_of(answer: Answer) -> dict[str, str]:
    """The checks of a report by name, each with its status."""
    assert answer.status == 200, answer.body
    told = answer.json()
    assert told["valid"] is all(check["status"] != "failed" for check in told["checks"])
    for check in told["checks"]:
        assert ("reason" in check) is (check["status"] != "passed")
        assert ("error" in check) is (check["status"] == "failed")
        assert ("duration-ms" in check) is (check["status"] != "skipped")
    return {check["name"]: check["status"] for check in told["checks"]}


ORDER = [
    "profile-well-formed",
    "profile-compatible",
    "warehouse-name-valid",
    "location-exclusive",
    "spec-mutable",
    "format-version-policy-consistent",
    "managed-by-allowed",
    "storage-client-initialized",
    "lakekeeper-read-write",
    "vended-credentials-issued",
    "vended-credentials-read-write",
    "vended-credentials-scope-enforced",
    "cleanup",
]
VALIDATION = "/management/v1/warehouse-creation-validation"


def test_a_dry_run_tells_every_check_in_order_and_leaves_nothing(admin: AsgiClient, tmp_path: Path) -> None:
    report = report_of(admin.post(VALIDATION, body_for(tmp_path / "a" / "b")))
    assert list(report) == ORDER
    skipped = {name for name, status in report.items() if status == "skipped"}
    assert skipped == {
        "profile-compatible",
        "spec-mutable",
        "vended-credentials-issued",
        "vended-credentials-read-write",
        "vended-credentials-scope-enforced",
    }
    assert set(report.values()) == {"passed", "skipped"}
    assert list(tmp_path.iterdir()) == []
    assert not Warehouse.objects.exists()
    assert not AuditEntry.objects.filter(object_type="warehouse").exists()


@pytest.mark.parametrize(
    ("changes", "failed"),
    [
        ({"storage-profile": {"type": "s3"}}, {"profile-well-formed"}),
        ({"storage-profile": {"type": "local", "base-path": "/etc/lake"}}, {"profile-well-formed"}),
        ({"storage-credential": {"type": "s3"}}, {"profile-well-formed"}),
        ({"warehouse-name": "a/b", "allowed-format-versions": []}, {"warehouse-name-valid", ORDER[5]}),
        ({"managed-by": "nobody"}, {"managed-by-allowed"}),
        ({"warehouse-name": "LAKE"}, {"warehouse-name-valid"}),
    ],
)
def test_a_dry_run_tells_what_fails(
    admin: AsgiClient, warehouse: Warehouse, tmp_path: Path, changes: dict[str, Any], failed: set[str]
) -> None:
    report = report_of(admin.post(VALIDATION, {**body_for(tmp_path / "new", "new"), **changes}))
    assert list(report) == ORDER
    assert {name for name, status in report.items() if status == "failed"} == failed
    assert not (tmp_path / "new").exists()


def test_nothing_is_tried_where_another_warehouse_lies(admin: AsgiClient, warehouse: Warehouse, tmp_path: Path) -> None:
    report = report_of(admin.post(VALIDATION, body_for(tmp_path / "lake" / "inner", "inner")))
    assert report["location-exclusive"] == "failed"
    assert {report[name] for name in ORDER[7:]} == {"skipped"}
    assert not (tmp_path / "lake" / "inner").exists()


def test_storage_that_cannot_be_written_fails_the_dry_run(admin: AsgiClient, tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file where the directory should be")
    report = report_of(admin.post(VALIDATION, body_for(tmp_path / "lake")))
    assert {name for name, status in report.items() if status == "failed"} == {"lakekeeper-read-write"}
    assert (tmp_path / "lake").is_file()


def test_create_tells_the_first_failure_and_the_others(admin: AsgiClient, warehouse: Warehouse) -> None:
    answer = admin.post(
        "/management/v1/warehouse",
        {**body_for(Path("/etc/lake"), "LAKE"), "allowed-format-versions": []},
    )
    assert answer.error() == (400, "IllegalArgumentException")
    assert answer.message().startswith("base-path '/etc/lake' is not below")
    assert "; also warehouse-name-valid: A warehouse with the name 'LAKE' exists already" in answer.message()
    assert "; also format-version-policy-consistent: allowed-format-versions is empty" in answer.message()


@pytest.mark.parametrize("path", ["/management/v1/warehouse", VALIDATION])
def test_who_may_not_create_may_not_try_either(
    client: AsgiClient, stranger: AsgiClient, grant: Any, tmp_path: Path, path: str
) -> None:
    grant("alice", "describe")
    assert stranger.post(path, body_for(tmp_path / "new")).error() == (404, "NoSuchProjectException")
    assert client.as_user("alice").post(path, body_for(tmp_path / "new")).status in {403, 404}
    assert not (tmp_path / "new").exists()


def test_a_link_to_another_warehouse_is_no_location(admin: AsgiClient, warehouse: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir(exist_ok=True)
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    answer = admin.post("/management/v1/warehouse", body_for(tmp_path / "link", "other"))
    assert answer.error() == (409, "AlreadyExistsException")
    doubled = admin.post("/management/v1/warehouse", body_for(Path("/") / f"/{tmp_path}/lake", "other"))
    assert doubled.status == 409


def test_of_two_that_want_a_location_at_once_one_gets_it(admin: AsgiClient, tmp_path: Path) -> None:
    def create(name: str) -> int:
        return admin.post("/management/v1/warehouse", body_for(tmp_path / "lake", name)).status

    with ThreadPoolExecutor(3) as threads:
        assert sorted(threads.map(create, "abc")) == [201, 409, 409]


def test_policies_are_kept_as_they_are_asked_for(admin: AsgiClient, tmp_path: Path) -> None:
    policy = {"allowed-format-versions": [3, 2, 2], "default-format-version": 3, "managed-by": "instance-admin"}
    created = admin.post("/management/v1/warehouse", {**body_for(tmp_path / "lake"), **policy})
    assert created.status == 201
    found = admin.get(f"/management/v1/warehouse/{created.json()['id']}").json()
    assert found["allowed-format-versions"] == [2, 3]
    assert (found["default-format-version"], found["managed-by"]) == (3, "instance-admin")


def test_managed_by_is_given_by_administrators_of_the_server_only(
    admin: AsgiClient, client: AsgiClient, tmp_path: Path
) -> None:
    GrantRow.objects.create(
        principal_id="oidc~carol",
        object_type="project",
        object_id=NIL,
        privilege="project_admin",
        project_id=NIL,
        granted_by="x",
    )
    carol = client.as_user("carol")
    body = body_for(tmp_path / "lake", **{"managed-by": "instance-admin"})
    assert carol.post("/management/v1/warehouse", body).error() == (403, "ForbiddenException")
    assert report_of(carol.post(VALIDATION, body))["managed-by-allowed"] == "failed"
    own = body_for(tmp_path / "lake", **{"managed-by": "self-managed"})
    assert carol.post("/management/v1/warehouse", own).status == 201


def test_the_list_is_paged_when_a_page_is_asked_for(admin: AsgiClient, tmp_path: Path) -> None:
    for name in ("b", "A", "c"):
        admin.post("/management/v1/warehouse", body_for(tmp_path / name, name))
    first = admin.get("/management/v1/warehouse?pageSize=2").json()
    assert [each["name"] for each in first["warehouses"]] == ["A", "b"]
    second = admin.get(f"/management/v1/warehouse?pageSize=2&pageToken={first['next-page-token']}").json()
    assert [each["name"] for each in second["warehouses"]] == ["c"]
    assert "next-page-token" not in second
    assert len(admin.get("/management/v1/warehouse").json()["warehouses"]) == 3
    for query in ("pageSize=0", "pageToken=%21", "pageSize=x"):
        assert admin.get(f"/management/v1/warehouse?{query}").error() == (400, "BadRequestException")


def test_the_list_holds_what_the_caller_may_see(
    admin: AsgiClient, client: AsgiClient, warehouse: Warehouse, grant: Any, tmp_path: Path
) -> None:
    admin.post("/management/v1/warehouse", body_for(tmp_path / "other", "other"))
    grant("alice", "select")
    answer = client.as_user("alice").get("/management/v1/warehouse")
    if answer.status == 200:  # who sees one warehouse may see its project
        assert [each["name"] for each in answer.json()["warehouses"]] == ["lake"]
    else:
        assert answer.error() == (404, "NoSuchProjectException")


Delete = Callable[..., Answer]


@pytest.fixture
def delete(admin: AsgiClient, warehouse: Warehouse) -> Delete:
    def call(query: str = "", *, by: AsgiClient = admin) -> Answer:
        return by.delete(f"/management/v1/warehouse/{warehouse.id}{query}")

    return call


def test_delete_removes_warehouse_grants_and_numbers_but_no_files(
    admin: AsgiClient, delete: Delete, warehouse: Warehouse, tmp_path: Path
) -> None:
    (tmp_path / "lake" / "kept").write_text("a file of somebody's")
    admin.get(f"/management/v1/warehouse/{warehouse.id}/statistics")
    assert delete("?force=false").status == 204
    assert delete().error() == (404, "NoSuchWarehouseException")
    assert not GrantRow.objects.filter(object_id=str(warehouse.id)).exists()
    assert (tmp_path / "lake" / "kept").exists()
    assert AuditEntry.objects.get(action="deleteWarehouse").object_id == str(warehouse.id)
    assert OutboxEvent.objects.filter(type="deleteWarehouse", project_id=NIL).count() == 1
    again = admin.post("/management/v1/warehouse", body_for(tmp_path / "lake"))
    assert again.status == 201


def test_delete_with_force_needs_its_own_right_and_goes_past_a_protection(
    admin: AsgiClient, client: AsgiClient, delete: Delete, warehouse: Warehouse, grant: Give
) -> None:
    admin.post(f"/management/v1/warehouse/{warehouse.id}/protection", {"protected": True})
    assert delete().error() == (409, "ProtectedException")
    assert delete("?force=perhaps").status == 400
    grant("clerk", "modify")
    assert delete("?force=true", by=client.as_user("clerk")).error() == (403, "ForbiddenException")
    assert Warehouse.objects.exists()
    assert delete("?force=true").status == 204
    assert AuditEntry.objects.get(action="deleteWarehouse").details["force"] is True


@pytest.fixture
def lake(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    found = Lake(engine, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


def test_delete_of_a_warehouse_with_namespaces_is_refused(delete: Delete, lake: Lake) -> None:
    assert delete().error() == (409, "WarehouseNotEmptyException")
    lake.client.delete(lake.namespace("sales"))
    assert delete().status == 204


@pytest.mark.parametrize("state", ["todo", "failed"])
def test_delete_waits_for_purges(delete: Delete, lake: Lake, state: str) -> None:
    lake.create_table("orders")
    assert lake.client.delete(lake.table("orders", purgeRequested="true")).status == 204
    lake.client.delete(lake.namespace("sales"))
    set_jobs(state)
    answer = delete()
    assert answer.error() == (409, "WarehouseHasUnfinishedTasksException")
    assert "1 dropped tables or views" in answer.message()
    set_jobs("cancelled")
    assert delete().status == 204


def set_jobs(state: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("update procrastinate_jobs set status = %s where queue_name = 'tabular_purge'", [state])


def test_delete_needs_the_right(
    delete: Delete, client: AsgiClient, stranger: AsgiClient, grant: Any, warehouse: Warehouse
) -> None:
    grant("alice", "describe")
    assert delete(by=client.as_user("alice")).error() == (403, "ForbiddenException")
    assert delete(by=stranger).error() == (404, "NoSuchWarehouseException")
    grant("alice", "modify")
    assert delete(by=client.as_user("alice")).status == 204


def test_a_warehouse_that_is_deleted_while_namespaces_are_made_is_either_empty_or_there(
    admin: AsgiClient, lake: Lake, delete: Delete, warehouse: Warehouse
) -> None:
    lake.client.delete(lake.namespace("sales"))
    with ThreadPoolExecutor(4) as threads:
        made = [threads.submit(lake.create_namespace, name) for name in "abc"]
        status = threads.submit(delete).result().status
    statuses = {each.result().status for each in made}
    assert statuses <= {200, 404}
    assert status == (204 if not Warehouse.objects.exists() else 409)


@pytest.mark.parametrize("name", ["lake", quote("ü/lake", safe="")])
def test_delete_by_anything_but_an_id_is_missing(admin: AsgiClient, warehouse: Warehouse, name: str) -> None:
    assert admin.delete(f"/management/v1/warehouse/{name}").error() == (404, "NoSuchWarehouseException")


def test_a_page_of_warehouses_costs_no_more_than_it_shows(admin_context: RequestContext, warehouse: Warehouse) -> None:
    granted = access.project(admin_context, warehouse.project_id, ProjectAction.LIST_WAREHOUSES)
    with CaptureQueriesContext(connection) as asked:
        found, _ = warehouses.visible(granted, Page(None, 5), statuses={"active"})
    assert [each.id for each in found] == [warehouse.id]
    assert [query["sql"].rpartition(" ")[2] for query in asked] == ["6"]
