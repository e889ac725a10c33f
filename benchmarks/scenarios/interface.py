"""What a scenario is; the list of them is in scenarios.catalogue, and the runner drives them."""

from dataclasses import dataclass
from typing import Protocol

from benchmarks.load.closed_loop import Workload
from benchmarks.load.http1 import Answer
from benchmarks.load.requests import Endpoint
from benchmarks.target import Target

OK = frozenset({200})
NO_CONTENT = frozenset({200, 204})


class Scenario(Protocol):
    """One kind of request. `is_native`: the yardstick answers the same request."""

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str:
        """One line for the help and the report."""

    @property
    def is_native(self) -> bool: ...

    def prepare(self, target: Target) -> None:
        """Create what it needs; raises NotServed where the server does not offer it."""

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:
        """The requests of one slice of `clients` connections."""

    def verdict(self, workload: Workload) -> str | None:
        """After a slice: None, or what is wrong with the state that it left behind."""


@dataclass(slots=True)
class Repeated:
    """A workload of one request, sent again and again."""

    payload: bytes
    good: frozenset[int] = OK
    is_head: bool = False
    keeps_bodies: bool = False

    def request(self, client: int) -> bytes:  # noqa: ARG002 all clients ask the same
        return self.payload

    def answered(self, client: int, answer: Answer) -> None:
        """Nothing depends on the answer."""

    def lost(self, client: int) -> None:
        """Nor on its absence."""
