"""Soft deletion: what is dropped is gone for the catalog, is listed, restored, or expires with its files."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from catalog.access import namespace_chain, tabular_chain
from catalog.models import Deletion, Namespace, Tabular, TabularDocument
from catalog.services.deletion.expire import expire_deletion
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.ledger.models import Grant
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId, role_principal
from lakewarden.events.models import OutboxEvent
from tenants.models import Warehouse
from tenants.services import projects
from tests.installation import Grant as Give
from tests.integration.catalog.lake import Lake, set_properties
from tests.servers.asgi_client import Answer, AsgiClient

HOUR = {"type": "soft", "expiration-seconds": 3600}
MISSING = "0197f1c2-0000-7000-8000-000000000000"


@pytest.fixture
def lake(engine: AsgiClient, admin: AsgiClient, warehouse: Warehouse) -> Lake:
    """A warehouse that keeps what is dropped for an hour, with the table `sales.orders` and the view `sales.recent`."""
    found = Lake(engine, str(warehouse.id))
    assert admin.post(route(found, "delete-profile"), {"delete-profile": HOUR}).status == 200
    assert found.create_namespace("sales").status == 200
    assert found.create_table("orders").status == 200
    assert found.create_view("recent").status == 200
    return found


def route(lake: Lake, rest: str) -> str:
    return f"/management/v1/warehouse/{lake.warehouse_id}/{rest}"


def listed(lake: Lake, query: str = "", *, caller: AsgiClient | None = None) -> list[dict[str, Any]]:
    answer = (caller or lake.client).get(route(lake, f"deleted-tabulars{query}"))
    assert answer.status == 200, answer.body
    return list(answer.json()["tabulars"])


def drop(lake: Lake, name: str = "orders", **query: str) -> str:
    """Drop a table; returns its id."""
    identifier = str(Tabular.objects.get(name=name).uuid)
    assert lake.client.delete(lake.table(name, **query)).status == 204
    return identifier


def undrop(lake: Lake, *identifiers: str, kind: str = "table", caller: AsgiClient | None = None) -> Answer:
    targets = [{"type": kind, "id": identifier} for identifier in identifiers]
    return (caller or lake.client).post(route(lake, "deleted-tabulars/undrop"), {"targets": targets})


def pass_time(seconds: int) -> None:
    """What is dropped was dropped so long ago, as the database sees it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "update deletion set deleted_at = deleted_at - make_interval(secs => %s), "
            "expires_at = expires_at - make_interval(secs => %s)",
            [seconds, seconds],
        )


def expire() -> int:
    """Run the tasks of all deletions, as a worker does."""
    return sum(expire_deletion(**job.args) for job in ProcrastinateJob.objects.filter(task_name="expire_deletion"))


def tasks(lake: Lake, admin: AsgiClient, queue: str = "soft_deletion") -> list[dict[str, Any]]:
    return list(admin.post(route(lake, "task/list"), {"queue-name": [queue]}).json()["tasks"])


def test_a_dropped_table_is_gone_for_the_catalog(lake: Lake) -> None:
    file = lake.load("orders")["metadata-location"]
    drop(lake)
    for answer in (
        lake.client.get(lake.table("orders")),
        lake.client.get(lake.table("orders", snapshots="refs")),
        lake.client.get(lake.table("orders", "credentials")),
        lake.commit("orders", set_properties(a="b")),
        lake.client.delete(lake.table("orders")),
        lake.client.post(lake.table("orders", "unregister")),
    ):
        assert answer.error() == (404, "NoSuchTableException")
    assert lake.client.head(lake.table("orders")).status == 404
    assert lake.client.get(lake.namespace("sales", "tables")).json()["identifiers"] == []
    found = lake.client.post(route(lake, "search-tabular"), {"search": "orders"}).json()["tabulars"]
    assert [each["tabular-name"] for each in found] == []
    assert Path(file.removeprefix("file://")).exists()


def test_a_hot_read_does_not_see_a_dropped_table(lake: Lake) -> None:
    for _ in range(3):
        lake.load("orders")
    drop(lake)
    assert lake.client.get(lake.table("orders")).error() == (404, "NoSuchTableException")
    undrop(lake, listed(lake)[0]["id"])
    assert lake.load("orders")


