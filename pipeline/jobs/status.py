"""How it goes with a warehouse: for the log, for the row that the gateway reads, and for who waits for a flush."""

import json
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

from pipeline.jobs.flush import Flushed

FRESHNESS_WINDOW_S = 300.0
FLUSH_BOUNDS_S = (0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
FRESHNESS_BOUNDS_S = (0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 3600)
_KEPT = 100


class Histogram:
    """`bounds` are the upper bounds of its buckets, without infinity."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = list(bounds)
        self._counts = [0.0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        self._counts[bisect_left(self._bounds, value)] += weight
        self._sum += value * weight

    def shown(self) -> dict[str, object]:
        return {"bounds": self._bounds, "counts": self._counts.copy(), "sum": self._sum}


class Status:
    """Written by the warehouse's thread, read by the one that sends heartbeats."""

    def __init__(self) -> None:
        self.state = "recovering"
        self.error = ""
        self._flushes: deque[Flushed] = deque(maxlen=_KEPT)
        self._totals = {"flushes": 0, "events": 0, "dataFiles": 0, "bytes": 0, "rejectedValues": 0}
        self._histograms = {"flush": Histogram(FLUSH_BOUNDS_S), "freshness": Histogram(FRESHNESS_BOUNDS_S)}
        self._written: set[tuple[str, ...]] = set()
        self._lock = Lock()

    def become(self, state: str, error: str = "") -> None:
        self.state, self.error = state, error

    def add(self, flushed: Flushed) -> None:
        with self._lock:
            self._flushes.append(flushed)
            self._histograms["flush"].add(flushed.ended - flushed.began)
            for age, events in flushed.ages:
                self._histograms["freshness"].add(age, events)
            self._written.update(snapshot.table for snapshot in flushed.snapshots)
            added = (1, flushed.events, flushed.files, flushed.bytes, flushed.rejected)
            for name, value in zip(self._totals, added, strict=True):
                self._totals[name] += value

    def flushes(self, *, since: float = 0.0) -> list[Flushed]:
        """Those that ended after the time, the oldest first."""
        with self._lock:
            return [each for each in self._flushes if each.ended >= since]

    def take_written(self) -> set[tuple[str, ...]]:
        """The tables that flushes wrote since the last call."""
        with self._lock:
            written, self._written = self._written, set()
            return written

    def freshness(self) -> dict[str, Any]:
        """Milliseconds from an event's timestamp to the snapshot that shows it, of the last minutes; and totals.

        `histograms` are of seconds, since the start: `flush` counts flushes, `freshness` events.
        """
        recent = self.flushes(since=time.time() - FRESHNESS_WINDOW_S)
        ages = sorted(point for each in recent for point in each.ages)
        measured = {f"p{part}": percentile(ages, part / 100) for part in (50, 95)} if ages else {}
        with self._lock:
            histograms = {name: each.shown() for name, each in self._histograms.items()}
            return {**measured, "windowSeconds": FRESHNESS_WINDOW_S, **self._totals, "histograms": histograms}

    def row(self) -> Mapping[str, object]:
        """The columns of `ingest_pipeline` that change."""
        flushes = self.flushes()
        last = flushes[-1] if flushes else None
        return {
            "state": self.state,
            "error": self.error,
            "flushed_at": last and last.ended,
            "last_flush": json.dumps(answer([last])) if last else None,
            "freshness": json.dumps(self.freshness()),
        }


def percentile(points: list[tuple[float, float]], part: float) -> int:
    """In milliseconds, of sorted (seconds, weight)."""
    wanted = part * sum(weight for _, weight in points)
    passed = 0.0
    for seconds, weight in points:
        passed += weight
        if passed >= wanted:
            return round(seconds * 1000)
    return round(points[-1][0] * 1000)


def answer(flushes: Iterable[Flushed], paths: Iterable[str] = ()) -> dict[str, object]:
    """The members of the answer to a flush, without `success`, which the state of a request says."""
    listed = list(flushes)
    return {
        "batchesFlushed": sum(each.upto - each.after for each in listed),
        "eventsFlushed": sum(each.events for each in listed),
        "bytesWritten": sum(each.bytes for each in listed),
        "paths": list(paths),
        "durationMs": round(sum(each.ended - each.began for each in listed) * 1000),
        "usedFallback": False,
    }


def sentence(flushed: Flushed) -> str:
    """One line of the log, for a person."""
    seconds = flushed.ended - flushed.began
    rate = flushed.events / seconds if seconds else 0.0
    age = percentile(sorted(flushed.ages), 0.95) / 1000
    rejected = f", {flushed.rejected:,} values did not fit" if flushed.rejected else ""
    return (
        f"{flushed.events:,} events of {flushed.tables:,} {'table' if flushed.tables == 1 else 'tables'} in "
        f"{len(flushed.snapshots):,} snapshots ({flushed.files:,} files, {flushed.bytes / 1e6:,.1f} MB) after "
        f"{seconds:.1f} s, {rate:,.0f} events/s{rejected}; 95% were seen within {age:,.1f} s; position {flushed.upto:,}"
    )
