"""How far sinks of events are, for Prometheus: read from the database, so every server answers for all workers.

And which stores this process leaves alone.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0, generate_latest

from lakewarden.events import progress, reader_places
from lakewarden.events.progress import Progress
from lakewarden.storage.breaker import left_alone

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_1_0_0


def exposition() -> bytes:
    """In the text format of Prometheus."""
    registry = CollectorRegistry()
    registry.register(_Collector())
    registry.register(_Storages())
    return generate_latest(registry)


class _Collector:
    def collect(self) -> Iterator[Metric]:
        readers = GaugeMetricFamily("lakewarden_event_readers", "Streams of this server, and requests that wait.")
        readers.add_metric([], reader_places.taken())
        yield readers
        yield from collect()


def collect() -> Iterator[Metric]:
    """Of all sinks, as the database knows them. Raises django.db.Error."""
    waiting = GaugeMetricFamily("lakewarden_events_unnumbered", "Events that wait for a worker to number them.")
    waiting.add_metric([], progress.unlogged())
    yield waiting
    sinks = progress.sinks()
    yield _gauge("lag_events", "Events that the sink has not received.", {s.name: s.waiting for s in sinks})
    yield _gauge("oldest_seconds", "Age of the oldest of them.", {s.name: _age(s.oldest) for s in sinks})
    yield _gauge("failing_seconds", "Since when the sink takes no events.", _failing(sinks))
    yield _gauge("rate", "Events per second, in about the last minute.", {s.name: s.rate for s in sinks})
    yield _gauge("dead_letters", "Events that the sink refused.", {s.name: s.dead_letters for s in sinks})
    sent = CounterMetricFamily("lakewarden_event_sink_sent", "Events that were sent to the sink.", labels=["sink"])
    for each in sinks:
        sent.add_metric([each.name], each.sent)
    yield sent


class _Storages:
    """Of the process that answers: each finds out by itself which stores fail."""

    def collect(self) -> Iterator[Metric]:
        seconds = GaugeMetricFamily(
            "lakewarden_storage_left_alone_seconds", "For how long a failing store is not asked.", labels=["location"]
        )
        refused = GaugeMetricFamily(
            "lakewarden_storage_refused_calls", "Calls to it that were refused in this time.", labels=["location"]
        )
        for each in left_alone():
            seconds.add_metric([each.place], each.seconds)
            refused.add_metric([each.place], each.refused)
        return iter((seconds, refused))


def _gauge(name: str, meaning: str, values: dict[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"lakewarden_event_sink_{name}", meaning, labels=["sink"])
    for sink, value in values.items():
        family.add_metric([sink], value)
    return family


def _failing(sinks: list[Progress]) -> dict[str, float]:
    return {each.name: _age(each.failing_since) for each in sinks}


def _age(since: datetime | None) -> float:
    return 0.0 if since is None else max((datetime.now(UTC) - since).total_seconds(), 0.0)
