"""What the rounds of one scenario measured, and the medians that are reported."""

import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from benchmarks.load.closed_loop import Slice
from benchmarks.load.latency import histogram, percentiles
from benchmarks.machine.parts import POSTGRES, SERVER

SUBJECT = "subject"
YARDSTICK = "yardstick"


@dataclass(frozen=True, slots=True)
class Statements:
    """Per request: `queries`, and BEGIN, COMMIT and the like (`transaction`), counted in a sample of its own."""

    queries: float
    transaction: float
    requests: int


@dataclass(slots=True)
class Result:
    """One scenario at one number of clients on one side: the server (`subject`), one beside it, or the yardstick."""

    scenario: str
    clients: int
    side: str
    rounds: list[Slice] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    statements: Statements | None = None

    @property
    def per_second(self) -> float:
        """Good answers per second."""
        return statistics.median(self.rates)

    @property
    def rates(self) -> list[float]:
        """Good answers per second of each round."""
        return [each.good / each.seconds for each in self.rounds]

    @property
    def errors(self) -> Counter[str]:
        return sum((each.errors for each in self.rounds), Counter[str]())

    def latency_us(self, percentile: str) -> float | None:
        """Median over the rounds of `p50`, `p90`, `p99`, `p99.9` or `max`, in microseconds."""
        found = [percentiles(each.latencies_ns)[percentile] for each in self.rounds if each.good]
        return statistics.median(found) if found else None

    def cpu_us(self, *parts: str) -> float | None:
        """Median of the CPU of these parts together, in microseconds a request; None where it was not measured.

        Of all requests: those that were refused cost too.
        """
        if any(part not in each.cpu_ns for each in self.rounds for part in parts):
            return None
        costs = [
            sum(each.cpu_ns[part] for part in parts) / each.requests / 1000 for each in self.rounds if each.requests
        ]
        return statistics.median(costs) if costs else None

    def to_json(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario,
            "clients": self.clients,
            "side": self.side,
            "requests_per_second": self.per_second,
            "requests_per_second_least": min(self.rates),
            "requests_per_second_most": max(self.rates),
            "latency_us": {name: self.latency_us(name) for name in ("p50", "p90", "p99", "p99.9", "max")},
            "server_cpu_us": self.cpu_us(SERVER),
            "postgres_cpu_us": self.cpu_us(POSTGRES),
            "server_cpu_s_per_1000": _thousand(self.cpu_us(SERVER)),
            "postgres_cpu_s_per_1000": _thousand(self.cpu_us(POSTGRES)),
            "errors": dict(self.errors),
            "problems": self.problems,
            "statements": None
            if self.statements is None
            else {
                "queries": self.statements.queries,
                "transaction": self.statements.transaction,
                "requests": self.statements.requests,
            },
            "rounds": [_slice(each) for each in self.rounds],
        }


def _thousand(us_per_request: float | None) -> float | None:
    return None if us_per_request is None else us_per_request / 1000


def _slice(one: Slice) -> dict[str, Any]:
    return {
        "seconds": one.seconds,
        "requests": one.requests,
        "good": one.good,
        "errors": dict(one.errors),
        "received_bytes": one.received_bytes,
        "sent_bytes": one.sent_bytes,
        "cpu_s": {part: value / 1e9 for part, value in one.cpu_ns.items()},
        "generator_cpu_s": one.generator_cpu_ns / 1e9,
        "latency_us": percentiles(one.latencies_ns),
        "histogram_us": histogram(one.latencies_ns),
    }
