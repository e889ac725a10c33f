"""Requests to S3 are signed for those who may read or write the table that they reach, by each of the routes."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from catalog.models import Tabular
from lakewarden import asgi
from lakewarden.audit import refusals
from lakewarden.audit.models import AuditEntry
from lakewarden.context import RequestContext
from lakewarden.storage.request_signing import SignRequest
from lakewarden.storage.s3.signing_hosts import Hosts
from lakewarden.storage.s3.signing_rules import SigningRules
from lakewarden.storage.s3.sigv4 import Signer, SigningKeys
from tenants.models import Warehouse
from tests.installation import Grant
from tests.integration.catalog.counted import Counted, queries
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.signed import (
    KEY_ID,
    PROFILE,
    REGION,
    SECRET,
    InMemory,
    Signing,
    deletion,
    keep_secret,
    on_s3,
    url,
)
from tests.servers.asgi_client import Answer, AsgiClient

__all__ = ["queries"]

Route = Callable[[Lake, Any], Signing]
ROUTES: dict[str, Route] = {
    "by name": lambda lake, _: Signing.by_name(lake),
    "by id": lambda lake, table: Signing.by_id(lake, table["metadata"]["table-uuid"]),
    "by location": lambda lake, _: Signing.by_location(lake),
    "below the warehouse": lambda lake, _: Signing(lake, f"/catalog/{lake.warehouse_id}/v1/aws/s3/sign"),
}
each_route = pytest.mark.parametrize("route", ROUTES)


@pytest.fixture
def warehouse(admin: AsgiClient, admin_context: RequestContext) -> Iterator[Warehouse]:
    with on_s3(admin_context) as made:
        yield made


@pytest.fixture
def orders(lake: Lake) -> Any:
    created = lake.create_table("orders")
    assert created.status == 200, created.body
    return created.json()


def expected(method: str, uri: str, signed: Any, *, secret: str = SECRET) -> str:
    """The signature at the time of the answer."""
    at = datetime.strptime(signed["headers"]["x-amz-date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    rules = SigningRules("lake", Hosts(InMemory.model_validate(PROFILE)), is_aws=False)
    canonical = rules.read(SignRequest(REGION, method, uri, {})).canonical
    return Signer(SigningKeys(KEY_ID, secret), REGION).sign(canonical, at=int(at.timestamp()))["authorization"]


@each_route
@pytest.mark.parametrize("is_hot", [True, False])
def test_a_request_for_a_file_of_the_table_is_signed(
    lake: Lake, orders: Any, monkeypatch: pytest.MonkeyPatch, *, route: str, is_hot: bool
) -> None:
    if not is_hot:
        monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    uri = url(orders["metadata"]["location"], "/data/a%20b/%C3%A9%2B.parquet")
    for method, control in (("GET", "private"), ("HEAD", "private"), ("PUT", "no-cache"), ("DELETE", "no-cache")):
        for _ in range(2):
            answer = ROUTES[route](lake, orders).ask(method, uri)
            assert answer.status == 200, answer.body
            signed = answer.json()
            assert signed["uri"] == uri
            assert signed["headers"].keys() >= {"authorization", "x-amz-date", "x-amz-content-sha256"}
            assert signed["headers"]["authorization"] == [expected(method, uri, signed)]
            assert answer.headers["cache-control"] == control


def test_a_warm_request_asks_one_query(lake: Lake, orders: Any, queries: Counted) -> None:
    uri = url(orders["metadata"]["location"], "/data/f")
    for route, signing_by in ROUTES.items():
        signing = signing_by(lake, orders)
        for method in ("GET", "PUT"):
            signing.ask(method, uri)
            queries.take()
            assert signing.ask(method, uri).status == 200
            assert queries.take() == (1, 0), (route, method)


def test_generic_tables_are_signed_for_by_id(lake: Lake, queries: Counted) -> None:
    created = lake.create_generic("birds")
    assert created.status == 200, created.body
    table = Tabular.objects.get(name="birds")
    signing = Signing.by_id(lake, str(table.uuid))
    for _ in range(2):
        queries.take()
        assert signing.ask("PUT", url(table.location, "/f")).status == 200
    assert queries.take() == (1, 0)
    assert Signing.by_name(lake, "birds").ask("GET", url(table.location, "/f")).status == 404


@each_route
def test_a_reader_reads_and_a_writer_writes(lake: Lake, orders: Any, grant: Grant, route: str) -> None:
    grant("reader", "select")
    grant("writer", "write")
    grant("looker", "describe")
    uri = url(orders["metadata"]["location"], "/f")
    key = uri.partition("/lake/")[2]

    def statuses(name: str) -> list[int]:
        signing = ROUTES[route](lake.as_user(name), orders)
        asked = [signing.ask(method, uri) for method in ("GET", "HEAD", "PUT", "DELETE")]
        listed = signing.ask("GET", url(f"s3://lake?list-type=2&prefix={key.rpartition('/')[0]}/"))
        parts = signing.ask("GET", f"{uri}?uploadId=x")
        return [
            each.status
            for each in (*asked, listed, parts, signing.ask("POST", url("s3://lake?delete"), body=deletion(key)))
        ]

    assert statuses("writer") == [200] * 7
    assert statuses("reader") == [200, 200, 403, 403, 200, 403, 403]
    assert statuses("looker") == [403] * 7
    assert statuses("stranger") == [404] * 7


@each_route
@pytest.mark.parametrize("is_hot", [True, False])
def test_without_a_token_nothing_is_signed(
    lake: Lake, orders: Any, client: AsgiClient, monkeypatch: pytest.MonkeyPatch, *, route: str, is_hot: bool
) -> None:
    if not is_hot:
        monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    uri = url(orders["metadata"]["location"], "/f")
    answer = ROUTES[route](Lake(client, lake.warehouse_id), orders).ask("GET", uri)
    assert answer.error() == (401, "NotAuthorizedException")


@each_route
def test_a_hidden_table_is_like_a_missing_one(lake: Lake, orders: Any, grant: Grant, route: str) -> None:
    lake.create_namespace("other")
    uri = url(orders["metadata"]["location"], "/f")
    gone = {"metadata": {"table-uuid": str(uuid4())}}
    stranger = lake.as_user("stranger")
    hidden = ROUTES[route](stranger, orders).ask("GET", uri)
    missing = ROUTES[route](Lake(stranger.client, str(uuid4())), gone).ask("GET", uri)
    assert hidden.status == missing.status == 404

    def neutral(answer: Answer) -> str:
        return re.sub(r"[0-9a-f-]{36}", "ID", answer.message())

    assert neutral(hidden) == neutral(missing)


@pytest.mark.parametrize("route", ["by name", "by id", "by location"])
@pytest.mark.parametrize("is_hot", [True, False])
def test_what_lies_beside_the_table_is_refused(
    lake: Lake, orders: Any, monkeypatch: pytest.MonkeyPatch, *, route: str, is_hot: bool
) -> None:
    if not is_hot:
        monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    location = orders["metadata"]["location"]
    signing = ROUTES[route](lake, orders)
    assert signing.ask("GET", url(location, "/f")).status == 200  # warm
    refused = 403 if route == "by name" else 404
    for beside in ("2/f", "-x/f", "%20/f"):
        assert signing.ask("GET", url(location, beside)).status == refused, beside
    assert signing.ask("GET", url(location)).status == 403
    assert signing.ask("GET", url(location, "/../f")).status == 400
    assert signing.ask("GET", url(location, "/a%2Fb")).status == 400
    assert signing.ask("GET", "https://evil.org/lake/wh/f").status == 403
    assert signing.ask("GET", url("s3://other/wh/f")).status == 403
    assert signing.ask("PATCH", url(location, "/f")).status == 405


@each_route
def test_a_deletion_or_copy_that_reaches_beyond_the_table_is_refused(lake: Lake, orders: Any, route: str) -> None:
    other = lake.create_table("others").json()
    signing = ROUTES[route](lake, orders)
    own, foreign = (each["metadata"]["location"].removeprefix("s3://lake/") for each in (orders, other))
    many = url("s3://lake?delete")
    assert signing.ask("POST", many, body=deletion(f"{own}/a", f"{own}/b")).status == 200
    assert signing.ask("POST", many, body=deletion(f"{own}/a", f"{foreign}/b")).status == 403
    assert signing.ask("POST", many).status == 400
    uri = url(f"s3://lake/{own}/f")
    assert signing.ask("PUT", uri, x_amz_copy_source=f"/lake/{own}/g").status == 200
    assert signing.ask("PUT", uri, x_amz_copy_source=f"/lake/{foreign}/g").status == 403


def test_the_signer_of_one_table_signs_for_another_that_the_caller_may_read(lake: Lake, orders: Any) -> None:
    """As PyIceberg up to 0.9.1 asks."""
    other = lake.create_table("others").json()
    uri = url(other["metadata"]["location"], "/f")
    assert Signing.by_id(lake, orders["metadata"]["table-uuid"]).ask("GET", uri).status == 200
    assert Signing.by_name(lake).ask("GET", uri).status == 403


def test_a_staged_creation_is_written_by_who_has_staged_it(lake: Lake, grant: Grant) -> None:
    staged = lake.create_table("fresh", stage_create=True).json()["metadata"]
    uri = url(staged["location"], "/data/f")
    for name, status in (("engine", 200), ("another", 404)):
        grant("another", "modify")
        caller = lake if name == "engine" else lake.as_user(name)
        for signing in (Signing.by_id(caller, staged["table-uuid"]), Signing.by_location(caller)):
            for method in ("PUT", "GET"):
                assert signing.ask(method, uri).status == status, (name, method)


def test_files_of_a_dropped_table_can_be_read_until_it_is_gone(lake: Lake, orders: Any, set_profile: Any) -> None:
    set_profile(3600)
    uri = url(orders["metadata"]["location"], "/metadata/f")
    assert lake.client.delete(lake.table("orders", purgeRequested="true")).status == 204
    for signing in (Signing.by_id(lake, orders["metadata"]["table-uuid"]), Signing.by_location(lake)):
        assert [signing.ask(method, uri).status for method in ("GET", "HEAD", "PUT", "DELETE")] == [200, 200, 403, 403]
    assert Signing.by_name(lake).ask("GET", uri).status == 404


@each_route
def test_a_right_that_is_taken_away_is_felt_by_the_next_request(
    lake: Lake, orders: Any, admin: AsgiClient, route: str
) -> None:
    signing = ROUTES[route](lake, orders)
    uri = url(orders["metadata"]["location"], "/f")
    assert [signing.ask("PUT", uri).status for _ in range(2)] == [200, 200]
    path = f"/management/v1/warehouse/{lake.warehouse_id}"
    assert admin.post(f"{path}/deactivate", {}).status in {200, 204}
    assert signing.ask("PUT", uri).status == 404
    assert admin.post(f"{path}/activate", {}).status in {200, 204}
    assert signing.ask("PUT", uri).status == 200


@each_route
def test_a_new_key_signs_from_the_next_request_on(lake: Lake, orders: Any, warehouse: Warehouse, route: str) -> None:
    signing = ROUTES[route](lake, orders)
    uri = url(orders["metadata"]["location"], "/f")
    assert [signing.ask("GET", uri).status for _ in range(2)] == [200, 200]
    keep_secret(warehouse, "the next one")
    signed = signing.ask("GET", uri).json()
    assert signed["headers"]["authorization"] == [expected("GET", uri, signed, secret="the next one")]


@each_route
def test_a_wrong_region_provider_or_body_is_named(lake: Lake, orders: Any, route: str) -> None:
    uri = url(orders["metadata"]["location"], "/f")
    signing = ROUTES[route](lake, orders)
    for wrong, says in (
        ({"region": "mars-1"}, "region"),
        ({"provider": "gcs"}, "provider"),
        ({"headers": {"a": "b"}}, "headers"),
        ({"uri": 1}, "uri"),
    ):
        answer = Signing(lake, signing.route, wrong).ask("GET", uri)
        assert answer.status == 400
        assert says in answer.message()


def test_requests_to_other_storage_or_without_the_switch_are_not_signed(
    lake: Lake, orders: Any, warehouse: Warehouse
) -> None:
    profile = {**Warehouse.objects.get(id=warehouse.id).storage_profile, "remote-signing-enabled": False}
    assert Signing.by_name(lake).ask("GET", url(orders["metadata"]["location"], "/f")).status == 200
    Warehouse.objects.filter(id=warehouse.id).update(storage_profile=profile, version=9)
    answer = Signing.by_name(lake).ask("GET", url(orders["metadata"]["location"], "/f"))
    assert answer.status == 400
    assert "remote-signing-enabled" in answer.message()


def test_the_operation_is_offered_where_requests_are_signed(
    lake: Lake, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign"

    def offered() -> set[bool]:
        return {sign in lake.client.get("/catalog/v1/config?warehouse=lake").json()["endpoints"] for _ in range(3)}

    assert offered() == {True}
    profile = {**Warehouse.objects.get(id=warehouse.id).storage_profile, "remote-signing-enabled": False}
    Warehouse.objects.filter(id=warehouse.id).update(storage_profile=profile)
    assert offered() == {False}


def test_a_refusal_is_audited_and_no_secret_is_told(lake: Lake, orders: Any, grant: Grant) -> None:
    grant("reader", "select")
    location = orders["metadata"]["location"]
    reader = Signing.by_name(lake.as_user("reader"))
    answers = [
        reader.ask("PUT", url(location, "/f")),
        reader.ask("GET", url(location, "2/f")),
        reader.ask("GET", url(location, "/f")),
    ]
    assert [each.status for each in answers] == [403, 403, 200]
    assert not any(SECRET.encode() in each.body for each in answers)
    refusals.flush()
    noted = AuditEntry.objects.filter(object_id=orders["metadata"]["table-uuid"], outcome="denied")
    told = noted.values_list("actor", "action", "object_type")
    assert sorted(told) == [("oidc~reader", action, "table") for action in ("read_data", "write_data")]
