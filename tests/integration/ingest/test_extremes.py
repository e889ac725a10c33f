"""Numbers at the ends of what 64 bits hold, and content that the database refuses: they disturb nobody else."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from catalog.models import Namespace
from ingest.services.appender import BATCHES, Item
from ingest.services.log import Verdict
from ingest.services.statements import Unstorable
from ingest.services.targets import Place, Target
from tenants.models import Warehouse
from tests.integration.ingest.batches import batch as made
from tests.integration.ingest.batches import logged, open_source, run, unchanged
from tests.integration.ingest.messages import batch, connect
from tests.servers.asgi_socket import opened

pytestmark = pytest.mark.usefixtures("lake")

LAST = 2**63 - 1
FIRST = -(2**63)


def test_the_last_number_of_a_source_is_stored_and_repetitions_recognised(lake: Warehouse) -> None:
    with opened() as socket:
        socket.ask(connect(lastAckSequence=LAST - 1))
        answers = [socket.ask(batch(LAST)) for _ in range(2)]
    assert [each.get("status") for each in answers] == ["ok", "duplicate"], answers
    assert [row[2] for row in logged(lake.id)] == [LAST]


def test_a_source_may_begin_with_the_first_number(lake: Warehouse) -> None:
    with opened() as socket:
        answers = [socket.ask(batch(number)) for number in (FIRST, FIRST, FIRST + 1)]
    assert [each.get("status") for each in answers] == ["ok", "duplicate", "ok"], answers


@pytest.mark.parametrize(("known", "number"), [(FIRST, LAST), (LAST, FIRST), (-5, LAST), (5, FIRST)])
def test_the_widest_jumps_are_told(known: int, number: int) -> None:
    with opened() as socket:
        socket.ask(connect(lastAckSequence=known))
        answer = socket.ask(batch(number))
    assert answer["reason"] == "invalid_sequence", answer


@pytest.mark.parametrize("number", [2**64, 10**300, 1e300])
def test_a_number_beyond_64_bits_is_not_valid(number: float) -> None:
    with opened() as socket:
        answer = socket.ask(json.dumps(batch(1) | {"sequenceNumber": number}))
    assert (answer["reason"], answer["shouldRetry"]) == ("invalid_format", False), answer


def test_a_value_that_the_database_refuses_fails_alone(lake: Warehouse) -> None:
    """It shares a statement with a batch of somebody else."""
    decided = run(unchanged(lake.id))
    namespace = Namespace.objects.get()
    target = Target({}, Place(namespace.id, namespace.path_key, "users", None), decided.epoch, lake.project_id)

    async def both() -> list[Any]:
        items = [replace(made(1, principal="oidc~a"), tables="{"), made(1, principal="oidc~b")]
        appending = [BATCHES.append(lake.id, Item(each, (target,))) for each in items]
        return await asyncio.gather(*appending, return_exceptions=True)

    for principal in ("oidc~a", "oidc~b"):
        run(open_source(lake.id, source_id="s", principal=principal))
    refused, stored = run(both())
    assert isinstance(refused, Unstorable)
    assert stored.verdict is Verdict.APPENDED
