"""Creations on the event loop write what the ordinary path writes."""

from pathlib import Path
from typing import Any

import pytest

from catalog import access
from catalog.identifiers import NamespaceIdentifier
from catalog.models import Namespace, Tabular
from catalog.services import location_claims, namespaces, tables
from catalog.services.creation_writer.new_namespaces import Created
from catalog.services.tables import CreateTable
from lakewarden import config, quotas
from lakewarden.authz.actions import NamespaceAction
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import change_log
from lakewarden.authz.ledger.models import Change as LoggedChange
from lakewarden.context import RequestContext
from tenants.models import Warehouse
from tests.integration.catalog.creating import Into, Top, body, create_together, key, namespace, table
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.observed import eventually
from tests.integration.catalog.written_rows import new_rows, rows


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"properties": {"owner": "me", "format-version": "1"}},
        {"properties": {"write.metadata.compression-codec": "gzip"}, "partition-spec": {"fields": []}},
    ],
)
@pytest.mark.parametrize("keyed", ["with a key", ""])
def test_both_paths_of_a_table_creation_write_the_same_rows(
    lake: Lake, into: Into, keyed: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "are_logged", lambda: True)
    lake.create_namespace("other")
    ordinary, writer = into("sales", key() if keyed else None), into("other", key() if keyed else None)

    before = rows()
    tables.create(tables.plan(ordinary, CreateTable(name="orders"), body("orders", **more)))
    expected = new_rows(before, within="sales")
    before = rows()
    (made,) = create_together(table(writer, "orders", **more))

    assert made is not None
    assert new_rows(before, within="other") == expected
    assert expected.count("\n") == (5 if keyed else 4)
    stored = Tabular.objects.get(id=made.tabular.id)
    for column in ("location", "metadata_location", "uuid", "version", "name_key", "namespace_id", "warehouse_id"):
        assert getattr(made.tabular, column) == getattr(stored, column)
    assert lake.load("orders", within="other")["metadata"]["table-uuid"] == str(made.tabular.uuid)
    assert Path(stored.metadata_location.removeprefix("file://")).is_file()


@pytest.mark.parametrize("where", ["nested", "top"])
@pytest.mark.parametrize("keyed", ["with a key", ""])
def test_both_paths_of_a_namespace_creation_write_the_same_rows(into: Into, top: Top, keyed: str, where: str) -> None:
    def parent(name: str) -> tuple[Granted[Warehouse] | Granted[Namespace], tuple[str, ...]]:
        asked = key() if keyed else None
        return (into("Sales", asked), ("SALES", name)) if where == "nested" else (top(asked), (name,))

    ordinary, path = parent("first-one")
    before = rows()
    ordinary_answer = namespaces.create(ordinary, path, {"owner": "me"})
    expected = new_rows(before, within="first-one")
    writer, path = parent("other-one")
    before = rows()
    (made,) = create_together(namespace(writer, *path, owner="me"))

    assert made is not None
    assert new_rows(before, within="other-one") == expected
    assert expected.count("\n") == (4 if keyed else 3)
    found = Namespace.objects.get(name_key="other-one")
    assert made == Created(found.path, found.properties)
    assert ordinary_answer.path[:-1] == made.path[:-1]


def test_the_first_table_of_a_namespace_of_this_process_is_ordinary(lake: Lake, into: Into, top: Top) -> None:
    into()  # the warehouse's tables were counted
    assert all(create_together(namespace(top(), "fresh")))
    granted = access.namespace(
        into().context, NamespaceIdentifier.parse(lake.warehouse_id, "fresh"), NamespaceAction.CREATE_TABLE
    )
    assert all(create_together(table(granted, "orders"), table(granted, "bills")))


def test_a_folder_that_was_not_looked_at_is_looked_at_first(lake: Lake, context: RequestContext) -> None:
    """It may lie in the location of a table of an older release."""
    lake.create_namespace("fresh")
    location_claims._FREE_FOLDERS.clear()
    granted = access.namespace(
        context, NamespaceIdentifier.parse(lake.warehouse_id, "fresh"), NamespaceAction.CREATE_TABLE
    )
    assert create_together(table(granted, "orders")) == [None]
    tables.create(tables.plan(granted, CreateTable(name="orders"), body("orders")))
    assert all(create_together(table(granted, "bills")))


def test_a_quota_is_not_exceeded(lake: Lake, into: Into, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEWARDEN__QUOTAS__TABLES_IN_NAMESPACE", "30")
    config.current.cache_clear()
    try:
        sales = into()
        made = create_together(*(table(sales, f"t{number}") for number in range(40)))
        assert sum(each is not None for each in made) <= 1  # a part of what is left; the others are counted one by one
        for number in range(40):
            lake.create_table(f"more{number}")
            create_together(table(sales, f"and{number}"))
        assert Tabular.objects.count() == 30
    finally:
        monkeypatch.undo()
        config.current.cache_clear()
        quotas._rooms.clear()


def test_followers_of_the_change_log_are_called_for_the_rights_of_new_objects(
    into: Into, top: Top, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    monkeypatch.setattr(change_log, "are_logged", lambda: True)
    monkeypatch.setattr(change_log, "_followers", [lambda: told.append(LoggedChange.objects.count())])
    sales, above = into(), top()
    LoggedChange.objects.all().delete()
    told.clear()
    create_together(table(sales, "orders"), table(sales, "bills"))
    assert LoggedChange.objects.filter(relation="ownership", object_type="table").count() == 2
    # once for each batch, of which there may be two
    eventually(lambda: max(told, default=0) == 2)
    create_together(namespace(above, "new"))
    assert LoggedChange.objects.filter(relation="ownership", object_type="namespace").count() == 1
    eventually(lambda: max(told, default=0) == 3)
