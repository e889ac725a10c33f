"""What a pipeline leaves in the database: its sign of life, and answers to flushes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from ingest.models import IngestPipeline
from tenants.models import Warehouse


def pipeline(lake: Warehouse, *, state: str = "idle") -> None:
    IngestPipeline.objects.create(
        warehouse_id=lake.id, instance="p", heartbeat_at=datetime.now(UTC), state=state, freshness={}
    )


@contextmanager
def answering(state: str = "done", **result: Any) -> Iterator[None]:
    """The pipeline is played by a trigger: it answers each request at once."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            create function play() returns trigger language plpgsql as $$ begin
                new.state = '{state}';
                new.result = '{json.dumps(result)}';
                return new;
            end $$;
            create trigger play before insert on ingest_flush_request for each row execute function play()
            """
        )
        try:
            yield
        finally:
            cursor.execute("drop trigger play on ingest_flush_request; drop function play")