def test_the_list_tells_what_was_dropped_when_by_whom_and_how_long_it_stays(lake: Lake) -> None:
    identifier = drop(lake)
    (told,) = listed(lake)
    at = {name: datetime.fromisoformat(told.pop(name)) for name in ("created-at", "deleted-at", "expiration-date")}
    assert at["created-at"] < at["deleted-at"] == at["expiration-date"] - timedelta(hours=1)
    assert 3590 < told.pop("time-left-seconds") <= 3600
    assert told == {
        "id": identifier,
        "name": "orders",
        "namespace": ["sales"],
        "typ": "table",
        "warehouse-id": lake.warehouse_id,
        "deleted-by": "oidc~engine",
    }


def test_undrop_brings_the_same_table_back(lake: Lake, admin: AsgiClient, grant: Give) -> None:
    before, key = lake.load("orders"), Tabular.objects.get(name="orders").id
    identifier = drop(lake)
    assert undrop(lake, identifier).status == 204
    assert lake.load("orders") == before
    assert lake.commit("orders", set_properties(a="b")).status == 200
    assert listed(lake) == []
    assert not Deletion.objects.exists()
    assert not ProcrastinateJob.objects.exists()
    assert [each["status"] for each in tasks(lake, admin)] == ["CANCELLED"]
    assert Grant.objects.filter(object_id=str(key), principal_id="oidc~engine").exists()


def test_a_view_is_dropped_and_restored_in_the_same_way(lake: Lake) -> None:
    before = lake.client.get(lake.view("recent")).json()
    assert lake.client.delete(lake.view("recent")).status == 204
    assert lake.client.get(lake.view("recent")).error() == (404, "NoSuchViewException")
    (told,) = listed(lake)
    assert (told["typ"], told["name"]) == ("view", "recent")
    assert undrop(lake, told["id"], kind="table").error() == (404, "NoSuchTableException")
    assert undrop(lake, told["id"], kind="view").status == 204
    assert lake.client.get(lake.view("recent")).json() == before


def test_drop_and_undrop_are_recorded_with_the_change(lake: Lake) -> None:
    identifier = drop(lake, purgeRequested="false")
    (deletion,) = Deletion.objects.all()
    undrop(lake, identifier)
    dropped, restored = AuditEntry.objects.filter(object_id=identifier, outcome="done").order_by("at")[1:]
    assert (dropped.action, restored.action) == ("dropTable", "undropTabulars")
    assert (dropped.details["purge"], dropped.details["soft"]) == (False, True)
    assert dropped.details["expires-at"] == deletion.expires_at.isoformat()
    assert dropped.details["deletion-id"] == restored.details["deletion-id"] == str(deletion.id)
    events = OutboxEvent.objects.filter(object_id=identifier).order_by("sequence").values_list("type", flat=True)
    assert list(events) == ["createTable", "dropTable", "undropTabulars"]


def test_the_name_is_free_and_the_location_taken(lake: Lake) -> None:
    told = lake.load("orders")
    drop(lake)
    assert lake.create_table("other", location=told["metadata"]["location"]).status in {400, 409}
    body = {"name": "other", "metadata-location": told["metadata-location"]}
    assert lake.client.post(lake.namespace("sales", "register"), body).error() == (409, "AlreadyExistsException")
    assert lake.create_table("orders").status == 200


def test_undrop_onto_a_taken_name_is_refused(lake: Lake) -> None:
    identifier = drop(lake)
    assert lake.create_view("Orders").status == 200
    answer = undrop(lake, identifier)
    assert answer.error() == (409, "AlreadyExistsException")
    assert "sales.orders" in answer.message()
    assert [each["id"] for each in listed(lake)] == [identifier]
    assert len(ProcrastinateJob.objects.all()) == 1


def test_undrop_restores_all_or_none(lake: Lake) -> None:
    first = drop(lake)
    lake.create_table("orders")
    second = drop(lake)
    assert undrop(lake, first, second).error() == (409, "AlreadyExistsException")
    assert undrop(lake, second, MISSING).error() == (404, "NoSuchTableException")
    assert {each["id"] for each in listed(lake)} == {first, second}
    assert undrop(lake, second).status == 204


def test_undrop_twice_finds_nothing_the_second_time(lake: Lake) -> None:
    identifier = drop(lake)
    assert undrop(lake, identifier).status == 204
    refused, never = undrop(lake, identifier), undrop(lake, MISSING)
    assert refused.error() == never.error() == (404, "NoSuchTableException")
    assert refused.message().replace(identifier, "?") == never.message().replace(MISSING, "?")


