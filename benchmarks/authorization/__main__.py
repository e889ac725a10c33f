"""What authorization costs, in this process and in Postgres: `python -m benchmarks.authorization --help`."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence

from benchmarks.authorization import decisions, lists, routes
from benchmarks.authorization.server import Timed, in_process
from benchmarks.failures import BenchmarkError
from lakewarden.embedded.signals import interrupting

BUDGET_MS = 50


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.authorization", description=__doc__)
    arguments.add_argument("--rounds", type=int, default=200, help="calls of each kind [200]")
    arguments.add_argument("--owned", type=int, default=lists.OWNED, help="tables that one caller owns [100000]")
    arguments.add_argument("--explain", action="store_true", help="print the plans of the filters too")
    options = arguments.parse_args()
    try:
        with interrupting(), in_process() as server:  # TERM too stops Postgres and removes its directory
            _print_costs("warm request", routes.warm(server, rounds=options.rounds))
            _print_costs("change", routes.changes(server, rounds=options.rounds))
            measured = decisions.measure(server, rounds=options.rounds)
            for title, costs in zip(("may, by the project", "sees nothing"), measured, strict=True):
                _print_decisions(title, costs)
            crowded = ("on a warehouse with 10,000 holders", decisions.crowded(server, rounds=options.rounds))
            _print_costs("decision", [crowded])
            rows, plans = lists.measure(server, rounds=options.rounds, owned=options.owned)
    except BenchmarkError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    _print(["caller", "list", *_COSTS], ([user, name, *_told(cost)] for user, name, cost in rows))
    if options.explain:
        print("\n".join(plans))
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}")
    return 1 if any(cost.median > BUDGET_MS for _, _, cost in rows) else 0


_COSTS = ("median ms", "p95 ms", "CPU ms", "queries", "questions")


def _told(cost: Timed) -> list[str]:
    return [f"{cost.median:.2f}", f"{cost.p95:.2f}", f"{cost.cpu:.2f}", str(cost.statements), str(cost.questions)]


def _print_costs(title: str, rows: Iterable[tuple[str, Timed]]) -> None:
    _print([title, *_COSTS], ([name, *_told(cost)] for name, cost in rows))


def _print_decisions(title: str, rows: Sequence[decisions.Row]) -> None:
    costs = {(depth, roles): f"{cost.median:.2f} ({cost.cpu:.2f})" for depth, roles, cost in rows}
    heads = [f"{title}: namespaces above", *(f"{roles:,} roles, ms (CPU)" for roles in decisions.ROLES)]
    _print(heads, ([str(depth), *(costs[depth, roles] for roles in decisions.ROLES)] for depth in decisions.DEPTHS))


def _print(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
