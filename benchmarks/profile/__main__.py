"""`python -m benchmarks.profile`: where the CPU of a request goes, layer by layer, before and after; see --help."""

import argparse
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path

from benchmarks import report
from benchmarks.failures import BenchmarkError
from benchmarks.load.closed_loop import Plan, drive
from benchmarks.machine.parts import SERVER
from benchmarks.profile.records import Record
from benchmarks.profile.sampling import Sampling
from benchmarks.profile.table import Profile, as_markdown
from benchmarks.results import SUBJECT
from benchmarks.runner import Side
from benchmarks.scenarios.catalogue import chosen
from benchmarks.scenarios.interface import Scenario
from benchmarks.stack import DevelopmentServer
from benchmarks.target import Target
from standalone.signals import interrupting

_SCENARIOS = "load-small,commit-apart,commit-contended,commit-snapshots,create-table"


def main() -> int:
    options = _parser().parse_args()
    try:
        if options.compare is not None:
            before, after = (Record.read(file) for file in options.compare)
            print(before.compared_with(after))
            return 0
        with interrupting(), ExitStack() as cleaning:
            profiles = _measured(options, _sides(options, cleaning))
    except BenchmarkError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    record = Record(_headline(options), profiles)
    print(f"{record.headline}\n\n{as_markdown(record.profiles)}")
    if options.out is not None:
        record.write(options.out)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.profile",
        description=(
            "Shows where the CPU of a request goes. Starts `lakewarden dev` on a temporary directory and drives it as "
            "`python -m benchmarks` does: in some rounds its CPU is measured, in others py-spy samples its stacks "
            "from outside. A sample is of the thread that holds the interpreter's lock and counts for the innermost "
            "layer that it is in, codecs and the standard library for the layer that called them; the CPU that is "
            "used without the lock is spread over the layers alike. On Linux; it needs the right to look into child "
            "processes."
        ),
    )
    parser.add_argument("--scenario", default=_SCENARIOS, metavar="NAMES", help=f"[{_SCENARIOS}]")
    parser.add_argument("--clients", type=int, default=8, help="connections [8]")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a round [4]")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each kind [3]")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="of each server [1]")
    parser.add_argument("--beside", type=Path, metavar="DIR", help="another working copy, in turn, as `before`")
    parser.add_argument("--out", type=Path, metavar="FILE", help="keep the profile here, as JSON")
    parser.add_argument(
        "--compare", type=Path, nargs=2, metavar=("OLD", "NEW"), help="print two kept profiles beside each other"
    )
    return parser


def _sides(options: argparse.Namespace, cleaning: ExitStack) -> list[Side]:
    checkouts = {"before": options.beside, SUBJECT: None} if options.beside is not None else {SUBJECT: None}
    sides = []
    for name, checkout in checkouts.items():
        server = cleaning.enter_context(DevelopmentServer(checkout=checkout, processes=options.processes))
        side = Side(name, Target.from_ready_file(server.ready), server, scenarios=chosen(options.scenario))
        sides.append(side)
    return sides


def _measured(options: argparse.Namespace, sides: list[Side]) -> list[Profile]:
    """By scenario, the sides beside each other."""
    profiles = []
    for index, scenario in enumerate(sides[0].scenarios):
        for side in sides:
            sys.stderr.write(f"  {scenario.name}, {side.name}\n")
            profiles.append(_profile(options, side, side.scenarios[index]))
    return profiles


def _profile(options: argparse.Namespace, side: Side, scenario: Scenario) -> Profile:
    parts = side.target.parts
    if parts.server is None:
        raise BenchmarkError("The server's processes cannot be seen: this works on Linux only")
    scenario.prepare(side.target)
    costs, rates, found = [], [], None
    for number in range(options.rounds):
        plan = Plan(options.clients, options.seconds, 1.0 if number == 0 else 0.3)
        endpoint = side.target.endpoint
        measured = drive(endpoint, scenario.workload(endpoint, options.clients), plan, read_cpu=parts.cpu)
        if not measured.good:
            raise BenchmarkError(f"{scenario.name}: no request succeeded ({dict(measured.errors)})")
        costs.append(measured.cpu_ns[SERVER] / measured.requests / 1000)
        rates.append(measured.good / measured.seconds)
        workload = scenario.workload(endpoint, options.clients)
        sampling = Sampling(parts.server, seconds=options.seconds)
        drive(endpoint, workload, Plan(options.clients, options.seconds + 1.0, 0))
        shares = sampling.shares()
        if found is None:
            found = shares
        else:
            found.layers += shares.layers
            found.functions += shares.functions
    assert found is not None  # noqa: S101 there is at least one round
    return Profile(scenario.name, side.name, statistics.median(rates), statistics.median(costs), found)


def _headline(options: argparse.Namespace) -> str:
    about = report.machine()
    return (
        f"{about['cpu']}, {about['cores']} cores, {about['system']}, CPython {about['python']}; processes of the "
        f"server: {options.processes}; {options.clients} clients; {options.rounds} rounds of {options.seconds:g} s "
        "measured and as many sampled"
    )


if __name__ == "__main__":
    sys.exit(main())
