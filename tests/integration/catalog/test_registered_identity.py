"""What a registered table or view is: its own uuid, a new owner, one outcome for its idempotency key."""

import uuid
from typing import Any

import pytest

from catalog.models import Tabular
from lakewarden.authz.ledger.models import Grant as GrantRow
from lakewarden.events.models import OutboxEvent
from tests.installation import Grant
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import Recorded
from tests.servers.asgi_client import Answer


@pytest.fixture
def files(lake: Lake) -> dict[str, str]:
    """Metadata files of a table and a view that were dropped, by the route that registers them."""
    table = lake.create_table("orders").json()["metadata-location"]
    view = lake.create_view("report").json()["metadata-location"]
    lake.client.delete(lake.table("orders"))
    lake.client.delete(lake.view("report"))
    return {"register": table, "register-view": view}


def register(lake: Lake, route: str, file: str, *, headers: dict[str, str] | None = None, **more: Any) -> Answer:
    body = {"name": "Again", "metadata-location": file, **more}
    return lake.client.post(lake.namespace("sales", route), body, headers=headers)


both = pytest.mark.parametrize(("route", "member"), [("register", "table-uuid"), ("register-view", "view-uuid")])


@both
def test_it_keeps_the_uuid_of_its_file_and_its_owner_and_gets_an_id(
    lake: Lake, files: dict[str, str], route: str, member: str, grant: Grant
) -> None:
    grant("maker", "create")
    told = register(lake.as_user("maker"), route, files[route]).json()
    row = Tabular.objects.get()
    assert str(row.uuid) == told["metadata"][member]
    assert row.id != row.uuid
    assert row.name == "Again"
    owner = GrantRow.objects.get(object_id=str(row.id))
    assert (owner.principal_id, owner.privilege) == ("oidc~engine", "ownership")


@both
def test_a_repeated_register_is_answered_as_the_first(
    lake: Lake, files: dict[str, str], route: str, member: str, recorded: Recorded
) -> None:
    key = {"idempotency-key": str(uuid.uuid4())}
    first, second = (register(lake, route, files[route], headers=key) for _ in range(2))
    assert (first.status, first.body) == (second.status, second.body)
    assert len(recorded()) == 1


def test_a_repeated_overwrite_is_answered_with_the_new_table(lake: Lake, recorded: Recorded) -> None:
    file = lake.create_table("again", properties={"old": "1"}).json()["metadata-location"]
    lake.commit("again", set_properties(new="2"))
    replaced = str(Tabular.objects.get().uuid)
    before = recorded()
    key = {"idempotency-key": str(uuid.uuid4())}

    first, second = (register(lake, "register", file, overwrite=True, headers=key) for _ in range(2))

    assert (first.status, first.body) == (200, second.body)
    assert recorded() == [*before, "dropTable", "registerTable"]
    assert lake.client.get(lake.namespace("sales", "tables")).json()["identifiers"][0]["name"] == "Again"
    dropped, registered = OutboxEvent.objects.order_by("-sequence")[:2][::-1]
    now = str(Tabular.objects.get().uuid)
    assert (dropped.object_id, dropped.data["replaced-by"], registered.object_id) == (replaced, now, now)


def test_an_overwritten_table_hands_its_owner_and_its_grants_on(lake: Lake) -> None:
    file = lake.create_table("again").json()["metadata-location"]
    GrantRow.objects.create(
        principal_id="oidc~guest",
        object_type="table",
        object_id=str(Tabular.objects.get().id),
        privilege="select",
        granted_by="oidc~engine",
    )
    assert register(lake, "register", file, overwrite=True).status == 200
    now = str(Tabular.objects.get().id)
    kept = GrantRow.objects.filter(object_type="table").values_list("principal_id", "object_id", "privilege")
    assert sorted(kept) == [("oidc~engine", now, "ownership"), ("oidc~guest", now, "select")]


def test_a_name_that_cannot_be_is_refused_before_its_file_is_read(lake: Lake, files: dict[str, str]) -> None:
    for route, file in files.items():
        for name in ("", "x" * 256, "a\x00"):
            body = {"name": name, "metadata-location": file}
            answer = lake.client.post(lake.namespace("sales", route), body)
            assert answer.error() == (400, "IllegalArgumentException")
            assert "name" in answer.message()


def test_register_view_needs_the_right_to_create_views(lake: Lake, files: dict[str, str], grant: Grant) -> None:
    grant("writer", "modify")
    assert register(lake.as_user("writer"), "register-view", files["register-view"]).error()[0] == 403
    assert register(lake.as_user("stranger"), "register-view", files["register-view"]).error()[0] == 404
    assert not Tabular.everything.exists()
