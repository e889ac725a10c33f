"""Recursive drops of namespaces: restorable as a whole, permanent, by a task if there is much below, and refused."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from catalog.models import Deletion, Namespace, Tabular
from catalog.services.deletion import expire
from lakewarden import config
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger.models import Grant
from lakewarden.tasks.attempts import Attempt
from tenants.models import Warehouse
from tests.installation import Grant as Give
from tests.integration.catalog.deleted_namespaces import (
    SetProfile,
    cancel,
    deleted,
    drop,
    namespace,
    pass_time,
    route,
    run_job,
    tasks,
    undrop,
)
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import Recorded
from tests.servers.asgi_client import AsgiClient

TREE = {("sales",): "orders", ("sales", "eu"): "orders", ("sales", "eu", "de"): "stock"}


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    """`sales` with two namespaces below each other, a table in each and a view in the middle."""
    found = Lake(admin, str(warehouse.id))
    for path, table in TREE.items():
        assert found.create_namespace(*path).status == 200
        assert found.create_table(table, within=path).status == 200
    assert found.create_view("report", within=("sales", "eu")).status == 200
    return found


@pytest.fixture
def tracked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three objects are too many for a request."""
    few = config.current().model_copy(update={"deletion": config.DeletionConfig(tracked_from=3)})
    with monkeypatch.context() as patch:
        patch.setattr(config, "current", lambda: few)
        yield


def test_a_whole_tree_goes_aside_and_comes_back_as_one(lake: Lake, set_profile: SetProfile, recorded: Recorded) -> None:
    set_profile(3600)
    before = {path: lake.load(table, within=path) for path, table in TREE.items()}
    assert drop(lake).status == 204
    for path, table in TREE.items():
        assert lake.client.get(lake.namespace(path)).error() == (404, "NoSuchNamespaceException")
        assert lake.client.get(lake.table(table, within=path)).error() == (404, "NoSuchTableException")
    assert lake.client.get(lake.path("namespaces")).json()["namespaces"] == []
    assert lake.client.get(lake.namespace("sales", "tables")).error() == (404, "NoSuchNamespaceException")
    assert Deletion.objects.count() == ProcrastinateJob.objects.count() == 1
    assert {(each["name"], each["dropped-with-namespace"]) for each in deleted(lake, "tabulars")} == {
        (name, str(namespace("sales").id)) for name in ("orders", "stock", "report")
    }
    (root,) = deleted(lake, "namespaces")
    assert (root["id"], root["name"], root["namespace"]) == (str(namespace("sales").id), "sales", [])

    assert undrop(lake, namespace("sales")).status == 204
    assert {path: lake.load(table, within=path) for path, table in TREE.items()} == before
    assert lake.commit("orders", set_properties(a="b"), within="sales").status == 200
    assert not Deletion.objects.exists()
    assert not ProcrastinateJob.objects.exists()
    told = recorded()
    assert told.count("dropNamespace") == 3
    assert told.count("dropTable") == 3
    assert told.count("undropTabulars") == 7


def test_what_lies_in_a_dropped_namespace_comes_back_only_with_it(lake: Lake, set_profile: SetProfile) -> None:
    set_profile(3600)
    drop(lake)
    refused = undrop(lake, Tabular.everything.get(name="stock"))
    assert refused.error() == (409, "ConflictException")
    assert str(namespace("sales").id) in refused.message()
    assert undrop(lake, namespace("sales", "eu")).error() == (409, "ConflictException")
    assert undrop(lake, Tabular.everything.get(name="stock"), namespace("sales")).status == 204
    assert undrop(lake, namespace("sales")).error() == (404, "NoSuchNamespaceException")


