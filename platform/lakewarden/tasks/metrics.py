"""Background work that waits, runs or has failed, and the workers, for Prometheus."""

from collections.abc import Iterator
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from lakewarden.prepared_statements import fetch


def collect() -> Iterator[Metric]:
    """Raises django.db.Error."""
    tasks = GaugeMetricFamily("lakewarden_tasks", "Tasks by queue and state.", labels=["queue", "state"])
    oldest = GaugeMetricFamily(
        "lakewarden_task_oldest_seconds", "For how long the oldest due task of a queue has waited.", labels=["queue"]
    )
    for queue, due, running, failed, age in fetch(_TASKS, []):
        for state, number in (("due", due), ("running", running), ("failed", failed)):
            tasks.add_metric([queue, state], number)
        oldest.add_metric([queue], age)
    yield tasks
    yield oldest
    ((alive,),) = fetch(_WORKERS, [])
    yield GaugeMetricFamily("lakewarden_workers", "Workers with a heartbeat in the last minute.", value=alive)


_TASKS: Final = """
    select queue_name, count(*) filter (where status = 'todo' and coalesce(scheduled_at, now()) <= now()),
           count(*) filter (where status = 'doing'), count(*) filter (where status = 'failed'),
           coalesce(extract(epoch from now() - min(coalesce(scheduled_at, deferred.at)) filter (
               where status = 'todo' and coalesce(scheduled_at, now()) <= now())), 0)::float8
    from procrastinate_jobs j
    left join lateral (
        select e.at from procrastinate_events e where e.job_id = j.id and e.type = 'deferred' order by e.id limit 1
    ) deferred on j.status = 'todo'
    group by queue_name
"""
_WORKERS: Final = "select count(*) from procrastinate_workers where last_heartbeat > now() - interval '1 minute'"
