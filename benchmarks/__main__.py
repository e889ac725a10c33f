"""`python -m benchmarks`: measures an Iceberg REST catalog and prints one table; see --help."""

import json
import os
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import native, report, stack
from benchmarks.failures import BenchmarkError, NotServed
from benchmarks.machine.cores import Cores, pin
from benchmarks.options import Options, parse
from benchmarks.runner import Bench, run_all
from benchmarks.scenarios.catalogue import chosen
from benchmarks.target import Target
from standalone.signals import interrupting


def main() -> int:
    options = parse()
    try:
        with interrupting():  # TERM too stops the server that was started, and removes its directory
            return _measure(options)
    except BenchmarkError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130


def _measure(options: Options) -> int:
    selected = chosen(options.scenario)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with ExitStack() as cleaning:
        target = _target(options, cleaning)
        yardstick = _yardstick(options, target, cleaning)
        cores = Cores.split()
        if cores is not None:
            pin([os.getpid()], cores.rest)
        bench = Bench(target, yardstick, cores, options.clients, options.seconds, options.rounds)
        about = {"started": started, "machine": report.machine(), "pinned": cores is not None}
        about |= {"seconds": options.seconds, "rounds": options.rounds}
        print(_headline(about), flush=True)
        results, not_served = run_all(bench, selected)
        load = " ".join(f"{each:.1f}" for each in os.getloadavg())
        print(f"\n{report.as_text(results, not_served)}\n\nLoad average at the end: {load}")
    if options.json is not None:
        content = report.as_json(results, not_served, about)
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 1 if any(each.problems for each in results) else 0


def _target(options: Options, cleaning: ExitStack) -> Target:
    if options.uri is not None and options.warehouse is not None:
        target = Target.from_address(
            options.uri,
            warehouse=options.warehouse,
            token=options.token,
            server=options.server_pid,
            postgres=options.postgres_pid,
        )
        cleaning.callback(target.clean_up)
        return target
    if options.ready_file is not None:
        target = Target.from_ready_file(options.ready_file)
        cleaning.callback(target.clean_up)
        return target
    sys.stderr.write("Starting `lakewarden dev` on a temporary directory …\n")
    return Target.from_ready_file(cleaning.enter_context(stack.development_server()))


def _yardstick(options: Options, target: Target, cleaning: ExitStack) -> native.Yardstick | None:
    if not options.yardstick or options.uri is not None:
        return None
    try:
        program = native.build()
        folder = Path(cleaning.enter_context(tempfile.TemporaryDirectory(prefix="lakewarden-yardstick-")))
        return cleaning.enter_context(native.running(program, target, folder=folder))
    except NotServed as reason:
        sys.stderr.write(f"No yardstick: {reason}\n")
        return None


def _headline(about: dict[str, object]) -> str:
    machine = about["machine"]
    pinned = "the server on a core of its own" if about["pinned"] else "no cores were set apart"
    return f"{machine}\n{pinned}; {about['rounds']} rounds of {about['seconds']} s"


if __name__ == "__main__":
    sys.exit(main())
