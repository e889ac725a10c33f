"""What an upgrade makes of tables and views whose uuid was not their id, or not theirs alone."""

import importlib
import shutil
from collections.abc import Iterator
from uuid import UUID

import pytest
from django.db import connection

from catalog.models import Deletion, Tabular
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import local
from tests.integration.catalog.registering import register
from tests.servers.asgi_client import AsgiClient

API = "/management/v1"
UNIQUE = "tabular_uuid_unique"


def sql(statement: str, *parameters: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)


@pytest.fixture
def before(lake: Lake) -> Iterator[None]:
    """A database of the release before: uuids may be there several times."""
    sql(f"alter table tabular drop constraint {UNIQUE}")
    yield
    sql("truncate tabular cascade")
    sql(f"alter table tabular add constraint {UNIQUE} unique (warehouse_id, uuid)")


def upgrade() -> None:
    migration = importlib.import_module("catalog.migrations.0013_one_id")
    for statement in (migration.SEPARATE, migration.TELL_DELETIONS):
        sql(statement)
    sql(importlib.import_module("lakewarden.tasks.migrations.0005_entities_by_uuid").TELL)


def copied(lake: Lake, name: str) -> UUID:
    """A table registered from a copy of the files of `orders`, as the release before allowed; returns its key."""
    told = lake.load("orders")
    source, uuid = local(told["metadata"]["location"]), told["metadata"]["table-uuid"]
    target = source.with_name(name)
    shutil.copytree(source, target)
    file = target / local(told["metadata-location"]).relative_to(source)
    text = file.read_text().replace(str(source), str(target))
    file.write_text(text.replace(uuid, "00000000-0000-4000-8000-" + f"{abs(hash(name)) % 10**12:012d}"))
    assert register(lake, name, f"file://{file}").status == 200
    sql("update tabular set uuid = %s where name = %s", uuid, name)
    return Tabular.objects.get(name=name).id


@pytest.mark.usefixtures("before")
def test_of_several_with_one_uuid_the_oldest_keeps_it_and_the_others_their_id(lake: Lake, admin: AsgiClient) -> None:
    lake.create_table("orders")
    uuid = Tabular.objects.get(name="orders").uuid
    second, third = copied(lake, "second"), copied(lake, "third")
    upgrade()
    found = dict(Tabular.objects.values_list("name", "uuid"))
    assert found == {"orders": uuid, "second": second, "third": third}
    for name, identifier in found.items():
        path = f"{API}/warehouse/{lake.warehouse_id}/table/{identifier}/protection"
        assert admin.get(path).status == 200
        assert lake.commit(name, set_properties(a="b")).status == 200
    assert dict(Tabular.objects.values_list("name", "uuid")) == found


@pytest.mark.usefixtures("before")
def test_a_living_one_keeps_it_before_a_dropped_one(lake: Lake, admin: AsgiClient) -> None:
    place = f"{API}/warehouse/{lake.warehouse_id}"
    admin.post(f"{place}/delete-profile", {"delete-profile": {"type": "soft", "expiration-seconds": 3600}})
    lake.create_table("orders")
    uuid, key = Tabular.objects.values_list("uuid", "id").get(name="orders")
    copied(lake, "second")
    assert lake.client.delete(lake.table("orders")).status == 204
    upgrade()
    assert dict(Tabular.everything.values_list("name", "uuid")) == {"orders": key, "second": uuid}
    assert [each["id"] for each in admin.get(f"{place}/deleted-tabulars").json()["tabulars"]] == [str(key)]


@pytest.mark.usefixtures("before")
def test_an_id_that_is_anothers_uuid_is_not_given(lake: Lake) -> None:
    lake.create_table("orders")
    second = copied(lake, "second")
    lake.create_table("chosen")
    sql("update tabular set uuid = %s where name = 'chosen'", str(second))
    upgrade()
    found = dict(Tabular.objects.values_list("name", "uuid"))
    assert found["chosen"] == second
    assert len(set(found.values())) == 3


@pytest.mark.usefixtures("before")
def test_what_is_dropped_is_restored_under_its_new_id(lake: Lake, admin: AsgiClient) -> None:
    place = f"{API}/warehouse/{lake.warehouse_id}"
    admin.post(f"{place}/delete-profile", {"delete-profile": {"type": "soft", "expiration-seconds": 3600}})
    lake.create_table("orders")
    assert lake.client.delete(lake.table("orders")).status == 204
    row = Tabular.everything.get()
    # as the release before wrote it
    Deletion.objects.update(object_id=row.id)
    sql("update task set entity_id = %s", str(row.id))
    upgrade()
    entities = {"entities": [{"type": "table", "table-id": str(row.uuid)}]}
    (task,) = admin.post(f"{place}/task/list", entities).json()["tasks"]
    cancel = {"action": {"action-type": "cancel"}, "task-ids": [task["task-id"]]}
    assert admin.post(f"{place}/task/control", cancel).status == 204
    assert lake.load("orders")["metadata"]["table-uuid"] == str(row.uuid)
