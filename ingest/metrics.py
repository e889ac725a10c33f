"""Histograms of this process, in the text format of Prometheus (0.0.4)."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final


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
        lines = [f"# HELP {self._name} {self._described}", f"# TYPE {self._name} histogram"]
        total = 0
        for bound, count in zip([*map(repr, self._bounds), "+Inf"], self._counts, strict=True):
            total += count
            lines.append(f'{self._name}_bucket{{le="{bound}"}} {total}')
        return [*lines, f"{self._name}_sum {self._sum!r}", f"{self._name}_count {total}"]


BATCH_EVENTS: Final = Histogram(
    "lakewarden_ingest_batch_events", "Events of an accepted batch", [1, 10, 50, 100, 250, 500, 1000]
)
APPEND_SECONDS: Final = Histogram(
    "lakewarden_ingest_append_seconds",
    "Time in which a group of batches was appended to the durable log",
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0],
)


def sample(name: str, kind: str, described: str, value: float) -> list[str]:
    """One series without labels."""
    return [f"# HELP {name} {described}", f"# TYPE {name} {kind}", f"{name} {value}"]


def page(series: Iterable[Iterable[str]]) -> bytes:
    return ("\n".join(line for lines in series for line in lines) + "\n").encode()
