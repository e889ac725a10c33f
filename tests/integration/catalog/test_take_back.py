"""Files of a dropped table that wait for their removal: using their location again withdraws the removal."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from procrastinate.contrib.django.models import ProcrastinateJob

from tests.integration.catalog.lake import Lake
from tests.integration.catalog.observed import local
from tests.integration.catalog.registering import register
from tests.integration.catalog.staged import commit_staged


def dropped(lake: Lake, place: str | None = None, **query: str) -> Any:
    """The last answer of the table `orders`, which was dropped."""
    lake.create_table("orders", **({} if place is None else {"location": place}))
    told = lake.load("orders")
    assert lake.client.delete(lake.table("orders", **query)).status == 204
    return told


def tasks() -> list[tuple[str | None, str | None]]:
    """Outcome and message of each."""
    with connection.cursor() as cursor:
        cursor.execute("select outcome, message from task order by id")
        return list(cursor.fetchall())


def test_registering_a_table_cancels_the_removal_of_its_files(lake: Lake) -> None:
    told = dropped(lake)
    assert register(lake, "again", told["metadata-location"]).status == 200
    assert not ProcrastinateJob.objects.exists()
    assert tasks() == [("CANCELLED", "Withdrawn: a table was created or registered there")]


def test_a_refused_register_leaves_the_removal_as_it_is(lake: Lake) -> None:
    told = dropped(lake)
    lake.create_table("taken")
    assert register(lake, "taken", told["metadata-location"]).status == 409
    local(told["metadata-location"]).unlink()
    assert register(lake, "again", told["metadata-location"]).status == 400
    assert ProcrastinateJob.objects.get().status == "todo"
    assert tasks() == [(None, None)]


def test_a_removal_that_was_asked_for_is_not_taken_back(lake: Lake) -> None:
    told = dropped(lake, purgeRequested="true")
    refused = register(lake, "again", told["metadata-location"])
    assert refused.error() == (503, "ServiceUnavailableException")
    assert ProcrastinateJob.objects.get().status == "todo"


@pytest.mark.parametrize(("status", "attempts"), [("doing", 0), ("todo", 1)])
def test_a_removal_that_has_begun_is_not_taken_back(lake: Lake, status: str, attempts: int) -> None:
    told = dropped(lake)
    with connection.cursor() as cursor:
        cursor.execute("update procrastinate_jobs set status = %s, attempts = %s", [status, attempts])
    assert register(lake, "again", told["metadata-location"]).error() == (503, "ServiceUnavailableException")
    assert tasks() == [(None, None)]


def test_only_the_removal_of_the_very_place_is_taken_back(lake: Lake, base: Path) -> None:
    told = dropped(lake, f"file://{base}/mine/inner")
    (base / "mine" / "inner").rename(base / "elsewhere")
    refused = lake.create_table("around", location=f"file://{base}/mine")
    assert refused.error() == (503, "ServiceUnavailableException")
    assert told["metadata"]["location"] == ProcrastinateJob.objects.get().lock


def test_what_is_made_in_a_place_that_is_empty_by_then_stays(lake: Lake, base: Path) -> None:
    place = f"file://{base}/mine"
    dropped(lake, place)
    assert lake.create_table("again", location=place).error() == (400, "IllegalArgumentException")
    assert ProcrastinateJob.objects.exists()
    shutil.rmtree(base / "mine")
    assert lake.create_table("again", location=place).status == 200
    assert not ProcrastinateJob.objects.exists()


def test_what_is_staged_in_such_a_place_is_safe_before_it_is_committed(lake: Lake, base: Path) -> None:
    place = f"file://{base}/mine"
    dropped(lake, place)
    shutil.rmtree(base / "mine")
    staged = lake.create_table("again", location=place, stage_create=True).json()
    assert not ProcrastinateJob.objects.exists()
    assert commit_staged(lake, "again", staged).status == 200


def test_a_table_moves_to_such_a_place_once_it_is_empty(lake: Lake, base: Path) -> None:
    place = f"file://{base}/mine"
    dropped(lake, place)
    lake.create_table("mover")
    refused = lake.commit("mover", {"action": "set-location", "location": place})
    assert refused.error() == (400, "IllegalArgumentException")
    assert ProcrastinateJob.objects.exists()
    shutil.rmtree(base / "mine")
    assert lake.commit("mover", {"action": "set-location", "location": place}).status == 200
    assert not ProcrastinateJob.objects.exists()


def test_a_view_is_made_again_where_it_lay(lake: Lake, base: Path) -> None:
    place = f"file://{base}/report"
    assert lake.create_view("report", location=place).status == 200
    assert lake.client.delete(lake.view("report")).status == 204
    assert lake.create_view("report", location=place).error() == (400, "IllegalArgumentException")
    shutil.rmtree(base / "report")
    assert lake.create_view("report", location=place).status == 200
    assert not ProcrastinateJob.objects.exists()
