"""What authorization costs, here, in Postgres and in OpenFGA: `python -m benchmarks.authorization --help`."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence

from benchmarks.authorization import decisions, lists, routes
from benchmarks.authorization.installation import API_TOKEN, API_URL, BACKENDS, Installation
from benchmarks.authorization.server import Timed, in_process
from benchmarks.failures import BenchmarkError
from lakewarden.errors import LakewardenError
from standalone.signals import interrupting

BUDGET_MS = 50
_EPILOG = f"""
With --backend openfga a running OpenFGA is asked, in a store that is deleted again at the end. {API_URL}
is its address, {API_TOKEN} its key. One is started so:

  export OPENFGA_DATASTORE_ENGINE=postgres
  export OPENFGA_DATASTORE_URI='postgresql://USER:PASSWORD@127.0.0.1:5432/openfga?sslmode=disable'
  export OPENFGA_AUTHN_METHOD=preshared OPENFGA_AUTHN_PRESHARED_KEYS=KEY
  openfga migrate
  openfga run --http-addr=127.0.0.1:8080 --grpc-addr=127.0.0.1:8081 --playground-enabled=false \\
    --metrics-enabled=false --profiler-enabled=false

For both to store on one Postgres, give --database an empty database next to OpenFGA's. CPU is that of this process, of
the whole Postgres and of OpenFGA, as far as they run on this machine.
"""


def main() -> int:
    options = _options()
    installation = Installation(options.backend, options.database)
    try:
        with interrupting(), in_process(installation) as server:  # TERM too stops Postgres and removes its directory
            _print_costs("warm request", routes.warm(server, rounds=options.rounds))
            _print_costs("change", routes.changes(server, rounds=options.rounds))
            measured = decisions.measure(server, rounds=options.rounds)
            for title, costs in zip(("may, by the project", "sees nothing"), measured, strict=True):
                _print_decisions(title, costs)
            crowded = ("on a warehouse with 10,000 holders", decisions.crowded(server, rounds=options.rounds))
            _print_costs("decision", [crowded])
            rows, plans = lists.measure(server, rounds=options.rounds, owned=options.owned)
    except (BenchmarkError, LakewardenError) as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    _print(
        ["caller", "list", *_FIRSTS, *_COSTS], ([user, name, *_both(first, known)] for user, name, first, known in rows)
    )
    if options.explain:
        print("\n".join(plans))
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}")
    return 1 if any(known is not None and known.median > BUDGET_MS for *_, known in rows) else 0


def _options() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(
        prog="python -m benchmarks.authorization",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    arguments.add_argument("--backend", choices=BACKENDS, default=BACKENDS[0], help="who decides [database]")
    arguments.add_argument("--database", metavar="URL", help="an empty database [of a Postgres of its own]")
    arguments.add_argument("--rounds", type=int, default=200, help="calls of each kind [200]")
    arguments.add_argument("--owned", type=int, default=lists.OWNED, help="tables that one caller owns [100000]")
    arguments.add_argument("--explain", action="store_true", help="print the plans of the filters too")
    return arguments.parse_args()


_COSTS = ("median ms", "p95 ms", "CPU ms", "queries", "questions", "calls")
_FIRSTS = ("first: median ms", "p95 ms", "queries", "calls")


def _told(cost: Timed) -> list[str]:
    counts = (cost.statements, cost.questions, cost.calls)
    return [f"{cost.median:.2f}", f"{cost.p95:.2f}", f"{cost.cpu:.2f}", *map(str, counts)]


def _both(first: Timed, known: Timed | None) -> list[str]:
    told = [f"{first.median:.2f}", f"{first.p95:.2f}", str(first.statements), str(first.calls)]
    return [*told, *(_told(known) if known is not None else ["-"] * len(_COSTS))]


def _print_costs(title: str, rows: Iterable[tuple[str, Timed]]) -> None:
    _print([title, *_COSTS], ([name, *_told(cost)] for name, cost in rows))


def _print_decisions(title: str, rows: Sequence[decisions.Row]) -> None:
    costs = {(depth, roles): _decision(cost) for depth, roles, cost in rows}
    heads = [f"{title}: namespaces above", *(f"{roles:,} roles, ms (p95; CPU; calls)" for roles in decisions.ROLES)]
    _print(heads, ([str(depth), *(costs[depth, roles] for roles in decisions.ROLES)] for depth in decisions.DEPTHS))


def _decision(cost: Timed) -> str:
    return f"{cost.median:.2f} ({cost.p95:.2f}; {cost.cpu:.2f}; {cost.calls})"


def _print(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
