"""What somebody with few rights can take from others, see of them, or go on doing when the rights are gone."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from catalog.access import tabular_chain
from catalog.models import Tabular
from ingest.api import sockets
from ingest.models import IngestConnection, IngestFlushRequest
from ingest.services import flushes
from lakewarden import config
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from tenants.models import Warehouse
from tenants.services import projects
from tests.installation import ADMIN, Grant
from tests.integration.ingest.batches import run
from tests.integration.ingest.changed import create_table, limits, revoke
from tests.integration.ingest.messages import batch, connect, event
from tests.integration.ingest.pipelines import answering, pipeline
from tests.servers.asgi_client import AsgiClient
from tests.servers.asgi_socket import Refused, opened

pytestmark = pytest.mark.usefixtures("lake")

FLUSH = {"type": "flush_request", "correlationId": "f", "reason": "manual"}
RESULT: dict[str, Any] = {
    "batchesFlushed": 1,
    "eventsFlushed": 2,
    "bytesWritten": 3,
    "paths": ["s3://lake/default/secret/a.parquet"],
}


@pytest.fixture
def writer(lake: Warehouse, engine: AsgiClient) -> AsgiClient:
    """May write the table `users`, and sees nothing else."""
    create_table(engine, lake, "users")
    right = (PrincipalId("oidc~writer"), Privilege("modify"))
    ledger.give(tabular_chain(Tabular.objects.get(name="users")), [right], granted_by=ADMIN)
    projects.bump_epoch(lake.project_id)
    return engine.as_user("writer")


def test_a_flush_names_no_files_to_who_does_not_see_all_tables(
    lake: Warehouse, engine: AsgiClient, writer: AsgiClient
) -> None:
    pipeline(lake)
    with opened("writer") as socket, answering(**RESULT):
        assert socket.ask(batch(1))["status"] == "ok"
        by_socket = socket.ask(FLUSH)["result"]
        by_request = [each.post("/lakehouse/flush").json() for each in (writer, engine)]
    assert [(each["eventsFlushed"], each["paths"]) for each in (by_socket, *by_request)] == [
        (2, []),
        (2, []),
        (2, RESULT["paths"]),
    ]


def test_a_failed_flush_tells_why_only_who_sees_all_tables(
    lake: Warehouse, engine: AsgiClient, writer: AsgiClient
) -> None:
    pipeline(lake)
    with opened("writer") as socket, answering("failed", error="default.secret cannot be written"):
        assert socket.ask(batch(1))["status"] == "ok"
        hidden, shown = (each.post("/lakehouse/flush").json() for each in (writer, engine))
    assert not hidden["success"]
    assert "secret" not in hidden["error"]
    assert shown["error"] == "default.secret cannot be written"


def test_an_open_socket_of_who_may_not_use_the_warehouse_any_more_says_nothing(
    lake: Warehouse, engine: AsgiClient, grant: Grant
) -> None:
    create_table(engine, lake, "users")
    grant("reader", "select")
    pipeline(lake)
    with opened("reader") as socket, answering(**RESULT):
        assert socket.ask(connect())["type"] == "status"
        revoke(lake, "reader", "select")
        answers = [socket.ask(message) for message in (connect(), FLUSH)]
    assert [(each["type"], each["reason"]) for each in answers] == [("nack", "invalid_format")] * 2
    assert {each["errorMessage"] for each in answers} == {f"Warehouse does not exist: {lake.id}"}
    assert answers[1]["correlationId"] == "f"
    assert not IngestFlushRequest.objects.exists()


def test_a_reader_cannot_take_all_sources_or_new_sockets_of_a_warehouse(
    grant: Grant, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits(monkeypatch, max_sources_per_caller=1)
    monkeypatch.setattr(sockets._OPENINGS, "_rate", 0.01)
    monkeypatch.setattr(sockets._OPENINGS, "_burst", 2)
    grant("reader", "select")
    with opened("reader") as first, opened("reader") as second:
        answers = [socket.ask(connect(name)) for socket, name in ((first, "a"), (second, "b"))]
    with pytest.raises(Refused) as refused, opened("reader"):
        pass
    assert refused.value.status == 429
    with opened() as socket:
        assert socket.ask(batch(1))["status"] == "ok"
    assert [each["type"] for each in answers] == ["status", "nack"]
    assert "at most 1 of a caller" in answers[1]["errorMessage"]


def test_flushes_of_many_callers_share_one(
    lake: Warehouse, engine: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each would ask the database again and again while it waits."""
    limits(monkeypatch, flush_timeout_s=0.5)
    engine.post("/lakehouse/cdc", {"events": [event(1)]})
    pipeline(lake)
    asked: list[Any] = []
    flush = flushes._flushed

    async def counted(*given: Any) -> dict[str, Any]:
        asked.append(given)
        return await flush(*given)

    monkeypatch.setattr(flushes, "_flushed", counted)

    async def many() -> list[dict[str, Any]]:
        return await asyncio.gather(*(flushes.flush(lake.id, requested_by=f"oidc~{name}") for name in range(50)))

    assert {each["success"] for each in run(many())} == {False}
    assert len(asked) <= 4


@pytest.mark.parametrize(
    "limit",
    [
        ("connections_per_caller", 1, "at most 1 of one caller in a warehouse are allowed"),
        ("connections_per_warehouse", 2, "at most 2 of one warehouse are allowed"),
        ("connections_per_project", 3, "at most 3 of one project are allowed"),
    ],
)
def test_a_caller_or_a_tenant_cannot_take_all_sockets_from_many_addresses(
    lake: Warehouse, other: Warehouse, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int, str]
) -> None:
    """Those of all servers count, but for dead ones."""
    setting, most, told = limit
    monkeypatch.setattr(sockets, "_settings", config.current().ingest.model_copy(update={setting: most}))
    now = datetime.now(UTC)
    for number, (warehouse, until) in enumerate([(lake, -1), (lake, 60), (other, 60)]):
        IngestConnection.objects.create(
            id=uuid4(), warehouse=warehouse, server=uuid4(), address=f"10.0.0.{number}", principal=f"oidc~{number}",
            source_id="s", until=now + timedelta(seconds=until),
        )  # fmt: skip
    path = f"/lakehouse/w/{lake.name}/ws"
    with (
        opened(path=path, address="10.1.0.1"),
        pytest.raises(Refused) as refused,
        opened(path=path, address="10.1.0.2"),
    ):
        pass
    assert (refused.value.status, json.loads(refused.value.body)["error"]["message"]) == (
        429,
        f"Too many connections: {told}",
    )
    assert IngestConnection.objects.count() == 3