def test_a_table_whose_namespace_was_dropped_later_comes_back_after_it(lake: Lake, set_profile: SetProfile) -> None:
    set_profile(3600)
    lake.client.delete(lake.table("stock", within=("sales", "eu", "de")))
    table = Tabular.everything.get(name="stock")
    drop(lake)
    refused = undrop(lake, table)
    assert refused.error() == (409, "ConflictException")
    assert f"namespace {namespace('sales').id}" in refused.message()
    assert undrop(lake, namespace("sales")).status == 204
    assert lake.client.head(lake.table("stock", within=("sales", "eu", "de"))).status == 404
    assert undrop(lake, table).status == 204


def test_a_tree_stays_as_long_as_what_was_dropped_in_it_before(lake: Lake, set_profile: SetProfile) -> None:
    set_profile(7200)
    lake.client.delete(lake.table("stock", within=("sales", "eu", "de")))
    set_profile(60)
    drop(lake)
    first, second = Deletion.objects.order_by("deleted_at")
    assert first.expires_at == second.expires_at


def test_undrop_of_a_tree_onto_a_taken_name(lake: Lake, set_profile: SetProfile) -> None:
    set_profile(3600)
    drop(lake)
    dropped = namespace("sales")
    assert lake.create_namespace("Sales").status == 200
    refused = undrop(lake, dropped)
    assert refused.error() == (409, "AlreadyExistsException")
    assert "sales" in refused.message()
    assert Namespace.objects.count() == 1


def test_a_dropped_namespace_follows_the_move_of_what_it_lies_in(lake: Lake, set_profile: SetProfile) -> None:
    set_profile(3600)
    drop(lake, ("sales", "eu"))
    body = {"destination": ["archive"]}
    assert lake.client.post(route(lake, f"namespace/{namespace('sales').id}/move"), body).status == 200
    assert undrop(lake, namespace("archive", "eu")).status == 204
    assert lake.load("stock", within=("archive", "eu", "de"))


def test_an_expired_tree_is_removed_with_everything_in_it(lake: Lake, set_profile: SetProfile) -> None:
    set_profile(3600)
    lake.client.delete(lake.table("stock", within=("sales", "eu", "de")))
    drop(lake)
    pass_time(3600)
    tree = Deletion.objects.get(object_type="namespace")
    job = ProcrastinateJob.objects.get(task_name="expire_deletion", lock=f"deletion:{tree.id}")
    assert expire.expire_deletion(**job.args) == 7
    assert not Namespace.everything.exists()
    assert not Tabular.everything.exists()
    assert not Grant.objects.filter(object_type__in=["namespace", "table", "view"]).exists()
    assert not Deletion.objects.exists()
    assert ProcrastinateJob.objects.filter(queue_name="tabular_purge").count() == 4
    expired = AuditEntry.objects.filter(action__startswith="expire").values_list("action", flat=True)
    assert sorted(expired) == ["expireNamespace"] * 3 + ["expireTable"] * 3 + ["expireView"]
    (late,) = ProcrastinateJob.objects.filter(task_name="expire_deletion").exclude(id=job.id)
    assert expire.expire_deletion(**late.args) == 0


@pytest.mark.parametrize("seconds", [None, 3600])
def test_what_is_not_empty_is_dropped_only_recursively(
    lake: Lake, set_profile: SetProfile, seconds: int | None
) -> None:
    set_profile(seconds)
    refused = drop(lake, recursive="false")
    assert refused.error() == (409, "NamespaceNotEmptyException")
    assert "(tables and views: 4, namespaces: 2)" in refused.message()
    assert drop(lake, recursive="false", force="true").error() == (409, "NamespaceNotEmptyException")
    assert Namespace.objects.count() == 3


