"""Drops on the event loop allow no caller more than those through Django, and leave no right behind."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import uuid4

import pytest

from catalog.access import tabular_chain
from catalog.models import Namespace, Tabular, occupied_locations
from catalog.services.change_writer import namespace_drops, tabular_drops
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.ledger.models import Grant as GrantRow
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from lakewarden.events.models import OutboxEvent
from tenants.models import Project
from tenants.services import projects
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer

READER, BOTH = PrincipalId("oidc~reader"), 2


def epoch() -> int:
    return Project.objects.get().authz_epoch


def let_read(*names: str) -> None:
    for table in Tabular.objects.select_related("namespace__warehouse__project").filter(name__in=names):
        ledger.give(tabular_chain(table), [(READER, Privilege.SELECT)], granted_by=PrincipalId("oidc~admin"))


def at_once(lake: Lake, paths: Sequence[str], **headers: str) -> list[Answer]:
    together = Barrier(len(paths))

    def drop(path: str) -> Answer:
        together.wait(10)
        return lake.client.call("DELETE", path, headers=headers)

    with ThreadPoolExecutor(len(paths)) as pool:
        return list(pool.map(drop, paths))


@pytest.fixture
def tables(lake: Lake) -> Lake:
    for number in range(4):
        assert lake.create_table(f"t{number}").status == 200
    return lake


def test_a_hidden_table_is_dropped_as_a_missing_one(tables: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`."""
    paths = [tables.table("t0"), tables.table("absent"), tables.view("t0"), tables.namespace("sales")]
    for query in ("", "?purgeRequested=true", "?force=true"):
        answers = [outsider.client.delete(path + query) for path in paths]
        assert {answer.status for answer in answers} == {404}
        assert answers[0].message().replace("t0", "absent") == answers[1].message()
    assert Tabular.objects.filter(name="t0").exists()


def test_who_may_only_read_drops_nothing(lake: Lake, reader: Lake) -> None:
    """Rights: select on `sales.orders`."""
    for query in ("", "?purgeRequested=true", "?force=true"):
        assert reader.client.delete(lake.table("orders") + query).error() == (403, "ForbiddenException")
    assert reader.client.delete(lake.namespace("sales")).error() == (403, "ForbiddenException")
    assert reader.client.post(lake.namespace("sales", "properties"), {"updates": {"a": "1"}}).status == 403
    assert Tabular.objects.filter(name="orders").exists()


def test_a_revoked_right_is_felt_by_the_very_next_drop(tables: Lake) -> None:
    """Rights: modify on the warehouse, revoked."""
    assert tables.client.delete(tables.table("t0")).status == 204
    GrantRow.objects.filter(principal_id="oidc~engine").delete()
    projects.bump_epoch(Project.objects.get().id)
    assert tables.client.delete(tables.table("t1")).error() == (404, "NoSuchTableException")
    assert Tabular.objects.filter(name="t1").exists()


def test_a_drop_changes_no_decision_but_that_on_what_it_drops(tables: Lake) -> None:
    before = epoch()
    assert tables.client.delete(tables.table("t0")).status == 204
    assert tables.create_namespace("sales", "inner").status == 200
    assert tables.client.delete(tables.namespace(("sales", "inner"))).status == 204
    assert epoch() == before


@pytest.mark.parametrize("names", [["t0"], ["t0", "t1"], ["t0", "t1", "t2", "t3"]])
def test_who_saw_a_namespace_by_its_tables_does_not_see_it_without_them(tables: Lake, names: list[str]) -> None:
    """Rights: select on tables that are dropped, together or one by one."""
    reader = tables.as_user("reader")
    let_read(*names)
    for name in names:
        assert reader.client.head(tables.namespace("sales")).status != 404
        assert tables.client.delete(tables.table(name)).status == 204
    assert reader.client.head(tables.namespace("sales")).status == 404
    assert not GrantRow.objects.filter(principal_id=READER).exists()


def test_two_drops_at_once_do_not_count_on_each_other(tables: Lake) -> None:
    """Rights: select on both tables, which are dropped in one statement."""
    reader = tables.as_user("reader")
    for _ in range(5):
        let_read("t0", "t1")
        assert reader.client.head(tables.namespace("sales")).status != 404
        assert {each.status for each in at_once(tables, [tables.table("t0"), tables.table("t1")])} == {204}
        assert reader.client.head(tables.namespace("sales")).status == 404
        for name in ("t0", "t1"):
            assert tables.create_table(name).status == 200


