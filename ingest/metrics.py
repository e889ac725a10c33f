"""Histograms of this process, in the text format of Prometheus (0.0.4)."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final
from uuid import UUID

from cachetools import LRUCache

_REMEMBERED: Final = 10_000


class Histogram:
    """`bounds` are the upper bounds of its buckets, without infinity."""

    def __init__(self, name: str, described: str, bounds: Sequence[float]) -> None:
        self._name = name
        self._described = described
        self._bounds = list(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self) -> list[str]:
        return histogram(self._name, self._described, self._bounds, self._counts, self._sum)


def histogram(name: str, described: str, bounds: Sequence[float], counts: Sequence[float], total: float) -> list[str]:
    """`counts` are those of each bucket by itself, infinity's last; `total`: the sum of what was observed."""
    lines = [f"# HELP {name} {described}", f"# TYPE {name} histogram"]
    passed = 0.0
    for bound, count in zip([*map(repr, bounds), "+Inf"], counts, strict=True):
        passed += count
        lines.append(f'{name}_bucket{{le="{bound}"}} {passed:.15g}')
    return [*lines, f"{name}_sum {total!r}", f"{name}_count {passed:.15g}"]


class Histograms:
    """One of each warehouse: a caller sees nothing of others'. Those that were not used for longest begin anew."""

    def __init__(self, name: str, described: str, bounds: Sequence[float]) -> None:
        self.name = name
        self._made = partial(Histogram, name, described, bounds)
        self._known: LRUCache[UUID, Histogram] = LRUCache(_REMEMBERED)

    def of(self, warehouse_id: UUID) -> Histogram:
        found = self._known.get(warehouse_id)
        if found is None:
            found = self._known[warehouse_id] = self._made()
        return found


BATCH_EVENTS: Final = Histograms(
    "lakewarden_ingest_batch_events", "Events of an accepted batch", [1, 10, 50, 100, 250, 500, 1000]
)
APPEND_SECONDS: Final = Histograms(
    "lakewarden_ingest_append_seconds",
    "Time in which a group of batches was appended to the durable log",
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0],
)


def sample(name: str, kind: str, described: str, value: float) -> list[str]:
    """One series without labels."""
    return [f"# HELP {name} {described}", f"# TYPE {name} {kind}", f"{name} {value}"]


def page(series: Iterable[Iterable[str]]) -> bytes:
    return ("\n".join(line for lines in series for line in lines) + "\n").encode()
