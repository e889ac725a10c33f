"""The storage or the database fails in the middle: the answer is correct, and no change is half applied."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.base import DatabaseWrapper

from catalog.models import Tabular
from catalog.services import pointer
from lakewarden import asgi
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import Recorded
from tests.integration.catalog.observed import local as path_of
from tests.servers.asgi_client import Answer

Change = Callable[[Lake], Answer]

CHANGES: dict[str, Change] = {
    "create table": lambda lake: lake.create_table("fresh"),
    "commit table": lambda lake: lake.commit("orders", set_properties(a="b")),
    "create view": lambda lake: lake.create_view("fresh"),
    "commit view": lambda lake: lake.client.post(lake.view("report"), {"updates": [set_properties(a="b")]}),
}
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


@pytest.fixture
def filled(lake: Lake) -> Lake:
    lake.create_table("orders")
    lake.create_view("report")
    return lake


def state(base: Path) -> tuple[Any, ...]:
    """Every row and every file."""
    return list(Tabular.everything.order_by("id").values()), sorted(base.rglob("*.*"))


@each_change
def test_a_full_disk_changes_nothing(
    filled: Lake, base: Path, change: Change, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = state(base)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        answer = change(filled)
    assert answer.error() == (503, "ServiceUnavailableException")
    assert answer.headers["retry-after"]
    assert "nothing was changed" in answer.message()
    assert "No space left" in answer.message()
    assert state(base) == before
    assert recorded() == []
    assert change(filled).status == 200


def test_a_folder_that_cannot_be_made_changes_nothing(lake: Lake, base: Path, recorded: Recorded) -> None:
    told = lake.create_table("orders").json()
    folder = path_of(told["metadata-location"]).parent
    folder.rename(folder.with_name("away"))
    folder.write_bytes(b"a file where the folder was")
    answer = lake.commit("orders", set_properties(a="b"))
    assert answer.error() == (503, "ServiceUnavailableException")
    assert recorded() == ["createTable"]


@each_change
def test_a_database_that_goes_inside_the_transaction_changes_nothing(
    filled: Lake, base: Path, change: Change, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object, **__: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("select pg_terminate_backend(pg_backend_pid())")

    before = state(base)
    with monkeypatch.context() as patch:
        patch.setattr(asgi, "HOT_ROUTES", [])
        patch.setattr(pointer, "record", die)
        answer = change(filled)
    assert answer.error() == (503, "ServiceUnavailableException")
    assert answer.headers["retry-after"]
    assert "nothing was changed" in answer.message()
    assert state(base) == before
    assert recorded() == []
    assert change(filled).status == 200


@each_change
@pytest.mark.parametrize("applied", [True, False], ids=["applied", "not applied"])
def test_a_database_that_goes_during_the_commit_leaves_the_outcome_open_and_the_file_there(
    filled: Lake, base: Path, change: Change, monkeypatch: pytest.MonkeyPatch, *, applied: bool
) -> None:
    commit: Callable[[DatabaseWrapper], None] = vars(BaseDatabaseWrapper)["_commit"]

    def commit_and_lose_the_answer(wrapper: DatabaseWrapper) -> None:
        if applied:
            commit(wrapper)
        raise OperationalError("the connection is lost")

    rows, files = state(base)
    with monkeypatch.context() as patch:
        patch.setattr(asgi, "HOT_ROUTES", [])
        patch.setattr(DatabaseWrapper, "_commit", commit_and_lose_the_answer)
        answer = change(filled)
    assert answer.error() == (500, "CommitStateUnknownException")
    assert "retry-after" not in answer.headers
    rows_now, files_now = state(base)
    assert (rows_now != rows) is applied
    (written,) = set(files_now) - set(files)
    if applied:
        assert f"file://{written}" in {row["metadata_location"] for row in rows_now}


def test_connections_that_were_cut_are_made_anew(filled: Lake) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity "
            "where pid <> pg_backend_pid() and datname = current_database()"
        )
    assert filled.client.get(filled.table("orders")).status == 200
    assert filled.commit("orders", set_properties(a="b")).status == 200


def test_a_defect_tells_nothing_of_itself(filled: Lake, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret details")

    before, _ = state(base)
    with monkeypatch.context() as patch:
        patch.setattr(asgi, "HOT_ROUTES", [])
        patch.setattr(pointer, "record", defect)
        answer = CHANGES["commit view"](filled)  # in Django's transaction: commits of tables do not go through it
    assert answer.error() == (500, "InternalServerError")
    assert "secret" not in answer.message()
    assert answer.headers["x-request-id"] in answer.message()
    assert state(base)[0] == before
