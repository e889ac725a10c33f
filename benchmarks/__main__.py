"""`python -m benchmarks`: measures an Iceberg REST catalog and prints one table; see --help."""

import json
import os
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import native, report
from benchmarks.failures import BenchmarkError, NotServed
from benchmarks.machine.cores import Cores, pin
from benchmarks.options import Options, parse
from benchmarks.results import SUBJECT
from benchmarks.runner import Bench, Run, Side
from benchmarks.scenarios.catalogue import chosen
from benchmarks.stack import DevelopmentServer
from benchmarks.target import Target
from standalone.signals import interrupting

_JAVA_WARM_UP_S = 6.0


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
    chosen(options.scenario)  # a name that is not known is said before anything is started
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with ExitStack() as cleaning:
        sides = _sides(options, cleaning)
        yardstick = _yardstick(options, sides[0].target, cleaning)
        cores = Cores.split() if options.pin else None
        if cores is not None:
            pin([os.getpid()], cores.rest)
        about = {"started": started, "machine": report.machine(), "pinned": cores is not None}
        about |= {"seconds": options.seconds, "rounds": options.rounds, "processes": options.processes}
        about |= {"storage": options.storage, "restarted": options.restart, "analysed": options.analyse}
        print(_headline(about), flush=True)
        bench = Bench(
            sides,
            yardstick,
            cores,
            options.clients,
            options.seconds,
            options.rounds,
            restarts=options.restart,
            analyses=options.analyse,
        )
        run = Run(bench, options.scenario)
        run.run()
        results = run.results
        load = " ".join(f"{each:.1f}" for each in os.getloadavg())
        print(f"\n{report.as_text(results, run.not_served)}\n\nLoad average at the end: {load}")
    if options.json is not None:
        content = report.as_json(results, run.not_served, about)
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 1 if any(each.problems for each in results if each.side == SUBJECT) else 0


def _sides(options: Options, cleaning: ExitStack) -> list[Side]:
    """The server that is measured, then those that it is compared with."""
    sides = [_subject(options, cleaning)]
    if options.beside is not None:
        sys.stderr.write(f"Starting `lakewarden dev` of {options.beside} …\n")
        server = cleaning.enter_context(
            DevelopmentServer(checkout=options.beside, processes=options.processes, storage=options.storage)
        )
        sides.append(Side("before", Target.from_ready_file(server.ready), server))
    if options.setting:
        settings = dict(each.split("=", 1) for each in options.setting)
        server = cleaning.enter_context(
            DevelopmentServer(processes=options.processes, storage=options.storage, settings=settings)
        )
        sides.append(Side("with settings", Target.from_ready_file(server.ready), server))
    sides += [_peer(name, cleaning) for name in options.peers]
    return sides


def _peer(name: str, cleaning: ExitStack) -> Side:
    from benchmarks.peers.catalogs import PEERS  # noqa: PLC0415 needs Java, which nothing else here does

    sys.stderr.write(f"Starting {name} …\n")
    folder = Path(cleaning.enter_context(tempfile.TemporaryDirectory(prefix=f"lakewarden-{name}-")))
    return Side(name, cleaning.enter_context(PEERS[name](folder)), warm_up_s=_JAVA_WARM_UP_S)


def _subject(options: Options, cleaning: ExitStack) -> Side:
    if options.uri is not None and options.warehouse is not None:
        target = Target.from_address(
            options.uri,
            warehouse=options.warehouse,
            token=options.token,
            server=options.server_pid,
            postgres=options.postgres_pid,
        )
        cleaning.callback(target.clean_up)
        return Side(SUBJECT, target)
    if options.ready_file is not None:
        target = Target.from_ready_file(options.ready_file)
        cleaning.callback(target.clean_up)
        return Side(SUBJECT, target)
    sys.stderr.write("Starting `lakewarden dev` on a temporary directory …\n")
    server = cleaning.enter_context(DevelopmentServer(processes=options.processes, storage=options.storage))
    return Side(SUBJECT, Target.from_ready_file(server.ready), server)


def _yardstick(options: Options, target: Target, cleaning: ExitStack) -> native.Yardstick | None:
    if not options.yardstick or options.uri is not None or target.store is not None:
        return None
    try:
        program = native.build()
        folder = Path(cleaning.enter_context(tempfile.TemporaryDirectory(prefix="lakewarden-yardstick-")))
        return cleaning.enter_context(native.Yardstick(program, target, folder=folder))
    except NotServed as reason:
        sys.stderr.write(f"No yardstick: {reason}\n")
        return None


def _headline(about: dict[str, object]) -> str:
    machine = about["machine"]
    pinned = "the server on a core of its own" if about["pinned"] else "all share the cores"
    rounds = f"{about['rounds']} rounds of {about['seconds']} s, in turn"
    restarted = ", servers started again before each" if about["restarted"] else ""
    analysed = "; Postgres analysed before each scenario" if about["analysed"] else ""
    return f"{machine}\nprocesses of the server: {about['processes']}; {pinned}; {rounds}{restarted}{analysed}"


if __name__ == "__main__":
    sys.exit(main())