def test_what_can_be_restored_stands_in_the_way_of_a_drop_for_good(lake: Lake, set_profile: SetProfile) -> None:
    set_profile(3600)
    lake.client.delete(lake.table("stock", within=("sales", "eu", "de")))
    set_profile(None)
    for recursive in ("true", "false"):
        refused = drop(lake, ("sales", "eu", "de"), recursive=recursive)
        assert refused.error() == (409, "NamespaceNotEmptyException")
        assert "dropped objects in it can be restored: table sales.eu.de.stock until" in refused.message()
    assert drop(lake, ("sales", "eu", "de"), force="true").status == 204
    assert not Deletion.objects.exists()
    assert not Tabular.everything.filter(name="stock").exists()
    assert AuditEntry.objects.filter(action="expireTable").count() == 1
    # the task of the table's own deletion finds nothing left
    assert run_job() == 0


def test_a_plain_drop_is_stopped_by_what_can_be_restored(lake: Lake, set_profile: SetProfile) -> None:
    set_profile(3600)
    lake.client.delete(lake.table("stock", within=("sales", "eu", "de")))
    (dropped,) = deleted(lake, "tabulars")
    refused = drop(lake, ("sales", "eu", "de"), recursive="false")
    assert refused.error() == (409, "NamespaceNotEmptyException")
    until = datetime.fromisoformat(dropped["expiration-date"]).isoformat()
    assert f"table sales.eu.de.stock until {until}" in refused.message()
    assert "with recursive=true" in refused.message()
    assert "force" not in refused.message()
    # the ones above hold it as well, and a dropped namespace counts like a table
    assert drop(lake, ("sales", "eu", "de")).status == 204
    for name in ("orders", "report"):
        lake.client.delete(lake.path("namespaces", ("sales", "eu"), "views" if name == "report" else "tables", name))
    refused = drop(lake, ("sales", "eu"), recursive="false")
    assert refused.error() == (409, "NamespaceNotEmptyException")
    assert "namespace sales.eu.de until" in refused.message()
    assert drop(lake, ("sales", "eu")).status == 204
    assert [each["name"] for each in deleted(lake, "namespaces")] == ["eu", "de"]


def test_what_is_no_longer_restorable_does_not_stop_a_soft_drop(lake: Lake, set_profile: SetProfile) -> None:
    set_profile(3600)
    lake.client.delete(lake.table("stock", within=("sales", "eu", "de")))
    pass_time(3600)
    assert drop(lake, ("sales", "eu", "de"), recursive="false").status == 204


def test_of_many_that_can_be_restored_the_first_are_named(lake: Lake, set_profile: SetProfile) -> None:
    set_profile(3600)
    assert lake.create_namespace("many").status == 200
    for number in range(22):
        lake.create_table(f"t{number:02}", within="many")
        lake.client.delete(lake.table(f"t{number:02}", within="many"))
    refused = drop(lake, "many", recursive="false").message()
    assert "table many.t19 until" in refused
    assert "many.t20" not in refused
    assert "and 2 more" in refused


@pytest.mark.parametrize("seconds", [None, 3600])
def test_protected_children_are_named(lake: Lake, set_profile: SetProfile, seconds: int | None) -> None:
    set_profile(seconds)
    for number in range(22):
        lake.create_table(f"t{number:02}", within=("sales", "eu"))
    for each in Tabular.objects.filter(name__startswith="t"):
        lake.client.post(route(lake, f"table/{each.uuid}/protection"), {"protected": True})
    refused = drop(lake)
    assert refused.error() == (409, "ProtectedException")
    assert "table sales.eu.t00, table sales.eu.t01" in refused.message()
    assert "sales.eu.t19 and 2 more" in refused.message()
    assert Tabular.objects.count() == 26
    assert drop(lake, force="true").status == 204
    assert not Namespace.everything.exists()


def test_force_needs_its_own_right(lake: Lake, grant: Give) -> None:
    grant("clerk", "modify")
    clerk = lake.as_user("clerk")
    refused = drop(clerk, force="true")
    assert refused.error() == (403, "ForbiddenException")
    assert "force_drop_all on this namespace needs the privilege" in refused.message()
    assert drop(clerk).status == 204


