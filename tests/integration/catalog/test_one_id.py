"""The id of a table or view is its uuid: however it came to be, for everything that takes or tells an id."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from catalog.models import Tabular
from lakewarden.audit.models import AuditEntry
from lakewarden.events.models import OutboxEvent
from management.urls import routes
from tests.integration.catalog.lake import Lake, identifier
from tests.integration.catalog.staged import CREATE, commit_staged, creation_updates
from tests.integration.management.tagging import defined
from tests.servers.asgi_client import AsgiClient

API = "/management/v1"


@dataclass(frozen=True)
class Made:
    kind: str
    uuid: str


def _table(lake: Lake) -> str:
    return str(lake.create_table("made").json()["metadata"]["table-uuid"])


def _view(lake: Lake) -> str:
    return str(lake.create_view("made").json()["metadata"]["view-uuid"])


def _staged(lake: Lake) -> str:
    staged = lake.create_table("made", stage_create=True).json()
    assert commit_staged(lake, "made", staged).status == 200
    return str(staged["metadata"]["table-uuid"])


def _staged_and_committed_without_a_uuid(lake: Lake) -> str:
    staged = lake.create_table("made", stage_create=True).json()
    _, *updates = creation_updates(staged)
    assert lake.commit("made", *updates, requirements=[CREATE]).status == 200
    return str(staged["metadata"]["table-uuid"])


def _assigned(lake: Lake) -> str:
    staged = lake.create_table("made", stage_create=True, location=_below(lake, "chosen")).json()
    chosen = str(uuid.uuid4()).upper()
    staged["metadata"]["table-uuid"] = chosen
    assert commit_staged(lake, "made", staged).status == 200
    return chosen.lower()


def _below(lake: Lake, name: str) -> str:
    return f"{lake.client.get(lake.namespace('sales')).json()['properties']['location']}/{name}"


def _registered(lake: Lake) -> str:
    file = lake.create_table("before").json()["metadata-location"]
    assert lake.client.delete(lake.table("before", purgeRequested="false")).status == 204
    return _register(lake, file)


def _overwritten(lake: Lake) -> str:
    return _register(lake, lake.create_table("made").json()["metadata-location"], overwrite=True)


def _register(lake: Lake, file: str, *, route: str = "register", **more: Any) -> str:
    answer = lake.client.post(lake.namespace("sales", route), {"name": "made", "metadata-location": file, **more})
    assert answer.status == 200, answer.body
    metadata = answer.json()["metadata"]
    return str(metadata.get("table-uuid") or metadata["view-uuid"])


def _registered_view(lake: Lake) -> str:
    file = lake.create_view("before").json()["metadata-location"]
    assert lake.client.delete(lake.view("before") + "?purgeRequested=false").status == 204
    return _register(lake, file, route="register-view")


def _moved(lake: Lake) -> str:
    made = _registered(lake)
    assert lake.create_namespace("other").status == 200
    for source, destination in (("sales", "other"), ("other", "sales")):
        body = {"source": identifier("made", source), "destination": identifier("made", destination)}
        assert lake.client.post(lake.path("tables", "rename"), body).status == 204
    return made


WAYS: dict[str, Callable[[Lake], str]] = {
    "plain": _table,
    "staged": _staged,
    "staged and committed without a uuid": _staged_and_committed_without_a_uuid,
    "assigned by the client": _assigned,
    "registered": _registered,
    "overwritten": _overwritten,
    "moved": _moved,
    "view": _view,
    "registered view": _registered_view,
}


@pytest.fixture(params=WAYS)
def made(lake: Lake, request: pytest.FixtureRequest) -> Made:
    return Made("view" if "view" in request.param else "table", WAYS[request.param](lake))


def by_id(kind: str) -> list[tuple[str, str]]:
    """Every route of the management API that takes the id of a table or view, with each of its methods."""
    return [
        (method, str(route.pattern))
        for route in routes
        if f"<str:{kind}_id>" in str(route.pattern)
        for method in ("get", "post", "put", "delete")
        if hasattr(route.callback.cls, method)
    ]


BODIES: dict[str, dict[str, Any]] = {
    "grants": {"writes": []},
    "assignments": {"writes": []},
    "protection": {"protected": False},
    "pii": {"value": "yes"},
    "contract": {"required-properties": ["owner"]},
    "check": {"schema": {"type": "struct", "schema-id": 0, "fields": []}},
}


def asked(admin: AsgiClient, lake: Lake, method: str, pattern: str, name: str) -> int:
    path = pattern.replace("<str:warehouse_id>", lake.warehouse_id)
    path = path.replace("<str:table_id>", name).replace("<str:view_id>", name)
    path = path.replace("<str:tag_name>", "pii").replace("<str:column_name>", "id")
    if method == "get":
        return admin.get(f"{API}/{path}?action=get_metadata").status
    body = None if method == "delete" else BODIES[path.rpartition("/")[2]]
    return admin.call(method.upper(), f"{API}/{path}", json=body).status


def test_every_route_knows_it_by_its_uuid_and_by_nothing_else(lake: Lake, admin: AsgiClient, made: Made) -> None:
    key = str(Tabular.objects.get(name="made").pk)
    assert key != made.uuid
    assert len(by_id(made.kind)) >= 11
    defined(admin, "pii")
    for method, pattern in by_id(made.kind):
        assert asked(admin, lake, method, pattern, made.uuid) in {200, 204}, pattern
        assert asked(admin, lake, method, pattern, made.uuid.upper()) in {200, 204}, pattern
        assert asked(admin, lake, method, pattern, key) == 404, pattern


def test_a_check_by_id_and_a_search_find_it(lake: Lake, admin: AsgiClient, made: Made) -> None:
    about = {"action": "drop", "warehouse-id": lake.warehouse_id, f"{made.kind}-id": made.uuid}
    answer = admin.post(f"{API}/action/batch-check", {"checks": [{"operation": {made.kind: about}}]})
    assert answer.json() == {"results": [{"allowed": True}]}
    for text in (made.uuid, "made"):
        found = admin.post(f"{API}/warehouse/{lake.warehouse_id}/search-tabular", {"search": text}).json()["tabulars"]
        assert [each["tabular-id"]["id"] for each in found] == [made.uuid]
    listed = lake.client.get(lake.namespace("sales", f"{made.kind}s", returnUuids="true")).json()
    assert listed["table-uuids"] == [made.uuid]


def test_events_audit_and_grants_tell_it(lake: Lake, admin: AsgiClient, made: Made) -> None:
    assert lake.client.get(lake.path("namespaces", "sales", f"{made.kind}s", "made")).status == 200
    grants = f"{API}/warehouse/{lake.warehouse_id}/{made.kind}/{made.uuid}/grants"
    assert lake.client.get(f"{API}/whoami").status == 200
    entry = {"privilege": "describe", "principal": {"user": "oidc~engine"}}
    assert admin.post(grants, {"writes": [entry]}).status == 204
    held = admin.get(f"{API}/grants?principalUser=oidc~engine").json()["grants"]
    assert {each["resource-id"] for each in held if each["resource-type"] == made.kind} == {made.uuid}
    key = str(Tabular.objects.get(name="made").pk)
    told = [*OutboxEvent.objects.values("object_id", "data"), *AuditEntry.objects.values("object_id", "details")]
    assert made.uuid in {each["object_id"] for each in told}
    assert key not in str(told)
    seen = f"{API}/warehouse/{lake.warehouse_id}/{made.kind}/{made.uuid}/explanation?action=get_metadata"
    who = f"{API}/warehouse/{lake.warehouse_id}/{made.kind}/{made.uuid}/who-may?action=get_metadata"
    above = f"{API}/warehouse/{lake.warehouse_id}/who-may?action=use"
    for path in (f"{seen}&principalUser=oidc~engine", who, above):
        answer = admin.get(path)
        assert answer.status == 200
        assert key not in answer.body.decode()


def test_it_is_dropped_listed_and_restored_by_its_uuid(lake: Lake, admin: AsgiClient, made: Made) -> None:
    place = f"{API}/warehouse/{lake.warehouse_id}"
    profile = {"delete-profile": {"type": "soft", "expiration-seconds": 3600}}
    assert admin.post(f"{place}/delete-profile", profile).status == 200
    path = lake.path("namespaces", "sales", f"{made.kind}s", "made")
    assert lake.client.delete(path).status == 204
    listed = admin.get(f"{place}/deleted-tabulars").json()["tabulars"]
    assert [each["id"] for each in listed] == [made.uuid]
    entities = {"entities": [{"type": made.kind, f"{made.kind}-id": made.uuid}]}
    (task,) = admin.post(f"{place}/task/list", entities).json()["tasks"]
    assert made.uuid in str(task["entity"])
    targets = {"targets": [{"type": made.kind, "id": made.uuid}]}
    assert admin.post(f"{place}/deleted-tabulars/undrop", targets).status == 204
    metadata = lake.client.get(path).json()["metadata"]
    assert (metadata.get("table-uuid") or metadata["view-uuid"]).lower() == made.uuid


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_commit_never_changes_it(lake: Lake, kind: str) -> None:
    made = (_table if kind == "table" else _view)(lake)
    path = lake.path("namespaces", "sales", f"{kind}s", "made")
    same = {"updates": [{"action": "assign-uuid", "uuid": made.upper()}], "requirements": []}
    assert lake.client.post(path, same).status == 200
    other = {"updates": [{"action": "assign-uuid", "uuid": str(uuid.uuid4())}], "requirements": []}
    refused = lake.client.post(path, other)
    assert refused.error() == (400, "IllegalArgumentException")
    assert made in refused.message()
    metadata = lake.client.get(path).json()["metadata"]
    assert metadata[f"{kind}-uuid"] == made
