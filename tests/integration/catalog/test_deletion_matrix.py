"""Every kind of drop (soft, protected, recursive, force, purge): its status, and the rows, tasks and files that remain."""

from itertools import product
from typing import Any, NamedTuple

import pytest
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from catalog.models import Deletion, Namespace, Tabular
from lakewarden.authz.ledger.models import Grant
from tenants.models import Warehouse
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.observed import Recorded, local
from tests.servers.asgi_client import AsgiClient


class Row(NamedTuple):
    """`protected`: the table that is dropped, or that lies in the namespace; `purge`: what the request says of files."""

    soft: bool
    protected: bool
    recursive: bool
    force: bool
    purge: bool | None

    @property
    def query(self) -> dict[str, str]:
        asked = {"recursive": self.recursive or None, "force": self.force or None, "purgeRequested": self.purge}
        return {name: str(value).lower() for name, value in asked.items() if value is not None}


class Left(NamedTuple):
    """`live`, `kept`: whether rows are there for everybody, or to be restored; `purges`: when files go, else None."""

    status: int
    live: bool
    kept: bool
    purges: str | None


ROWS = [
    Row(*values) for values in product([False, True], [False, True], [False, True], [False, True], [None, True, False])
]
AT_ONCE, LATER = "at once", "later"
_FILES = {None: LATER, True: AT_ONCE, False: None}


def of_table(row: Row) -> Left:
    """What has to happen when the table itself is dropped."""
    if row.protected and not row.force:
        return Left(409, live=True, kept=False, purges=None)
    if row.soft and not row.force:
        return Left(204, live=False, kept=True, purges=None)
    return Left(204, live=False, kept=False, purges=_FILES[row.purge])


def of_namespace(row: Row) -> Left:
    """What has to happen when the namespace around it is dropped."""
    if not row.recursive:
        return Left(409, live=True, kept=False, purges=None)
    return of_table(row)


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    found = Lake(admin, str(warehouse.id))
    found.create_namespace("sales")
    found.create_namespace("sales", "eu")
    found.create_table("orders", within=("sales", "eu"))
    return found


def arrange(lake: Lake, row: Row) -> None:
    place = f"/management/v1/warehouse/{lake.warehouse_id}"
    profile = {"type": "soft", "expiration-seconds": 3600} if row.soft else {"type": "hard"}
    assert lake.client.post(f"{place}/delete-profile", {"delete-profile": profile}).status == 200
    if row.protected:
        table = Tabular.objects.get().uuid
        assert lake.client.post(f"{place}/table/{table}/protection", {"protected": True}).status == 200


def purges() -> str | None:
    """When the files go that are to be removed."""
    jobs = list(ProcrastinateJob.objects.filter(queue_name="tabular_purge"))
    return None if not jobs else LATER if jobs[0].scheduled_at else AT_ONCE


def check(left: Left, *, files: Any, dropped: str, recorded: list[str]) -> None:
    tabular = Tabular.everything.filter(name="orders").first()
    assert (tabular is not None and tabular.deleted_at is None) == left.live
    assert (tabular is not None and tabular.deleted_at is not None) == left.kept
    assert purges() == left.purges
    assert files.exists(), "no request removes files itself"
    assert Deletion.objects.count() == left.kept
    assert ProcrastinateJob.objects.filter(queue_name="soft_deletion").count() == left.kept
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from task")
        assert cursor.fetchone() == (left.kept + (left.purges is not None),)
    assert Grant.objects.filter(object_type="table").exists() == (left.live or left.kept)
    assert (dropped in recorded) == (left.status == 204)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.recursive], ids=str)
def test_a_table_is_dropped(lake: Lake, row: Row, recorded: Recorded) -> None:
    arrange(lake, row)
    files = local(lake.load("orders", within=("sales", "eu"))["metadata-location"])
    left = of_table(row)
    answer = lake.client.delete(lake.table("orders", within=("sales", "eu"), **row.query))
    assert answer.status == left.status, answer.body
    check(left, files=files, dropped="dropTable", recorded=recorded())
    assert Namespace.objects.count() == 2


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_namespace_is_dropped(lake: Lake, row: Row, recorded: Recorded) -> None:
    arrange(lake, row)
    files = local(lake.load("orders", within=("sales", "eu"))["metadata-location"])
    left = of_namespace(row)
    answer = lake.client.delete(lake.namespace("sales", **row.query))
    assert answer.status == left.status, answer.body
    told = recorded()
    check(left, files=files, dropped="dropTable", recorded=told)
    assert told.count("dropNamespace") == (2 if left.status == 204 else 0)
    assert Namespace.objects.count() == (2 if left.live else 0)
    assert Namespace.everything.count() == (2 if left.live or left.kept else 0)
    assert Grant.objects.filter(object_type="namespace").exists() == (left.live or left.kept)
