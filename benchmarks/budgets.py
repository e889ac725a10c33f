"""The budgets of the hot path, as CPU per request against the yardstick of the same run, and how they were met."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.machine.parts import POSTGRES, SERVER
from benchmarks.results import SUBJECT, YARDSTICK, Result

_BASE = "load-small"


@dataclass(frozen=True, slots=True)
class Table:
    """Results by scenario, clients and side."""

    results: list[Result]

    def find(self, scenario: str, clients: int, side: str) -> Result | None:
        wanted = (scenario, clients, side)
        return next((each for each in self.results if (each.scenario, each.clients, each.side) == wanted), None)

    def speed(self, scenario: str, clients: int, side: str) -> float | None:
        """The subject's requests per second over those of `side`; None when either was not measured."""
        ours, other = self.find(scenario, clients, SUBJECT), self.find(scenario, clients, side)
        return ours.per_second / other.per_second if ours and other and other.per_second else None

    def ratio(
        self, scenario: str, clients: int, *parts: str, base: str | None = None, side: str = SUBJECT
    ) -> float | None:
        """CPU of a server's parts over the yardstick's (in scenario `base`); None when either was not measured."""
        ours = self.find(scenario, clients, side)
        native = self.find(base or scenario, clients, YARDSTICK)
        costs = [side.cpu_us(*parts) for side in (ours, native) if side is not None]
        match costs:
            case [float(cost), float(unit)] if unit > 0:
                return cost / unit
            case _:
                return None

    def cost_ms(self, scenario: str, clients: int) -> float | None:
        found = self.find(scenario, clients, SUBJECT)
        cost = found.cpu_us(SERVER) if found is not None else None
        return None if cost is None else cost / 1000

    def queries(self, scenario: str, clients: int) -> float | None:
        found = self.find(scenario, clients, SUBJECT)
        return found.statements.queries if found is not None and found.statements is not None else None


@dataclass(frozen=True, slots=True)
class Budget:
    """`good` and `excellent` are upper limits of `measure`, in `unit`."""

    what: str
    unit: str
    good: float
    excellent: float
    measure: Callable[[Table], float | None]

    def verdict(self, found: float) -> str:
        if found <= self.excellent:
            return "excellent"
        return "good" if found <= self.good else f"{found / self.good:.1f} times over"


_READS = ("config", "head", "list-page")


def _dearest_read(table: Table) -> float | None:
    ratios = [table.ratio(name, 8, SERVER, base=_BASE) for name in _READS]
    return max((ratio for ratio in ratios if ratio is not None), default=None)


BUDGETS = [
    Budget("loadTable 4 KB, 8 clients: server", "x", 2.5, 1.6, lambda t: t.ratio(_BASE, 8, SERVER)),
    Budget("loadTable 4 KB, 32 clients: server", "x", 2.0, 1.4, lambda t: t.ratio(_BASE, 32, SERVER)),
    Budget(
        "loadTable 4 KB, 32 clients: server + Postgres",
        "x",
        1.3,
        0.9,
        lambda t: t.ratio(_BASE, 32, SERVER, POSTGRES),
    ),
    Budget("loadTable 1.8 MB as gzip, 8 clients: server", "ms", 1.0, 0.6, lambda t: t.cost_ms("load-large", 8)),
    Budget("dearest of config, HEAD and list page, 8 clients: server", "x", 5.0, 3.5, _dearest_read),
    Budget("queries of a warm loadTable, 1 client", "", 1.0, 1.0, lambda t: t.queries(_BASE, 1)),
    Budget("queries of a warm loadTable, 32 clients", "", 1.0, 0.5, lambda t: t.queries(_BASE, 32)),
]
"""`x`: times the yardstick's CPU for loadTable of 4 KB at the same number of clients."""
