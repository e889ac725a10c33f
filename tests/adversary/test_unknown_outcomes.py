"""The database fails during a commit: no answer claims that nothing was changed if something was or may have been."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.base import DatabaseWrapper

from lakewarden import asgi
from tests.integration.catalog.lake import Lake, set_properties
from tests.servers.asgi_client import Answer, AsgiClient

Change = Callable[[Lake, dict[str, str]], Answer]

CHANGES: dict[str, Change] = {
    "commit": lambda lake, headers: lake.client.post(
        lake.table("orders"), {"requirements": [], "updates": [set_properties(a="b")]}, headers=headers
    ),
    "create": lambda lake, headers: lake.client.post(
        lake.namespace("sales", "tables"),
        {"name": "fresh", "schema": {"type": "struct", "fields": []}},
        headers=headers,
    ),
    "namespace": lambda lake, headers: lake.client.post(
        f"/catalog/v1/{lake.warehouse_id}/namespaces", {"namespace": ["fresh"]}, headers=headers
    ),
    "drop": lambda lake, headers: lake.client.delete(lake.table("orders"), headers=headers),
}


@pytest.fixture(params=CHANGES)
def change(lake: Lake, request: pytest.FixtureRequest) -> Change:
    assert lake.create_table("orders").status == 200
    return CHANGES[request.param]


@pytest.mark.parametrize("keyed", [True, False], ids=["with a key", "without"])
def test_a_commit_whose_answer_is_cut_off_is_of_unknown_outcome(
    lake: Lake, change: Change, monkeypatch: pytest.MonkeyPatch, *, keyed: bool
) -> None:
    """Rights: `modify` on the warehouse; the database's session ends during the commit, on the path through Django."""
    monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    headers = {"idempotency-key": str(uuid4())} if keyed else {}
    commit: Callable[[Any], None] = vars(BaseDatabaseWrapper)["_commit"]

    connect: Callable[[Any], None] = vars(BaseDatabaseWrapper)["connect"]
    cut: list[DatabaseWrapper] = []

    def commit_and_cut(wrapper: DatabaseWrapper) -> None:
        commit(wrapper)
        cut.append(wrapper)
        wrapper.connection.close()
        raise OperationalError("the connection is lost")

    def is_away(wrapper: DatabaseWrapper) -> None:
        if cut:
            raise OperationalError("the database is away")
        connect(wrapper)

    with monkeypatch.context() as patch:
        patch.setattr(DatabaseWrapper, "_commit", commit_and_cut)
        patch.setattr(DatabaseWrapper, "connect", is_away)
        answer = change(lake, headers)
    assert answer.error() == (500, "CommitStateUnknownException")
    assert "retry-after" not in answer.headers
    if keyed:
        before = _rows()
        again = change(lake, headers)
        assert again.status in {200, 204}, again.body
        assert _rows() == before, "it was applied once"


MANAGED = {
    "role": ("role", {"name": "readers"}),
    "project": ("project", {"project-name": "other"}),
    "user": ("user", {"id": "oidc~ann", "name": "Ann", "user-type": "human"}),
}


@pytest.mark.parametrize("kind", MANAGED)
def test_a_database_that_goes_after_the_commit_does_not_make_it_undone(
    lake: Lake, admin: AsgiClient, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Rights: administrator; the session ends between the commit and the queries after it."""
    commit: Callable[[Any], None] = vars(BaseDatabaseWrapper)["_commit"]
    before = _rows()

    def commit_and_lose(wrapper: DatabaseWrapper) -> None:
        commit(wrapper)
        wrapper.connection.close()

    path, body = MANAGED[kind]
    with monkeypatch.context() as patch:
        patch.setattr(DatabaseWrapper, "_commit", commit_and_lose)
        answer = admin.post(f"/management/v1/{path}", body)
    assert answer.status == 201 or answer.error() == (500, "CommitStateUnknownException"), answer.body
    assert len(_rows()) == len(before) + 1, "it was done once"


def _rows() -> list[Any]:
    """Every change that was recorded."""
    with connection.cursor() as cursor:
        cursor.execute("select id from audit_entry where outcome = 'done' order by id")
        return list(cursor.fetchall())
