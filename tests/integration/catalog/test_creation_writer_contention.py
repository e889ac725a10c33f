"""Creations on the event loop, while others create, change or lock the same objects."""

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from catalog.models import Namespace, Tabular
from catalog.services import namespaces, tables
from catalog.services.tables import CreateTable
from lakewarden.errors import AlreadyExists
from lakewarden.idempotency.models import IdempotencyRecord
from tenants.models import Warehouse
from tenants.services import projects
from tests.integration.catalog.creating import (
    TAKES_ORDERS,
    Into,
    Top,
    body,
    create_together,
    elsewhere,
    files,
    key,
    namespace,
    table,
)
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.observed import eventually


def test_of_two_creations_of_one_name_one_wins_and_the_other_is_left_to_the_ordinary_path(
    into: Into, base: Path
) -> None:
    sales = into()
    before = files(base)
    made = create_together(table(sales, "orders"), table(sales, "Orders"), table(sales, "bills"))
    assert sorted(each is not None for each in made) == [False, True, True]
    assert Tabular.objects.filter(name_key="orders").count() == 1
    with pytest.raises(AlreadyExists):
        tables.create(tables.plan(sales, CreateTable(name="orders"), body("orders")))
    eventually(lambda: len(files(base) - before) == 2)


def test_of_two_creations_of_one_namespace_one_wins(top: Top) -> None:
    made = create_together(namespace(top(), "one"), namespace(top(), "ONE"), namespace(top(), "two"))
    assert sorted(each is not None for each in made) == [False, True, True]
    assert Namespace.objects.filter(name_key="one").count() == 1


@pytest.mark.parametrize("change", ["renamed", "dropped", "another right", "inactive", "other properties"])
def test_what_changed_since_the_decision_is_left_to_the_ordinary_path(
    lake: Lake, admin: Any, into: Into, base: Path, change: str
) -> None:
    lake.create_namespace("other")
    sales, other = into("sales"), into("other")
    match change:
        case "renamed":
            path = f"/management/v1/warehouse/{lake.warehouse_id}/namespace/{sales.target.id}/move"
            assert admin.post(path, {"destination": ["else"]}).status == 200
        case "dropped":
            lake.client.delete(lake.namespace("sales", recursive="true"))
        case "another right":
            projects.bump_epoch(sales.target.warehouse.project_id)
        case "inactive":
            Warehouse.objects.update(status="inactive")
        case "other properties":
            answer = lake.client.post(lake.namespace("sales", "properties"), {"updates": {"a": "b"}})
            assert answer.status == 200
    there = files(base)
    in_sales, inner, in_other = create_together(
        table(sales, "orders"), namespace(sales, "sales", "in"), table(other, "orders")
    )
    assert (in_sales, inner) == (None, None)
    is_project_wide = change != "other properties"  # a change of rights counts for the whole project
    assert (in_other is None) == is_project_wide
    eventually(lambda: len(files(base) - there) == (0 if is_project_wide else 1))


HOLDS = {
    "the namespace's row": "select 1 from namespace where path_key = 'sales' for no key update",
    "the tree": "select pg_advisory_xact_lock({lock}, {tree})",
}


@pytest.mark.parametrize("held", HOLDS)
def test_a_creation_does_not_wait_for_a_namespace_that_another_process_changes(
    lake: Lake, into: Into, held: str
) -> None:
    lake.create_namespace("other")
    sales, other = into("sales"), into("other")
    tree = namespaces.tree_of(sales.target.warehouse_id)
    with elsewhere(HOLDS[held].format(lock=namespaces.TREE_LOCK, tree=tree)):
        in_sales, inner, in_other = create_together(
            table(sales, "orders"), namespace(sales, "sales", "inner"), table(other, "orders")
        )
    assert (in_sales, inner) == (None, None)
    assert (in_other is not None) == (held == "the namespace's row")
    assert all(create_together(table(sales, "orders")))


def test_a_batch_with_a_name_that_another_process_is_taking_is_left_to_the_ordinary_path(
    into: Into, base: Path
) -> None:
    """Each takes the ordinary path, where only the creation with this name waits."""
    sales = into()
    before = files(base)
    with elsewhere(TAKES_ORDERS):
        orders, bills = create_together(table(sales, "orders"), table(sales, "bills"))
    assert orders is None
    # its file may have been written so late that it was added by a statement of its own
    eventually(lambda: len(files(base) - before) == (0 if bills is None else 1))


def test_a_key_that_was_used_excludes_only_its_own_creation(into: Into, top: Top) -> None:
    used, fresh = key(), key()
    assert all(create_together(table(into("sales", used), "orders")))
    again = replace(used, attempt=uuid.uuid4())
    made = create_together(
        table(into("sales", again), "bills"), table(into("sales", fresh), "customers"), table(into(), "parts")
    )
    assert [each is not None for each in made] == [False, True, True]
    assert create_together(namespace(top(again), "again")) == [None]
    assert IdempotencyRecord.objects.count() == 2
    assert IdempotencyRecord.objects.get(key=fresh.key).object_id == str(Tabular.objects.get(name="customers").uuid)


def test_a_key_twice_at_once_creates_one_object(into: Into, base: Path) -> None:
    twice = key()
    into()
    before = files(base)
    made = create_together(
        table(into("sales", twice), "orders"),
        table(into("sales", replace(twice, attempt=uuid.uuid4())), "bills"),
        table(into(), "parts"),
    )
    assert made[2] is not None
    assert sum(each is not None for each in made) == 2
    assert IdempotencyRecord.objects.count() == 1
    eventually(lambda: len(files(base) - before) == 2)
