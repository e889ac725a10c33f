"""Latencies of one slice: exact percentiles, and a histogram that can be kept and added up."""

import math
from collections import Counter
from collections.abc import Sequence

PERCENTILES = {"p50": 0.50, "p90": 0.90, "p99": 0.99, "p99.9": 0.999}
_STEPS = 8  # histogram buckets for each doubling: a bucket is 9 % wide


def percentiles(latencies_ns: Sequence[int]) -> dict[str, float]:
    """`p50`, `p90`, `p99`, `p99.9` and `max` in microseconds, by nearest rank; empty without latencies."""
    if not latencies_ns:
        return {}
    ordered = sorted(latencies_ns)
    found = {name: ordered[math.ceil(part * len(ordered)) - 1] / 1000 for name, part in PERCENTILES.items()}
    return found | {"max": ordered[-1] / 1000}


def histogram(latencies_ns: Sequence[int]) -> list[tuple[float, int]]:
    """Pairs of a bucket's upper bound in microseconds and how many lie in it, eight buckets to a doubling."""
    buckets = Counter(math.ceil(math.log2(max(latency, 1)) * _STEPS) for latency in latencies_ns)
    return [(round(2 ** (bucket / _STEPS) / 1000, 1), count) for bucket, count in sorted(buckets.items())]
