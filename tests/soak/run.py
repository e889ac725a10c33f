"""One soak from beginning to end: clients write and read, faults come and go, the results are compared with the ledger."""

import asyncio
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from tests.soak import clients, final, report, stack
from tests.soak.book import Book
from tests.soak.faults import Kind, chosen
from tests.soak.ledger import Finding, Verdict
from tests.soak.mending import Unmended
from tests.soak.probe import NotYet, Probe
from tests.soak.report import Report
from tests.soak.timeline import Fault, Timeline


@dataclass(frozen=True)
class Options:
    """It ends when `operations`, `commits`, `faults` and `hours` are reached; `bound_s` is the longest recovery allowed."""

    operations: int = 5_000
    commits: int = 0
    faults: int = 42
    hours: float = 0.0
    seed: int = 1
    workers: int = 2
    processes: int = 1
    committers: int = clients.COMMITTERS
    bound_s: float = 60.0
    only: tuple[str, ...] = ()
    is_quiet: bool = False

    @property
    def arguments(self) -> str:
        told = f"--operations {self.operations} --faults {self.faults} --seed {self.seed}"
        told += f" --hours {self.hours:g}" if self.hours else ""
        usual = Options()
        for name in ("commits", "processes", "committers"):
            value = getattr(self, name)
            told += f" --{name} {value}" if value != getattr(usual, name) else ""
        return told + "".join(f" --only {each}" for each in self.only)


def soak(options: Options, directory: Path) -> Report:
    """Run it in `directory`, where the logs of all processes stay."""
    began = monotonic()
    with stack.started(directory, workers=options.workers, processes=options.processes) as running:
        if not running.is_small_disk:
            _tell(options, "fill-disk is left out: only root may mount the small disk that it fills")
        book = Book(running.ports, list(running.people), [], Timeline(), options.seed)
        at_work = asyncio.run(clients.prepared(book, str(running.disk), committers=options.committers))
        probe = Probe(book.ports, book.admin, book.warehouses[0])
        running.hot, running.calm = probe.kept, probe.calm
        at_work.start()
        try:
            _break(options, book, running, probe, began)
        finally:
            at_work.stop()
        final.compare(book, at_work, running, within_s=4 * options.bound_s)
    return report.made(book, repeat=options.arguments, seconds=monotonic() - began)


def _break(options: Options, book: Book, running: stack.Stack, probe: Probe, began: float) -> None:
    rng = random.Random(options.seed)
    is_several = options.processes > 1
    wanted = chosen(rng, small_disk=running.is_small_disk, several_processes=is_several, only=options.only)
    while not _is_enough(options, book, began):
        time.sleep(rng.uniform(1.5, 2.5))
        if len(book.timeline.faults) >= options.faults and not options.hours:
            continue
        kinds = next(wanted)
        fault = _make(book, running, kinds, rng)
        moves_worker = any(each.moves_worker for each in kinds)
        _wait_until_whole(book, probe, fault, bound_s=options.bound_s, moves_worker=moves_worker)
        _look_after_processes(book, running, fault)
        fault.ended = monotonic()
        took = "not" if fault.recovery_s is None else f"in {fault.recovery_s:.1f} s"
        told = f"{fault.number:4} {fault.kind}: recovered {took}; {book.checked} checked, {book.commits} commits, {len(book.findings)} findings"
        _tell(options, told)


def _is_enough(options: Options, book: Book, began: float) -> bool:
    enough = book.checked >= options.operations and book.commits >= options.commits
    return enough and len(book.timeline.faults) >= options.faults and monotonic() - began >= options.hours * 3600


def _make(book: Book, running: stack.Stack, kinds: tuple[Kind, ...], rng: random.Random) -> Fault:
    """Make the faults together, and mend them after a while."""
    fault = book.timeline.begin("+".join(each.name for each in kinds))
    mends = [each.cause(running, rng) for each in kinds]
    time.sleep(max(rng.uniform(each.least_s, each.most_s) for each in kinds))
    for mend in mends:
        try:
            mend()
        except Unmended as error:
            _wrong(book, fault, str(error))
    fault.lifted = monotonic()
    return fault


def _wait_until_whole(book: Book, probe: Probe, fault: Fault, *, bound_s: float, moves_worker: bool) -> None:
    try:
        probe.replicas(within_s=bound_s)
    except NotYet as error:
        _wrong(book, fault, f"the replicas had not recovered after {bound_s:.0f} s: {error}")
    else:
        fault.recovered = monotonic()
    if moves_worker:
        at = monotonic()
        try:
            probe.worker(within_s=bound_s)
        except NotYet as error:
            _wrong(book, fault, f"no worker worked {bound_s:.0f} s after it: {error}")
        else:
            fault.worker_s = monotonic() - at


def _look_after_processes(book: Book, running: stack.Stack, fault: Fault) -> None:
    """Those that ended by themselves are a finding, and are started again."""
    for worker in running.workers:
        if worker.process is None or worker.process.exited:
            ended = "is gone" if worker.process is None else worker.process.ended()
            _wrong(book, fault, f"a worker {ended} by itself")
            worker.start()
    for replica in running.replicas:
        if replica.process.exited:
            _wrong(book, fault, f"a replica {replica.process.ended()} by itself")
            replica.restart()


def _wrong(book: Book, fault: Fault, what: str) -> None:
    book.findings.append((fault.kind, Finding(Verdict.WRONG, what, monotonic())))


def _tell(options: Options, line: str) -> None:
    if not options.is_quiet:
        sys.stderr.write(f"{line}\n")