def test_one_of_many_who_drop_a_table_has_dropped_it(tables: Lake) -> None:
    for path in (tables.table("t0"), tables.namespace("empty")):
        assert tables.create_namespace("empty").status in {200, 409}
        OutboxEvent.objects.all().delete()
        statuses = sorted(each.status for each in at_once(tables, [path] * 8))
        assert statuses == [204] + [404] * 7
        assert [event.type for event in OutboxEvent.objects.all()] in (["dropTable"], ["dropNamespace"])


def test_a_key_is_that_of_its_caller(tables: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`; the key of somebody else's drop."""
    key = {"idempotency-key": str(uuid4())}
    path = tables.table("t0")
    assert tables.client.call("DELETE", path, headers=key).status == 204
    assert outsider.client.call("DELETE", path, headers=key).error() == (404, "NoSuchTableException")
    assert tables.client.call("DELETE", path, headers=key).status == 204
    assert tables.client.call("DELETE", tables.table("t1"), headers=key).status == 400
    assert tables.client.call("DELETE", path + "?purgeRequested=true", headers=key).status == 400
    assert Tabular.objects.filter(name="t1").exists()


def test_one_key_of_drops_at_once_is_used_once(tables: Lake) -> None:
    answers = at_once(tables, [tables.table("t0")] * 8, **{"idempotency-key": str(uuid4())})
    assert {answer.status for answer in answers} == {204}
    assert OutboxEvent.objects.filter(type="dropTable").count() == 1


def test_what_is_protected_at_the_same_time_is_dropped_or_protected(tables: Lake) -> None:
    """Protection is set directly, as by a request that ends between look-up and statement."""
    protected = {"by": "oidc~alice", "at": "2026-11-01T00:00:00+00:00", "reason": None}

    for _ in range(8):
        with ThreadPoolExecutor(BOTH) as pool:
            dropping = pool.submit(tables.client.delete, tables.table("t0"))
            was_there = Tabular.objects.filter(name="t0").update(protection=protected)
            status = dropping.result(10).status
        assert (status, Tabular.objects.filter(name="t0").exists()) in {(204, False), (409, True)}
        assert was_there or status == 204
        if status == 409:
            assert tables.client.delete(tables.table("t0") + "?force=true").status == 204
        assert tables.create_table("t0").status == 200


def test_a_table_that_comes_into_a_dropped_namespace_is_refused_or_keeps_it(lake: Lake) -> None:
    for number in range(8):
        name = f"empty{number}"
        assert lake.create_namespace(name).status == 200
        with ThreadPoolExecutor(BOTH) as pool:
            creating = pool.submit(lake.create_table, "t", within=name)
            dropping = pool.submit(lake.client.delete, lake.namespace(name))
        statuses = creating.result().status, dropping.result().status
        assert statuses in {(200, 409), (404, 204)}
        assert Namespace.objects.filter(path=[name]).exists() == (statuses[0] == 200)


def test_the_place_of_a_dropped_table_stays_reserved(tables: Lake) -> None:
    """Rights: modify; its new table is not put where the files of the dropped one are."""
    table = Tabular.objects.get(name="t0")
    assert tables.client.delete(tables.table("t0", purgeRequested="false")).status == 204
    found = occupied_locations.overlapping(
        table.warehouse_id, table.location, base=table.location.rpartition("/")[0], but=None
    )
    assert [(each.kind, each.owner) for each in found if each.kind == "released"] == [("released", table.id)]
    assert found[0].owners == ["oidc~engine"]


def test_ordinary_drops_are_not_left_to_django(tables: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[bool]] = []
    for module in (tabular_drops, namespace_drops):
        execute = module._execute

        async def noting(usable: object, drops: object, execute: object = execute) -> list[bool]:
            asked.append(await execute(usable, drops))  # type: ignore[operator]
            return asked[-1]

        monkeypatch.setattr(module, "_execute", noting)
    assert tables.create_namespace("empty").status == 200
    for path in (tables.table("t0"), tables.table("t1", purgeRequested="false"), tables.namespace("empty")):
        assert tables.client.delete(path).status == 204
    assert asked == [[True]] * 3
