"""No caller can fill the server with objects: there are never more of a kind than the configuration allows."""

from collections.abc import Callable, Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lakewarden import config, quotas
from lakewarden.audit.models import AuditEntry
from tests.integration.catalog.lake import Lake, identifier, set_properties
from tests.integration.management.tagging import column, define, place, put
from tests.servers.asgi_client import Answer, AsgiClient

API = "/management/v1"
MOST = 5  # some exist before the test

Create = Callable[[Lake, AsgiClient, int], Answer]
Limit = Callable[..., None]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Limit]:
    """`limit(projects=3)`."""

    def set_to(**values: int) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"LAKEWARDEN__QUOTAS__{name.upper()}", str(value))
        config.current.cache_clear()

    yield set_to
    monkeypatch.undo()
    config.current.cache_clear()
    quotas._rooms.clear()


def grant(lake: Lake, admin: AsgiClient, number: int) -> Answer:
    user = f"oidc~user{number}"
    admin.post(f"{API}/user", {"id": user, "name": "U", "user-type": "human"})
    body = {"writes": [{"privilege": "select", "principal": {"user": user}}]}
    return admin.post(f"{API}/warehouse/{lake.warehouse_id}/grants", body)


def warehouse(lake: Lake, admin: AsgiClient, number: int) -> Answer:
    base = config.current().storage.local_roots[0] / f"{lake.warehouse_id}-{number}"
    profile = {"type": "local", "base-path": str(base)}
    return admin.post(f"{API}/warehouse", {"warehouse-name": f"w{number}", "storage-profile": profile})


def member(lake: Lake, admin: AsgiClient, number: int) -> Answer:
    made = admin.post(f"{API}/role", {"name": "filled"})
    found = made.json()["id"] if made.status == 201 else roles(admin)["filled"]
    user = f"oidc~user{number}"
    admin.post(f"{API}/user", {"id": user, "name": "U", "user-type": "human"})
    return admin.post(f"{API}/role/{found}/members", {"members": [{"user": user}]})


def tag(lake: Lake, admin: AsgiClient, number: int) -> Answer:
    """On the table and its columns in turn."""
    lake.create_table("tagged")
    define(admin, f"d{number}")
    where = place(lake, "tagged")
    return put(admin, column(where, "id") if number % 2 else where, f"d{number}", "x")


def roles(admin: AsgiClient) -> dict[str, str]:
    return {each["name"]: each["id"] for each in admin.get(f"{API}/role").json()["roles"]}


KINDS: dict[str, Create] = {
    "projects": lambda _, admin, number: admin.post(f"{API}/project", {"project-name": f"p{number}"}),
    "warehouses_in_project": warehouse,
    "roles_in_project": lambda _, admin, number: admin.post(f"{API}/role", {"name": f"r{number}"}),
    "tag_definitions_in_project": lambda _, admin, number: define(admin, f"d{number}"),
    "tags_on_object": tag,
    "members_of_role": member,
    "grants_on_object": grant,
    "namespaces_in_warehouse": lambda lake, _, number: lake.create_namespace("sales", f"n{number}"),
    "tables_in_namespace": lambda lake, _, number: lake.create_table(f"t{number}"),
    "tables_in_warehouse": lambda lake, _, number: lake.create_view(f"v{number}"),
}


@pytest.mark.parametrize("quota", KINDS)
def test_one_more_than_allowed_is_refused(lake: Lake, admin: AsgiClient, limit: Limit, quota: str) -> None:
    """Rights: all that are needed to create objects."""
    limit(**{quota: MOST})
    answers = [KINDS[quota](lake, admin, number) for number in range(MOST + 1)]
    made = [answer for answer in answers if answer.status < 300]
    assert 0 < len(made) <= MOST
    assert answers[-1].error() == (400, "QuotaExceededException")
    assert f"at most {MOST} are allowed (quotas.{quota})" in answers[-1].message()
    limit(**{quota: 0})
    assert KINDS[quota](lake, admin, MOST + 1).status < 300


def test_every_quota_is_tried_here() -> None:
    assert set(KINDS) == set(config.QuotasConfig.model_fields)


def test_tables_do_not_come_by_another_way(lake: Lake, limit: Limit) -> None:
    """Rights: create and modify in the warehouse; a table is staged, registered or brought from elsewhere."""
    lake.create_namespace("own")
    lake.create_table("mine", within="own")
    location = lake.create_table("t0").json()["metadata-location"]
    limit(tables_in_namespace=1)
    assert lake.create_table("staged", stage_create=True).status == 400
    assert lake.create_table("t0").status == 409
    assert lake.client.delete(lake.table("t0", purgeRequested="false")).status == 204
    lake.create_table("t1")
    body = {"name": "t0", "metadata-location": location}
    assert lake.client.post(lake.namespace("sales", "register"), body).status == 400
    moved = {"source": identifier("mine", "own"), "destination": identifier("mine")}
    assert lake.client.post(lake.path("tables", "rename"), moved).status == 400
    assert lake.commit("t1", set_properties(a="b")).status == 200


def test_creations_and_commits_count_nothing_while_there_is_room(lake: Lake) -> None:
    """Rights: create in the warehouse."""
    lake.create_table("first")
    with CaptureQueriesContext(connection) as asked:
        quotas.ensure_room("tables_in_namespace", AuditEntry.objects.all(), within="counted")
        for _ in range(100):
            quotas.ensure_room("tables_in_namespace", AuditEntry.objects.all(), within="counted")
    assert len(asked) == 1