def test_a_target_that_is_named_twice_is_restored(lake: Lake) -> None:
    identifier = drop(lake)
    assert undrop(lake, identifier, identifier).status == 204


def test_undrop_twice_at_once_succeeds_once(lake: Lake) -> None:
    identifier = drop(lake)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: undrop(lake, identifier).status, range(4)))
    assert sorted(answers) == [204, 404, 404, 404]
    assert lake.load("orders")


def test_dropping_twice_at_once_succeeds_once(lake: Lake) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: lake.client.delete(lake.table("orders")).status, range(4)))
    assert sorted(answers) == [204, 404, 404, 404]
    assert Deletion.objects.count() == 1


def test_a_drop_while_commits_run_takes_them_along_or_refuses_them(lake: Lake) -> None:
    def change(number: int) -> int:
        if number == 3:
            return lake.client.delete(lake.table("orders")).status
        return lake.commit("orders", set_properties(**{f"k{number}": "v"})).status

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(change, range(6)))
    assert answers[3] == 204
    assert {*answers[:3], *answers[4:]} <= {200, 404}
    (told,) = listed(lake)
    assert undrop(lake, told["id"]).status == 204
    properties = lake.load("orders")["metadata"]["properties"]
    committed = {f"k{number}" for number, status in enumerate(answers) if status == 200}
    assert {name for name in properties if name.startswith("k")} == committed


def test_expiry_removes_rows_rights_and_files(lake: Lake, admin: AsgiClient) -> None:
    location, key = lake.load("orders")["metadata"]["location"], Tabular.objects.get(name="orders").id
    identifier = drop(lake)
    pass_time(3600)
    assert [each["time-left-seconds"] for each in listed(lake)] == [0]
    assert undrop(lake, identifier).error() == (409, "ConflictException")
    assert expire() == 1
    assert not Tabular.everything.filter(id=key).exists()
    assert not TabularDocument.objects.filter(tabular_id=key).exists()
    assert not Grant.objects.filter(object_id=str(key)).exists()
    assert not Deletion.objects.exists()
    assert [each["status"] for each in tasks(lake, admin)] == ["SUCCESS"]
    purge = ProcrastinateJob.objects.get(queue_name="tabular_purge")
    assert (purge.lock, purge.scheduled_at) == (location, None)
    told = AuditEntry.objects.get(action="expireTable", object_id=identifier)
    assert (told.actor, told.details["name"], told.details["purge"]) == ("system~lakewarden", "orders", True)
    assert OutboxEvent.objects.filter(type="expireTable", object_id=identifier).count() == 1
    assert undrop(lake, identifier).error() == (404, "NoSuchTableException")


def test_expiry_keeps_the_files_when_the_drop_said_so(lake: Lake) -> None:
    drop(lake, purgeRequested="false")
    pass_time(3600)
    assert expire() == 1
    assert not ProcrastinateJob.objects.filter(queue_name="tabular_purge").exists()


def test_an_expiry_that_runs_early_does_nothing_and_is_scheduled_again(lake: Lake, admin: AsgiClient) -> None:
    identifier = drop(lake)
    (task,) = tasks(lake, admin)
    early = {"action": {"action-type": "run-now"}, "task-ids": [task["task-id"]]}
    assert admin.post(route(lake, "task/control"), early).status == 204
    (job,) = ProcrastinateJob.objects.all()
    assert expire_deletion(**job.args) == 0
    assert [each["id"] for each in listed(lake)] == [identifier]
    (again,) = tasks(lake, admin)
    assert (again["status"], again["attempt"]) == ("SCHEDULED", 1)
    assert again["scheduled-for"] == task["scheduled-for"]
    pass_time(3600)
    assert expire_deletion(**job.args) == 1