@pytest.mark.parametrize("query", [{"recursive": "yes"}, {"force": "1"}, {"purge": "x"}])
def test_a_bad_parameter_is_refused(lake: Lake, query: dict[str, str]) -> None:
    assert drop(lake, **query).error() == (400, "BadRequestException")
    assert drop(lake, purge="true", purgeRequested="false").error() == (400, "BadRequestException")
    assert Namespace.objects.count() == 3


@pytest.mark.usefixtures("tracked")
def test_a_large_tree_leaves_the_catalog_at_once_and_is_removed_by_a_task(lake: Lake) -> None:
    assert drop(lake, purge="true").status == 204
    assert not Namespace.objects.exists()
    assert lake.client.get(lake.namespace("sales")).status == 404
    assert deleted(lake, "tabulars") == deleted(lake, "namespaces") == []
    assert undrop(lake, namespace("sales")).error() == (404, "NoSuchNamespaceException")
    assert lake.create_namespace("sales").status == 200
    assert run_job() == 7
    assert Namespace.everything.count() == 1
    assert not Tabular.everything.exists()
    assert ProcrastinateJob.objects.filter(queue_name="tabular_purge", scheduled_at=None).count() == 4
    (task,) = tasks(lake)
    assert (task["status"], task["progress"], task["entity-name"]) == ("SUCCESS", 1.0, ["sales"])
    assert AuditEntry.objects.filter(action="dropTable").count() == 3
    assert not AuditEntry.objects.filter(action__startswith="expire").exists()


@pytest.mark.usefixtures("tracked")
def test_a_large_drop_that_is_cancelled_before_it_begins_comes_back(lake: Lake) -> None:
    drop(lake)
    assert cancel(lake).status == 204
    assert lake.load("stock", within=("sales", "eu", "de"))
    assert not Deletion.objects.exists()
    assert [each["status"] for each in tasks(lake)] == ["CANCELLED"]


@pytest.mark.usefixtures("tracked")
def test_a_large_drop_that_has_begun_cannot_be_cancelled(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    drop(lake)
    monkeypatch.setattr(expire, "BATCH", 1)
    removed = iter(range(9))
    with connection.cursor() as cursor:
        cursor.execute("update procrastinate_jobs set status = 'doing'")

    def cancel_soon(run: Attempt, **progress: float) -> None:
        if next(removed) == 2:
            assert cancel(lake).error() == (409, "ConflictException")
        heartbeat(run, **progress)

    heartbeat = Attempt.heartbeat
    monkeypatch.setattr(Attempt, "heartbeat", cancel_soon)
    assert run_job() == 7
    assert not Namespace.everything.exists()
    assert [each["status"] for each in tasks(lake)] == ["SUCCESS"]


@pytest.mark.usefixtures("tracked")
def test_a_large_drop_whose_name_is_taken_cannot_be_cancelled(lake: Lake) -> None:
    drop(lake)
    lake.create_namespace("sales")
    assert cancel(lake).error() == (409, "AlreadyExistsException")
    assert [each["status"] for each in tasks(lake)] == ["SCHEDULED"]
    assert run_job() == 7


def test_the_task_of_a_soft_deletion_that_is_cancelled_restores_it(lake: Lake, set_profile: SetProfile) -> None:
    set_profile(3600)
    drop(lake)
    assert cancel(lake).status == 204
    assert lake.load("stock", within=("sales", "eu", "de"))


def test_a_table_made_while_its_namespace_is_dropped_is_in_it_or_refused(lake: Lake, set_profile: SetProfile) -> None:
    set_profile(3600)

    def work(number: int) -> int:
        if number == 4:
            return drop(lake).status
        return lake.create_table(f"late{number}", within=("sales", "eu")).status

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(work, range(8)))
    assert answers[4] == 204
    assert set(answers) <= {200, 204, 404}
    assert Tabular.everything.filter(name__startswith="late").count() == answers.count(200)
    assert not Tabular.objects.filter(name__startswith="late").exists()
