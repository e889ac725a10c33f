"""Events for thousands of tables: what a process remembers of them, and what a micro-batch holds, have bounds."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from ingest.api import intake
from ingest.models import IngestBatch
from ingest.services import log
from lakewarden.fair_cache import FairCache
from pipeline.sources.postgres_log import DSN_OPTION, LogReader
from tenants.models import Warehouse
from tests.integration.ingest.batches import ROOMY, append, batch, open_source, run
from tests.integration.ingest.changed import create_table
from tests.integration.ingest.messages import batch as message
from tests.integration.ingest.messages import event
from tests.servers.asgi_client import AsgiClient
from tests.servers.asgi_socket import opened


def test_events_for_thousands_of_tables_are_stored_although_few_decisions_are_remembered(
    lake: Warehouse, engine: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of the tables are made while they are written to: then what was decided about their names is too old."""
    monkeypatch.setattr(intake, "_KNOWN", FairCache(500))
    names = [f"t{number}" for number in range(3000)]
    with opened() as socket:
        for number in range(30):
            named = names[number * 100 : number * 100 + 100]
            assert socket.ask(message(number + 1, *(event(1, table=each) for each in named)))["status"] == "ok"
        made = {name: create_table(engine, lake, name) for name in names[2600::20]}
        for number in range(30, 35):
            named = names[number * 100 - 500 : number * 100 - 400]
            socket.send(message(number + 1, *(event(2, table=each) for each in named)))
        answers = [socket.receive() for _ in range(5)]
    assert [each.get("status") for each in answers] == ["ok"] * 5, answers
    assert len(intake._KNOWN) == 500
    stored = IngestBatch.objects.order_by("position").values_list("tables", flat=True)
    assert [table["name"] for tables in stored for table in tables] == [*names, *names[2500:]]
    said = {table["name"]: table["id"] for tables in stored[30:] for table in tables if table["id"]}
    assert said == made


@pytest.mark.parametrize(
    ("most", "named", "expected"),
    [
        (
            {"max_tables": 50, "max_events": 1000},
            [range(30), range(20, 50), range(10, 40), range(50, 51), range(120), range(3), range(40)],
            [3, 4, 5, 7],
        ),
        (
            {"max_tables": 4, "max_events": 5},
            [range(2), range(2), range(2), range(1, 3), range(3, 5), range(5, 7), range(4)],
            [2, 4, 6, 7],
        ),
    ],
    ids=["tables", "tables and events"],
)
def test_a_micro_batch_ends_before_it_has_too_much(
    warehouse: Warehouse, database_url: str, most: dict[str, int], named: list[range], expected: list[int]
) -> None:
    """A single batch may have more, and the rest of what was due comes next."""
    appended(warehouse, named)
    triggers = {"events": 1, "bytes": 1, "age_s": 0, "max_bytes": 10**9, **most}
    options = {DSN_OPTION: database_url, "warehouse": str(warehouse.id), "partitions": "2"}
    reader = LogReader(options | {"triggers": json.dumps(triggers)})
    ends = []
    for _ in expected:
        ends.append(reader.latestOffset()["position"])
        run(log.mark_flushed(warehouse.id, upto=ends[-1]))
    reader.stop()
    assert ends == expected


def appended(warehouse: Warehouse, named: Sequence[range]) -> None:
    """A batch for each range of numbers, with an event for each of those tables."""

    def of(number: int, tables: range) -> log.Batch:
        said = [{"table": f"t{each}", "namespace": ["default"], "name": f"t{each}", "id": None} for each in tables]
        return replace(batch(number), events=len(tables), tables=json.dumps(said))

    async def send() -> None:
        await open_source(warehouse.id, source_id="s")
        made = [of(number, tables) for number, tables in enumerate(named, 1)]
        outcomes = await append(warehouse.id, made, capacity=ROOMY)
        assert {each.verdict for each in outcomes} == {"appended"}

    run(send())