def test_an_expiry_that_was_killed_is_run_again_to_the_same_end(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    drop(lake)
    pass_time(3600)
    (job,) = ProcrastinateJob.objects.all()

    def killed(*_: object, **__: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("catalog.services.deletion.expire.record_rows", killed)
        with pytest.raises(RuntimeError, match="killed"):
            expire_deletion(**job.args)
    assert Tabular.everything.filter(name="orders").exists()
    assert not ProcrastinateJob.objects.filter(queue_name="tabular_purge").exists()
    assert expire_deletion(**job.args) == 1
    assert ProcrastinateJob.objects.filter(queue_name="tabular_purge").count() == 1


def test_the_time_is_fixed_at_the_drop(lake: Lake, admin: AsgiClient) -> None:
    drop(lake)
    admin.post(route(lake, "delete-profile"), {"delete-profile": {"type": "soft", "expiration-seconds": 60}})
    lake.create_table("late")
    drop(lake, "late")
    late, orders = listed(lake)
    assert late["time-left-seconds"] <= 60
    assert orders["time-left-seconds"] > 3500
    admin.post(route(lake, "delete-profile"), {"delete-profile": {"type": "hard"}})
    assert undrop(lake, orders["id"]).status == 204
    assert drop(lake)
    assert [each["name"] for each in listed(lake)] == ["late"]


def test_a_protected_table_is_not_dropped_softly(lake: Lake, admin: AsgiClient) -> None:
    identifier = Tabular.objects.get(name="orders").uuid
    admin.post(route(lake, f"table/{identifier}/protection"), {"protected": True})
    assert lake.client.delete(lake.table("orders")).error() == (409, "ProtectedException")
    assert not Deletion.objects.exists()


def test_force_needs_its_own_right_and_drops_for_good(lake: Lake, admin: AsgiClient, grant: Give) -> None:
    grant("clerk", "modify")
    identifier = Tabular.objects.get(name="orders").uuid
    admin.post(route(lake, f"table/{identifier}/protection"), {"protected": True})
    clerk = lake.client.as_user("clerk")
    refused = clerk.delete(lake.table("orders", force="true"))
    assert refused.error() == (403, "ForbiddenException")
    assert "force_drop on this table needs the privilege manage_grants or ownership and modify" in refused.message()
    assert admin.delete(lake.table("orders", force="true")).status == 204
    assert listed(lake) == []
    assert not Tabular.everything.filter(uuid=identifier).exists()
    assert AuditEntry.objects.get(action="dropTable").details["force"] is True


def test_pages_of_the_list_end(lake: Lake) -> None:
    for name in ("a", "b", "c"):
        lake.create_table(name)
        drop(lake, name)
    told = lake.client.get(route(lake, "deleted-tabulars?pageSize=2")).json()
    assert [each["name"] for each in told["tabulars"]] == ["c", "b"]
    rest = lake.client.get(route(lake, f"deleted-tabulars?pageSize=2&pageToken={told['next-page-token']}")).json()
    assert [each["name"] for each in rest["tabulars"]] == ["a"]
    assert "next-page-token" not in rest


def test_the_list_of_a_namespace(lake: Lake) -> None:
    drop(lake)
    lake.create_namespace("other")
    sales = listed(lake)[0]
    namespace = Tabular.everything.get(uuid=sales["id"]).namespace_id
    assert len(listed(lake, f"?namespaceId={namespace}")) == 1
    assert listed(lake, f"?namespaceId={MISSING}") == []
    answer = lake.client.get(route(lake, "deleted-tabulars?namespaceId=sales"))
    assert answer.error() == (400, "BadRequestException")


def give_on(kind: str, identifier: str, name: str, privilege: Privilege) -> None:
    tabular = Tabular.everything.select_related("namespace__warehouse__project").get(uuid=identifier)
    chain = tabular_chain(tabular) if kind == "table" else namespace_chain(tabular.namespace)
    ledger.give(chain, [(PrincipalId(f"oidc~{name}"), privilege)], granted_by=PrincipalId("oidc~admin"))
    projects.bump_epoch(tabular.namespace.warehouse.project_id)


@pytest.mark.parametrize("kind", ["table", "namespace"])
def test_who_has_a_right_on_some_objects_sees_those(lake: Lake, kind: str) -> None:
    identifier = drop(lake)
    lake.create_namespace("hidden")
    lake.create_table("secret", within="hidden")
    lake.client.delete(lake.table("secret", within="hidden"))
    give_on(kind, identifier, "reader", Privilege.DESCRIBE)
    reader = lake.client.as_user("reader")
    assert [each["name"] for each in listed(lake, caller=reader)] == ["orders"]
    assert undrop(lake, identifier, caller=reader).error() == (403, "ForbiddenException")
    secret = str(Tabular.everything.get(name="secret").uuid)
    hidden, missing = undrop(lake, secret, caller=reader), undrop(lake, MISSING, caller=reader)
    assert hidden.error() == missing.error() == (404, "NoSuchTableException")
    assert hidden.message().replace(secret, "?") == missing.message().replace(MISSING, "?")


@pytest.mark.parametrize("way", ["own", "granted", "in a namespace", "through a role"])
def test_whoever_has_a_right_only_inside_a_warehouse_lists_what_they_may_see(
    lake: Lake, admin: AsgiClient, way: str
) -> None:
    lake.create_namespace("inner")
    namespace = Namespace.objects.get(path=["inner"])
    place = route(lake, f"namespace/{namespace.id}/grants")
    maker = lake.as_user("maker")
    assert maker.client.get("/management/v1/whoami").status == 200
    entry = {"privilege": "create", "principal": {"user": "oidc~maker"}}
    assert admin.post(place, {"writes": [entry]}).status == 204
    assert maker.create_table("mine", within="inner").status == 200
    assert lake.create_table("other", within="inner").status == 200
    assert maker.client.delete(maker.table("mine", within="inner")).status == 204
    assert lake.client.delete(lake.table("other", within="inner")).status == 204
    reader, seen = maker.client, ["other", "mine"]  # who may create in a namespace sees what lies in it
    if way != "own":
        reader, seen = lake.client.as_user("reader"), ["other"]
        assert reader.get("/management/v1/whoami").status == 200
        principal = {"user": "oidc~reader"}
        if way == "through a role":
            role = admin.post("/management/v1/role", {"name": "readers"}).json()["id"]
            body = {"members": [{"user": "oidc~reader"}]}
            assert admin.post(f"/management/v1/role/{role}/members", body).status in {200, 204}
            principal = {"role": role}
        target = Tabular.everything.select_related("namespace__warehouse__project").get(name="other")
        who = PrincipalId(principal["user"]) if "user" in principal else role_principal(principal["role"])
        chain = tabular_chain(target)
        if way == "in a namespace":
            chain, seen = namespace_chain(target.namespace), ["other", "mine"]
        ledger.give(chain, [(who, Privilege.SELECT)], granted_by=PrincipalId("oidc~admin"))
        projects.bump_epoch(target.namespace.warehouse.project_id)
    assert [each["name"] for each in listed(lake, caller=reader)] == seen


def test_a_stranger_is_told_that_there_is_no_warehouse(lake: Lake, stranger: AsgiClient) -> None:
    identifier = drop(lake)
    assert stranger.get(route(lake, "deleted-tabulars")).error() == (404, "NoSuchWarehouseException")
    assert undrop(lake, identifier, caller=stranger).error() == (404, "NoSuchWarehouseException")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"targets": []},
        {"targets": [{"type": "table"}]},
        {"targets": [{"type": "warehouse", "id": MISSING}]},
        {"targets": [{"type": "table", "id": "orders"}]},
        {"targets": [{"type": "table", "id": "\ud800"}]},
        {"targets": [{"type": "table", "id": MISSING}] * 101},
        {"targets": "all"},
    ],
)
def test_a_bad_undrop_is_refused(lake: Lake, body: dict[str, Any]) -> None:
    assert lake.client.post(route(lake, "deleted-tabulars/undrop"), body).error() == (400, "BadRequestException")


@pytest.mark.parametrize(
    "profile",
    [
        {"type": "soft"},
        {"type": "soft", "expiration-seconds": 0},
        {"type": "soft", "expiration-seconds": 10**12},
        {"type": "soft", "expiration-seconds": "60"},
        {"type": "soft", "expiration-seconds": True},
        {"type": "hard", "expiration-seconds": 60},
        {"type": "maybe"},
        {},
    ],
)
def test_a_bad_delete_profile_is_refused(lake: Lake, admin: AsgiClient, profile: dict[str, Any]) -> None:
    answer = admin.post(route(lake, "delete-profile"), {"delete-profile": profile})
    assert answer.error() == (400, "BadRequestException")
    assert admin.get(f"/management/v1/warehouse/{lake.warehouse_id}").json()["delete-profile"] == HOUR


def test_a_warehouse_with_something_to_restore_is_not_deleted(lake: Lake, admin: AsgiClient) -> None:
    assert (
        lake.client.delete(
            lake.view(
                "recent",
            )
        ).status
        == 204
    )
    drop(lake)
    answer = admin.delete(f"/management/v1/warehouse/{lake.warehouse_id}")
    assert answer.error() == (409, "WarehouseNotEmptyException")
