"""Runs scenarios: rounds of the server and of the yardstick in turn, then a sample that counts statements."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.failures import NotServed
from benchmarks.load.closed_loop import Plan, drive
from benchmarks.machine.cores import Cores
from benchmarks.machine.statements import StatementLog
from benchmarks.native import Yardstick
from benchmarks.results import SUBJECT, YARDSTICK, Result, Statements
from benchmarks.scenarios.interface import Scenario
from benchmarks.target import Target

_SAMPLE_S = 0.5
_FIRST_ROUND_WARM_UP_S = 1.0


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything that stays the same for all scenarios of a run."""

    target: Target
    yardstick: Yardstick | None
    cores: Cores | None
    clients: tuple[int, ...]
    seconds: float
    rounds: int

    def run(self, scenario: Scenario) -> Iterator[Result]:
        """The results of one scenario; NotServed when the server does not offer it."""
        scenario.prepare(self.target)
        for clients in self.clients:
            yield from self._compare(scenario, clients)

    def _compare(self, scenario: Scenario, clients: int) -> list[Result]:
        ours = Result(scenario.name, clients, SUBJECT)
        native = Result(scenario.name, clients, YARDSTICK)
        for number in range(self.rounds):
            plan = Plan(clients, self.seconds, _FIRST_ROUND_WARM_UP_S if number == 0 else 0.3)
            self._round(scenario, ours, plan)
            if self.yardstick is not None and scenario.is_native:
                self._native_round(scenario, native, plan)
        ours.statements = self._count_statements(scenario, clients)
        return [ours, native] if native.rounds else [ours]

    def _round(self, scenario: Scenario, result: Result, plan: Plan) -> None:
        parts = self.target.parts
        if self.cores is not None:
            parts.pin(self.cores)  # again each time: threads and sessions come and go
        endpoint = self.target.endpoint
        workload = scenario.workload(endpoint, plan.clients)
        result.rounds.append(drive(endpoint, workload, plan, read_cpu=parts.cpu))
        problem = scenario.verdict(workload)
        if problem is not None:
            result.problems.append(problem)

    def _native_round(self, scenario: Scenario, result: Result, plan: Plan) -> None:
        assert self.yardstick is not None  # noqa: S101 the caller's condition, for the type checker
        if self.cores is not None:
            self.yardstick.parts.pin(self.cores)
        endpoint = self.yardstick.endpoint(self.target)
        workload = scenario.workload(endpoint, plan.clients)
        result.rounds.append(drive(endpoint, workload, plan, read_cpu=self.yardstick.parts.cpu))

    def _count_statements(self, scenario: Scenario, clients: int) -> Statements | None:
        parts = self.target.parts
        log = StatementLog.find(server=parts.server, postgres=parts.postgres)
        if log is None:
            return None
        endpoint = self.target.endpoint
        workload = scenario.workload(endpoint, clients)
        with log.counting() as count:
            answered = drive(endpoint, workload, Plan(clients, _SAMPLE_S, 0)).answered
        return Statements(count.queries / answered, count.transaction / answered, answered) if answered else None


def run_all(bench: Bench, scenarios: list[Scenario]) -> tuple[list[Result], dict[str, str]]:
    """All results, and why the scenarios without any have none; progress goes to standard error."""
    results: list[Result] = []
    not_served: dict[str, str] = {}
    for scenario in scenarios:
        try:
            for result in bench.run(scenario):
                results.append(result)
                _say(
                    f"{result.scenario} with {result.clients} clients on the {result.side}: {result.per_second:,.0f}/s"
                )
        except NotServed as reason:
            not_served[scenario.name] = str(reason)
            _say(f"{scenario.name}: not served, {reason}")
    return results, not_served


def _say(text: str) -> None:
    sys.stderr.write(f"  {text}\n")
    sys.stderr.flush()
