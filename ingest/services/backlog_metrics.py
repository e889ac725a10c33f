"""What waits for the pipeline, and whether it is alive, for Prometheus."""

from collections.abc import Iterator
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from lakewarden.prepared_statements import fetch
from tenants.models import Warehouse


def collect() -> Iterator[Metric]:
    """Of each warehouse that has received change data. Raises django.db.Error."""
    families = [
        GaugeMetricFamily(f"lakewarden_ingest_{name}", meaning, labels=["project", "warehouse"])
        for name, meaning in (
            ("waiting_events", "Events that wait for the pipeline."),
            ("waiting_bytes", "Bytes that wait for the pipeline."),
            ("pipeline_silent_seconds", "Time since the pipeline's last sign of life; a year if there was none."),
        )
    ]
    backlogs = {row[0]: row[1:] for row in fetch(_BACKLOGS, [])}
    for warehouse in Warehouse.objects.filter(id__in=backlogs):
        for family, value in zip(families, backlogs[warehouse.id], strict=True):
            family.add_metric([warehouse.project_id, warehouse.name], value)
    yield from families


_BACKLOGS: Final = """
    select h.warehouse_id, h.buffered_events, h.buffered_bytes,
           coalesce(extract(epoch from now() - p.heartbeat_at), 31536000)::float8
    from ingest_log_head h left join ingest_pipeline p on p.warehouse_id = h.warehouse_id
"""
