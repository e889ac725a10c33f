"""Runs scenarios on all servers of a run: rounds of each in turn, then a sample that counts statements."""

import sys
from dataclasses import dataclass, field, replace

from benchmarks.failures import BenchmarkError, NotServed
from benchmarks.load.closed_loop import Plan, drive
from benchmarks.load.requests import Endpoint
from benchmarks.machine.cores import Cores
from benchmarks.machine.parts import Parts
from benchmarks.machine.statements import StatementLog, analyse
from benchmarks.native import Yardstick
from benchmarks.results import SUBJECT, YARDSTICK, Result, Statements
from benchmarks.scenarios.catalogue import chosen
from benchmarks.scenarios.interface import Scenario
from benchmarks.stack import DevelopmentServer
from benchmarks.target import Target

_SAMPLE_S = 0.5
_FIRST_ROUND_WARM_UP_S = 1.0


@dataclass(slots=True)
class Side:
    """One server of a run, under the `name` that the report gives it; `server` is one that we started."""

    name: str
    target: Target
    server: DevelopmentServer | None = None
    warm_up_s: float = _FIRST_ROUND_WARM_UP_S
    scenarios: list[Scenario] = field(default_factory=list)
    not_served: dict[str, str] = field(default_factory=dict)
    prepared: set[str] = field(default_factory=set)

    def restart(self) -> None:
        if self.server is not None:
            self.server.restart()
            self.target.renew(self.server.ready)


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything that stays the same for all scenarios of a run; the yardstick is beside the first of `sides`."""

    sides: list[Side]
    yardstick: Yardstick | None
    cores: Cores | None
    clients: tuple[int, ...]
    seconds: float
    rounds: int
    restarts: bool = False
    analyses: bool = False


class Run:
    """`results` in the order of the report, filled round by round; progress goes to standard error."""

    def __init__(self, bench: Bench, scenarios: str) -> None:
        self._bench = bench
        self._found: dict[tuple[str, int, str], Result] = {}
        for side in bench.sides:
            side.scenarios = chosen(scenarios)
        self._names = [each.name for each in bench.sides[0].scenarios]

    @property
    def results(self) -> list[Result]:
        names = [*(side.name for side in self._bench.sides), YARDSTICK]
        keys = [(each, clients, name) for each in self._names for clients in self._bench.clients for name in names]
        return [self._found[key] for key in keys if key in self._found]

    @property
    def not_served(self) -> dict[str, str]:
        """Why a scenario has no figures on a side."""
        return {f"{name} ({side.name})": why for side in self._bench.sides for name, why in side.not_served.items()}

    def run(self) -> None:
        for number in range(self._bench.rounds):
            if number and self._bench.restarts:
                self._restart()
            for index in range(len(self._names)):
                self._scenario(index, number)

    def _restart(self) -> None:
        _say("starting the servers again")
        for side in self._bench.sides:
            side.restart()
        if self._bench.yardstick is not None:
            self._bench.yardstick.restart()

    def _scenario(self, index: int, number: int) -> None:
        for side in self._bench.sides:
            scenario = side.scenarios[index]
            if scenario.name not in side.prepared | side.not_served.keys():
                try:
                    scenario.prepare(side.target)
                    side.prepared.add(scenario.name)
                except BenchmarkError as reason:
                    if side.name == SUBJECT and not isinstance(reason, NotServed):
                        raise
                    # what another server refuses to set up is left out for it alone
                    side.not_served[scenario.name] = str(reason)
                    _say(f"{scenario.name}: not served by {side.name}, {reason}")
        if self._bench.analyses:
            for side in self._bench.sides:
                analyse(side.target.parts.server)
        for clients in self._bench.clients:
            self._round(index, clients, number)

    def _round(self, index: int, clients: int, number: int) -> None:
        """One round of each server in turn."""
        bench = self._bench
        is_cold = number == 0 or bench.restarts
        plan = Plan(clients, bench.seconds, _FIRST_ROUND_WARM_UP_S if is_cold else 0.3)
        for side in in_turn(bench.sides, number):
            own = replace(plan, warm_up_s=side.warm_up_s) if is_cold else plan
            scenario = side.scenarios[index]
            if scenario.name in side.prepared:
                result = self._result(scenario.name, clients, side.name)
                self._drive(scenario, result, own, endpoint=side.target.endpoint, parts=side.target.parts)
                if number == bench.rounds - 1:
                    result.statements = count_statements(scenario, clients, side.target)
        first, yardstick = bench.sides[0].scenarios[index], bench.yardstick
        if yardstick is not None and first.is_native:
            result = self._result(first.name, clients, YARDSTICK)
            self._drive(first, result, plan, endpoint=yardstick.endpoint(), parts=yardstick.parts)

    def _result(self, scenario: str, clients: int, side: str) -> Result:
        return self._found.setdefault((scenario, clients, side), Result(scenario, clients, side))

    def _drive(self, scenario: Scenario, result: Result, plan: Plan, *, endpoint: Endpoint, parts: Parts) -> None:
        if self._bench.cores is not None:
            parts.pin(self._bench.cores)  # again each time: threads and sessions come and go
        workload = scenario.workload(endpoint, plan.clients)
        result.rounds.append(drive(endpoint, workload, plan, read_cpu=parts.cpu))
        problem = scenario.verdict(workload)
        if problem is not None:
            result.problems.append(problem)
        last = result.rounds[-1]
        _say(f"{result.scenario}, {plan.clients} clients, {result.side}: {last.good / last.seconds:,.0f}/s")


def in_turn(sides: list[Side], number: int) -> list[Side]:
    """The order of round `number`, from 0: what one server leaves to write or to cool is measured with the next one."""
    return sides if number % 2 == 0 else sides[::-1]


def count_statements(scenario: Scenario, clients: int, target: Target) -> Statements | None:
    """Per request, in a sample of its own; None where the server's Postgres is out of reach."""
    log = StatementLog.find(server=target.parts.server, postgres=target.parts.postgres)
    if log is None:
        return None
    endpoint = target.endpoint
    workload = scenario.workload(endpoint, clients)
    with log.counting() as count:
        answered = drive(endpoint, workload, Plan(clients, _SAMPLE_S, 0)).answered
    return Statements(count.queries / answered, count.transaction / answered, answered) if answered else None


def _say(text: str) -> None:
    sys.stderr.write(f"  {text}\n")
    sys.stderr.flush()
