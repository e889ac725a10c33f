"""Calls are counted by hour, route and status, hot ones too, and reported to the project that they were about."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from lakewarden.usage import call_statistics
from lakewarden.usage.call_counter import COUNTS, Counts
from lakewarden.usage.models import EndpointCalls
from tenants.models import Project, Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tests.installation import Grant
from tests.servers.asgi_client import AsgiClient

PATH = "/management/v1/endpoint-statistics"
ALL = {"warehouse": {"type": "all"}}
HOUR = timedelta(hours=1)
NAMESPACES = "GET /catalog/v1/{prefix}/namespaces"
NO_WAREHOUSE = str(uuid4())


@pytest.fixture(autouse=True)
def nothing_counted(warehouse: Warehouse) -> None:
    COUNTS.take()


@pytest.fixture
def told(admin: AsgiClient) -> Callable[..., dict[tuple[str, int], int]]:
    """Writes the counts, and returns those of each route and status as the administrator reads them."""

    def counts(body: dict[str, Any] = ALL) -> dict[tuple[str, int], int]:
        call_statistics.flush()
        answer = admin.post(PATH, body)
        assert answer.status == 200, answer.body
        found = [call for calls in answer.json()["called-endpoints"] for call in calls]
        return {(call["http-route"], call["status-code"]): call["count"] for call in found}

    return counts


def _row(hours_ago: int, **changed: Any) -> datetime:
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    values = {"project_id": DEFAULT_PROJECT_ID, "route": NAMESPACES, "status": 200, "count": 1, **changed}
    EndpointCalls.objects.create(hour=now - hours_ago * HOUR, created_at=now, **values)
    return now - (hours_ago - 1) * HOUR


def test_calls_are_counted_by_template_and_status(
    admin: AsgiClient, stranger: AsgiClient, warehouse: Warehouse, told: Callable[[], dict[tuple[str, int], int]]
) -> None:
    path = f"/catalog/v1/{warehouse.id}/namespaces"
    for _ in range(3):
        assert admin.get(path).status == 200
    assert stranger.get(path).status == 404
    assert admin.post(path, {"namespace": ["a"]}).status == 200
    assert admin.get(f"/management/warehouse/{warehouse.id}").status == 200
    assert told() == {
        (NAMESPACES, 200): 3,
        (NAMESPACES, 404): 1,
        ("POST /catalog/v1/{prefix}/namespaces", 200): 1,
        ("GET /management/v1/warehouse/{warehouse_id}", 200): 1,
    }


def test_hot_answers_are_counted_like_the_others(
    admin: AsgiClient, warehouse: Warehouse, told: Callable[[], dict[tuple[str, int], int]]
) -> None:
    base = f"/catalog/v1/{warehouse.id}/namespaces"
    schema = {"type": "struct", "fields": []}
    assert admin.post(base, {"namespace": ["a"]}).status == 200
    assert admin.post(f"{base}/a/tables", {"name": "t", "schema": schema}).status == 200
    gzip = {"accept-encoding": "gzip"}
    tag = admin.get(f"{base}/a/tables/t", headers=gzip).headers["etag"]
    admin.get("/catalog/v1/config?warehouse=lake")
    COUNTS.take()
    calls = [
        ("GET", f"{base}/a/tables/t", gzip, 200),
        ("GET", f"{base}/a/tables/t", {**gzip, "if-none-match": tag}, 304),
        ("HEAD", f"{base}/a/tables/t", {}, 204),
        ("GET", f"{base}/a/tables", {}, 200),
        ("GET", f"{base}/a", {}, 200),
        ("HEAD", f"{base}/a", {}, 204),
        ("GET", base, {}, 200),
        ("GET", "/catalog/v1/config?warehouse=lake", {}, 200),
    ]
    for method, path, headers, status in calls:
        assert admin.call(method, path, headers=headers).status == status
        assert admin.call(method, path, headers=headers).status == status
    namespace = "/catalog/v1/{prefix}/namespaces/{namespace}"
    assert told() == {
        (f"GET {namespace}/tables/{{table}}", 200): 2,
        (f"GET {namespace}/tables/{{table}}", 304): 2,
        (f"HEAD {namespace}/tables/{{table}}", 204): 2,
        (f"GET {namespace}/tables", 200): 2,
        (f"GET {namespace}", 200): 2,
        (f"HEAD {namespace}", 204): 2,
        (NAMESPACES, 200): 2,
        ("GET /catalog/v1/config", 200): 2,
    }
    assert set(EndpointCalls.objects.values_list("warehouse_id", flat=True)) == {warehouse.id}


def test_further_calls_of_an_hour_are_added(
    admin: AsgiClient, warehouse: Warehouse, told: Callable[[], dict[tuple[str, int], int]]
) -> None:
    path = f"/management/v1/warehouse/{warehouse.id}"
    admin.get(path)
    told()
    admin.get(path)
    assert told()["GET /management/v1/warehouse/{warehouse_id}", 200] == 2
    row = EndpointCalls.objects.get(route="GET /management/v1/warehouse/{warehouse_id}")
    assert row.updated_at is not None
    assert row.updated_at >= row.created_at


def test_a_call_names_its_warehouse_and_the_end_of_its_hour(admin: AsgiClient, warehouse: Warehouse) -> None:
    admin.get(f"/catalog/v1/{warehouse.id}/namespaces")
    before = datetime.now(UTC)
    call_statistics.flush()
    answer = admin.post(PATH, ALL).json()
    (until,) = answer["timestamps"]
    assert timedelta(0) <= datetime.fromisoformat(until) - before <= HOUR
    ((call,),) = answer["called-endpoints"]
    assert (call["warehouse-id"], call["warehouse-name"]) == (str(warehouse.id), "lake")
    assert "updated-at" not in call


def test_a_project_is_told_of_its_own_calls_only(
    admin: AsgiClient, warehouse: Warehouse, told: Callable[[], dict[tuple[str, int], int]]
) -> None:
    other = admin.post("/management/v1/project", {"project-name": "other"}).json()["project-id"]
    COUNTS.take()
    admin.get("/management/v1/project", headers={"x-project-id": other})
    admin.get("/management/v1/whoami")  # about no project
    admin.get("/management/v1/project", headers={"x-project-id": "nobodys"})
    assert told() == {}
    found = admin.post(PATH, ALL, headers={"x-project-id": other}).json()["called-endpoints"]
    assert [call["http-route"] for calls in found for call in calls] == ["GET /management/v1/project"]
    assert EndpointCalls.objects.exclude(project_id=other).count() == 0


def test_the_counts_of_a_deleted_project_do_not_become_those_of_its_successor(admin: AsgiClient) -> None:
    body = {"project-name": "short", "project-id": "short"}
    assert admin.post("/management/v1/project", body).status == 201
    _row(1, project_id="short")
    Project.objects.get(id="short").delete()
    assert admin.post("/management/v1/project", body).status == 201
    assert admin.post(PATH, ALL, headers={"x-project-id": "short"}).json()["timestamps"] == []


def test_filters_narrow_the_answer(warehouse: Warehouse, told: Callable[..., dict[tuple[str, int], int]]) -> None:
    _row(1, warehouse_id=warehouse.id)
    _row(1, warehouse_id=warehouse.id, status=404)
    _row(1, route="GET /management/v1/project", status=200)
    _row(1, route="GET /x", warehouse_id=uuid4())
    one = {"type": "warehouse-id", "id": str(warehouse.id)}
    assert told({"warehouse": one}) == {(NAMESPACES, 200): 1, (NAMESPACES, 404): 1}
    assert told({"warehouse": one, "status-codes": [404, 500]}) == {(NAMESPACES, 404): 1}
    assert told({"warehouse": {"type": "unmapped"}}) == {("GET /management/v1/project", 200): 1}
    assert len(told()) == 5  # and the calls of this test itself


def test_pages_step_through_time_without_gap_or_overlap(admin: AsgiClient) -> None:
    ends = [_row(hours) for hours in (2, 26, 50)]
    answer = admin.post(PATH, ALL).json()
    assert [datetime.fromisoformat(each) for each in answer["timestamps"]] == [ends[0]]
    middle = _page(admin, answer["previous-page-token"])
    assert [datetime.fromisoformat(each) for each in middle["timestamps"]] == [ends[1]]
    last = _page(admin, middle["previous-page-token"])
    assert [datetime.fromisoformat(each) for each in last["timestamps"]] == [ends[2]]
    assert _page(admin, last["next-page-token"]) == middle
    assert _page(admin, _page(admin, last["previous-page-token"])["next-page-token"]) == last


def _page(caller: AsgiClient, token: str) -> Any:
    answer = caller.post(PATH, {**ALL, "range-specifier": {"type": "page-token", "token": token}})
    assert answer.status == 200
    return answer.json()


def test_a_window_has_an_end_and_a_length(admin: AsgiClient) -> None:
    ends = [_row(hours) for hours in (2, 26, 50)]
    window = {"type": "window", "end": (ends[0] - HOUR).isoformat(), "interval": "P2D"}
    answer = admin.post(PATH, {**ALL, "range-specifier": window}).json()
    assert [datetime.fromisoformat(each) for each in answer["timestamps"]] == [ends[2], ends[1]]


def test_only_who_may_is_told(client: AsgiClient, stranger: AsgiClient, warehouse: Warehouse, grant: Grant) -> None:
    assert stranger.post(PATH, ALL).error() == (404, "NoSuchProjectException")
    one = {"warehouse": {"type": "warehouse-id", "id": str(warehouse.id)}}
    assert stranger.post(PATH, one).error() == (404, "NoSuchWarehouseException")
    grant("guest", "pass_grants")  # sees the warehouse and the project, and no more
    assert client.as_user("guest").post(PATH, one).error() == (403, "ForbiddenException")
    assert client.as_user("guest").post(PATH, ALL).error() == (403, "ForbiddenException")
    grant("reader", "describe")
    assert client.as_user("reader").post(PATH, one).status == 200
    assert client.as_user("reader").post(PATH, ALL).error() == (403, "ForbiddenException")
    assert client.post(PATH, ALL).status == 401


def test_a_warehouse_of_another_project_is_missing(admin: AsgiClient, warehouse: Warehouse) -> None:
    other = admin.post("/management/v1/project", {"project-name": "other"}).json()["project-id"]
    for project, identifier in ((other, str(warehouse.id)), (DEFAULT_PROJECT_ID, NO_WAREHOUSE)):
        body = {"warehouse": {"type": "warehouse-id", "id": identifier}}
        answer = admin.post(PATH, body, headers={"x-project-id": project})
        assert answer.error() == (404, "NoSuchWarehouseException")
        assert answer.message() == f"Warehouse does not exist: {identifier}"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "warehouse"),
        ({"warehouse": "all"}, "warehouse"),
        ({"warehouse": {}}, "type"),
        ({"warehouse": {"type": "some"}}, "type"),
        ({"warehouse": {"type": "warehouse-id"}}, "`id`"),
        ({"warehouse": {"type": "warehouse-id", "id": "no-uuid"}}, "UUID"),
        ({"warehouse": {"type": "all", "id": NO_WAREHOUSE}}, "`id`"),
        ({"warehouse": {"type": "all", "idd": NO_WAREHOUSE}}, "did you mean 'id'"),
        ({**ALL, "status-codes": [42]}, "status-codes"),
        ({**ALL, "status-codes": "200"}, "status-codes"),
        ({**ALL, "range-specifier": {"type": "window"}}, "interval"),
        ({**ALL, "range-specifier": {"type": "page-token"}}, "token"),
        ({**ALL, "range-specifier": {"type": "page-token", "token": "x\x00"}}, "token"),
        ({**ALL, "range-specifier": {"type": "page-token", "token": "MXgg"}}, "not issued by this server"),
        ({**ALL, "range-specifier": {"type": "window", "end": "2026-01-01T00:00:00Z", "interval": "1 day"}}, "ISO"),
        ({**ALL, "range-specifier": {"type": "window", "end": "2026-01-01T00:00:00Z", "interval": "P1Y"}}, "ISO"),
        ({**ALL, "range-specifier": {"type": "window", "end": "2026-01-01T00:00:00Z", "interval": "PT1S"}}, "PT1H"),
        ({**ALL, "range-specifier": {"type": "window", "end": "2026-01-01T00:00:00Z", "interval": "P93D"}}, "P92D"),
        (
            {
                **ALL,
                "range-specifier": {"type": "window", "end": "2026-01-01T00:00:00Z", "interval": "P" + 40 * "9" + "D"},
            },
            "ISO",
        ),
        ({**ALL, "range-specifier": {"type": "window", "end": "0001-01-01T00:00:00Z", "interval": "P1D"}}, "2000"),
        ({**ALL, "range-specifier": {"type": "window", "end": "yesterday", "interval": "P1D"}}, "end"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(admin: AsgiClient, body: dict[str, Any], said: str) -> None:
    answer = admin.post(PATH, body)
    assert answer.error() == (400, "BadRequestException")
    assert said in answer.message()


def test_a_database_that_is_down_keeps_the_counts(
    admin: AsgiClient, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Counts()
    counts.add(NAMESPACES, 200, project_id=DEFAULT_PROJECT_ID, warehouse_id=warehouse.id)

    def down(*_: object) -> None:
        raise OperationalError("the connection is lost")

    with monkeypatch.context() as patched:
        patched.setattr(call_statistics, "execute", down)
        with pytest.raises(OperationalError):
            call_statistics.flush(counts)
    call_statistics.flush(counts)
    assert EndpointCalls.objects.get().count == 1
