from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ingest.client import FixedToken, IngestClient
from ingest.client.messages import Ack
from ingest.client.retries import Backoff
from tests.integration.ingest_client.clients import Connected
from tests.servers import paper_gateway
from tests.servers.paper_gateway import TOKEN, PaperGateway


@pytest.fixture
def gateway() -> Iterator[PaperGateway]:
    with paper_gateway.start() as started:
        yield started


@pytest.fixture
def acks() -> list[Ack]:
    return []


@pytest.fixture
def client_of(gateway: PaperGateway, acks: list[Ack]) -> Iterator[Connected]:
    with ExitStack() as stack:

        def connected(**changes: object) -> IngestClient:
            options = {"source": "orders-1", "token": FixedToken(TOKEN), "on_ack": acks.append}
            options["backoff"] = Backoff(first_s=0.01, longest_s=0.05, give_up_s=20)
            client = IngestClient(gateway.address, **{**options, **changes})  # type: ignore[arg-type]
            stack.callback(client.close)
            return client

        yield connected
