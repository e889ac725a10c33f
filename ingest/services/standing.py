"""How the change data of a warehouse stands, for the console: what waits, who sends, and what the pipeline says."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from ingest.models import IngestLogHead, IngestPipeline, IngestSource
from lakewarden import config
from lakewarden.authz.interface import Granted
from tenants.models import Warehouse


@dataclass(frozen=True, slots=True)
class Standing:
    """`sources` are the most recently active ones; the pipeline `is_running` if it was heard of lately."""

    buffered_batches: int
    buffered_events: int
    buffered_bytes: int
    total_events: int
    flushed_at: datetime | None
    sources: list[IngestSource]
    is_running: bool
    state: str
    error: str
    freshness: dict[str, Any]


def of(granted: Granted[Warehouse], *, sources: int) -> Standing | None:
    """None: nothing was ever sent to the warehouse."""
    head = IngestLogHead.objects.filter(warehouse_id=granted.target.id).first()
    if head is None:
        return None
    rows = IngestSource.objects.filter(warehouse_id=granted.target.id).order_by("-last_activity_at")
    said = IngestPipeline.objects.filter(warehouse_id=granted.target.id).first()
    silence = None if said is None else (timezone.now() - said.heartbeat_at).total_seconds()
    return Standing(
        buffered_batches=head.buffered_batches,
        buffered_events=head.buffered_events,
        buffered_bytes=head.buffered_bytes,
        total_events=head.total_events,
        flushed_at=head.flushed_at,
        sources=list(rows[:sources]),
        is_running=silence is not None and silence <= config.current().ingest.pipeline_silence_s,
        state="" if said is None else said.state,
        error="" if said is None else said.error,
        freshness={} if said is None else said.freshness,
    )
