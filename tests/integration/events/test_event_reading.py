"""`GET /events`: by position, filtered, as far as the caller sees the objects, at a bounded cost."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lakewarden import config
from lakewarden.events import log
from lakewarden.events.models import LoggedEvent
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.events.events import all_moved, change
from tests.integration.events.reading import EVENTS, create, names
from tests.servers.asgi_client import AsgiClient


@pytest.fixture(autouse=True)
def no_events_are_left(database: None) -> None:
    LoggedEvent.objects.all().delete()


def test_events_are_read_in_pages_and_later_ones_follow(
    admin: AsgiClient, engine: AsgiClient, warehouse: Warehouse
) -> None:
    create(engine, warehouse, "ns", "a", "b")
    all_moved()
    first = engine.get(f"{EVENTS}?type=createNamespace,createTable&pageSize=2").json()
    assert names(first) == ["createNamespace", "createTable a"]
    assert first["more"] is True
    assert first["events"][1]["specversion"] == "1.0"
    second = engine.get(f"{EVENTS}?type=createTable&pageToken={first['next-page-token']}").json()
    assert names(second) == ["createTable b"]
    last = engine.get(f"{EVENTS}?pageToken={second['next-page-token']}").json()
    assert (last["events"], last["more"]) == ([], False)
    create(engine, warehouse, "ns", "c")
    all_moved()
    assert "createTable c" in names(engine.get(f"{EVENTS}?pageToken={last['next-page-token']}").json())


def test_filters(admin: AsgiClient, engine: AsgiClient, warehouse: Warehouse) -> None:
    create(engine, warehouse, "ns", "a", "b")
    all_moved()
    (table,) = (each for each in engine.get(EVENTS).json()["events"] if each["data"].get("name") == "b")
    assert names(engine.get(f"{EVENTS}?object-id={table['objectid']}").json()) == ["createTable b"]
    assert names(engine.get(f"{EVENTS}?object-type=namespace").json()) == ["createNamespace"]
    later = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert names(engine.get(f"{EVENTS}?since={later}").json()) == []
    assert len(engine.get(f"{EVENTS}?since=2026-01-01").json()["events"]) >= 3


@pytest.mark.parametrize(
    "query", ["type=made.up", "since=yesterday", "pageToken=x", "pageSize=0", "limit=1", "object-id=a%00"]
)
def test_wrong_queries_are_named(admin: AsgiClient, query: str) -> None:
    answer = admin.get(f"{EVENTS}?{query}")
    assert answer.status == 400
    assert query.partition("=")[0].split("-")[0][:5] in answer.message()


def test_whoever_sees_one_table_reads_of_it_and_of_nothing_else(
    admin: AsgiClient, engine: AsgiClient, warehouse: Warehouse, client: AsgiClient
) -> None:
    create(engine, warehouse, "ns", "shown", "hidden")
    prefix = f"/catalog/v1/{warehouse.id}"
    table = engine.get(f"{prefix}/namespaces/ns/tables/shown").json()["metadata"]["table-uuid"]
    create(engine, warehouse, "other", "from")
    engine.post(
        f"{prefix}/tables/rename",
        {"source": {"namespace": ["other"], "name": "from"}, "destination": {"namespace": ["ns"], "name": "moved"}},
    )
    moved = engine.get(f"{prefix}/namespaces/ns/tables/moved").json()["metadata"]["table-uuid"]
    for each in (table, moved):
        given = admin.as_user("engine").post(
            f"/management/v1/warehouse/{warehouse.id}/table/{each}/grants",
            {"writes": [{"privilege": "describe", "principal": {"user": "oidc~reader"}}]},
        )
        if given.status >= 300:
            _give(each, warehouse)
    all_moved()
    reader = client.as_user("reader")
    read = reader.get(f"{EVENTS}?object-type=table").json()
    # where `moved` was before, may be hidden
    assert names(read) == ["createTable shown"]
    assert reader.get("/management/v1/server/events").status == 403


def _give(table: str, warehouse: Warehouse) -> None:
    from catalog.access import tabular_chain  # noqa: PLC0415 the shortest way
    from catalog.models import Tabular  # noqa: PLC0415
    from lakewarden.authz.ledger import grants as ledger  # noqa: PLC0415
    from lakewarden.authz.model import Privilege  # noqa: PLC0415
    from lakewarden.context import PrincipalId  # noqa: PLC0415
    from tests.installation import ADMIN  # noqa: PLC0415

    row = Tabular.objects.placed().get(uuid=table, warehouse_id=warehouse.id)
    ledger.give(tabular_chain(row), [(PrincipalId("oidc~reader"), Privilege.DESCRIBE)], granted_by=ADMIN)


def test_a_stranger_sees_no_project(admin: AsgiClient, client: AsgiClient, warehouse: Warehouse) -> None:
    assert client.as_user("nobody").get(EVENTS).status == 404


def test_a_right_that_is_taken_away_is_felt_by_the_next_page(
    admin: AsgiClient, engine: AsgiClient, warehouse: Warehouse, grant: Grant, client: AsgiClient
) -> None:
    create(engine, warehouse, "ns", "a")
    all_moved()
    grant("reader", "describe")
    reader = client.as_user("reader")
    assert "createTable a" in names(reader.get(EVENTS).json())
    with connection.cursor() as cursor:
        cursor.execute("delete from authz_grant where principal_id = 'oidc~reader'")
        cursor.execute("update project set authz_epoch = authz_epoch + 1")
    assert reader.get(EVENTS).status == 404


def test_what_a_request_costs_does_not_grow_with_the_log(
    admin: AsgiClient, engine: AsgiClient, warehouse: Warehouse, grant: Grant, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = config.current()
    bounded = now.events.model_copy(update={"positions_of_one_request": 1000, "decisions_of_one_request": 5})
    monkeypatch.setattr(config, "current", lambda: now.model_copy(update={"events": bounded}))
    for number in range(20):
        change(f"00000000-0000-4000-8000-{number:012d}", 0, project=warehouse.project_id)
    all_moved()
    _fill(warehouse.project_id, 5000)
    grant("reader", "select")
    with connection.cursor() as cursor:  # sees the warehouse alone
        cursor.execute("update authz_grant set privilege = 'pass_grants' where principal_id = 'oidc~reader'")
    reader = engine.as_user("reader")
    pages, token, statements = 0, "", []
    while True:
        with CaptureQueriesContext(connection) as captured:
            answer = reader.get(f"{EVENTS}?pageSize=100{token}").json()
        statements.append(len(captured))
        assert answer["events"] == []
        token = f"&pageToken={answer['next-page-token']}"
        pages += 1
        if not answer["more"]:
            break
    assert pages > 10
    assert log.last_position() > 5000


def _fill(project: str, count: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into event_log (at, id, type, project_id, object_type, object_id, actor, assumed_role, request_id, "
            "data, created_at) select now(), gen_random_uuid(), 'updateTable', %s, 'table', gen_random_uuid()::text, "
            "'oidc~a', '', 'r', '{\"warehouse-id\": \"w\", \"namespace\": [\"ns\"]}', now() from generate_series(1, %s)",
            [project, count],
        )
