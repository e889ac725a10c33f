"""What every management route has in common: authentication first, one error shape, request ids, JSON faults."""

import pytest
from django.db import connection

from tenants.models import Warehouse
from tests.servers.asgi_client import AsgiClient

ROUTES = [
    ("GET", "/management/v1/info"),
    ("POST", "/management/v1/bootstrap"),
    ("GET", "/management/v1/whoami"),
    ("POST", "/management/v1/user"),
    ("GET", "/management/v1/project"),
    ("POST", "/management/v1/project"),
    ("GET", "/management/v1/project-list"),
    ("GET", "/management/v1/warehouse"),
    ("POST", "/management/v1/warehouse"),
    ("GET", "/management/v1/warehouse/0197f1c2-0000-7000-8000-000000000000"),
    ("GET", "/management/v1/warehouse/0197f1c2-0000-7000-8000-000000000000/grants"),
    ("POST", "/management/v1/warehouse/0197f1c2-0000-7000-8000-000000000000/grants"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_route_refuses_a_caller_without_credentials(client: AsgiClient, method: str, path: str) -> None:
    answer = client.call(method, path, body=b"not json")
    assert answer.error() == (401, "NotAuthorizedException")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_expired_token_is_refused(client: AsgiClient) -> None:
    assert client.as_user("expired").get("/management/v1/whoami").status == 401


def test_unreachable_identity_provider_is_unavailable(client: AsgiClient) -> None:
    answer = client.as_user("unavailable").get("/management/v1/whoami")
    assert answer.error() == (503, "ServiceUnavailableException")
    assert answer.headers["retry-after"] == "1"


def test_short_path_answers_as_the_long_one(admin: AsgiClient) -> None:
    assert admin.get("/management/project-list").json() == admin.get("/management/v1/project-list").json()


def test_unknown_path_is_in_the_error_shape(admin: AsgiClient) -> None:
    assert admin.get("/management/v1/rainbow").error() == (404, "NoSuchRouteException")


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH", "OPTIONS"])
def test_other_methods_are_not_allowed(admin: AsgiClient, method: str) -> None:
    answer = admin.call(method, "/management/v1/project-list")
    assert answer.error() == (405, "MethodNotAllowedException")
    assert "GET" in answer.headers["allow"]


def test_request_id_of_the_caller_comes_back(admin: AsgiClient) -> None:
    given = {"x-request-id": "trace-1"}
    assert admin.get("/management/v1/info", headers=given).headers["x-request-id"] == "trace-1"
    refused = admin.get("/management/v1/warehouse/no", headers=given)
    assert (refused.status, refused.headers["x-request-id"]) == (404, "trace-1")


def test_request_id_is_made_when_there_is_none_or_a_strange_one(admin: AsgiClient) -> None:
    made = admin.get("/management/v1/info", headers={"x-request-id": "a b\tc"}).headers["x-request-id"]
    assert len(made) == 36


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"\xff", b"[" * 100_000, b'{"project-name": "\\ud800"}'])
def test_a_body_that_is_no_json_object_is_refused(admin: AsgiClient, body: bytes) -> None:
    answer = admin.call("POST", "/management/v1/project", body=body)
    assert answer.error() == (400, "BadRequestException")


def test_a_misspelt_member_is_refused_by_name(admin: AsgiClient) -> None:
    answer = admin.post("/management/v1/project", {"project-nam": "a"})
    assert answer.status == 400
    assert "'project-nam'; did you mean 'project-name'" in answer.message()


@pytest.mark.parametrize("value", ["no", "off", "true", "", 2, [], {}])
def test_a_boolean_is_not_read_from_words(admin: AsgiClient, warehouse: Warehouse, value: object) -> None:
    answer = admin.post(f"/management/v1/warehouse/{warehouse.id}/protection", {"protected": value})
    assert answer.status == 400
    assert "protected: true or false is expected" in answer.message()


def test_a_missing_member_is_named(admin: AsgiClient) -> None:
    answer = admin.post("/management/v1/project", {})
    assert answer.status == 400
    assert "project-name" in answer.message()


def test_what_a_client_accepts_does_not_matter(admin: AsgiClient) -> None:
    answer = admin.get("/management/v1/info?format=html", headers={"accept": "text/html"})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")


def test_a_long_answer_is_compressed(admin: AsgiClient) -> None:
    for number in range(30):
        admin.post("/management/v1/project", {"project-name": f"project number {number}"})
    plain = admin.get("/management/v1/project-list")
    packed = admin.get("/management/v1/project-list", headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body)


def test_head_answers_like_get_without_a_body(admin: AsgiClient) -> None:
    answer = admin.head("/management/v1/info")
    assert (answer.status, answer.body) == (200, b"")


def test_a_connection_that_the_database_closed_meanwhile_is_replaced(admin: AsgiClient) -> None:
    assert admin.get("/management/v1/project-list").status == 200
    with connection.cursor() as cursor:
        cursor.execute(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
    assert admin.get("/management/v1/project-list").status == 200
