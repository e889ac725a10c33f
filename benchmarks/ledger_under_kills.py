"""`python -m benchmarks.ledger_under_kills`: many fast commits while server and database are killed, and their ledger.

The soak has more kinds of faults and checks; this has more commits. Both kinds of commit scenarios take turns: tables
apart, and one table for all clients. Between the two, the files of each table's history are compared with the answers.
"""

import argparse
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

from benchmarks.failures import BenchmarkError
from benchmarks.load.closed_loop import Plan, drive
from benchmarks.machine import processes
from benchmarks.scenarios.commits import PropertyCommits, PropertyWorkload
from benchmarks.stack import DevelopmentServer
from benchmarks.target import Target
from standalone.signals import interrupting

_SLICE_S = 20.0
_STEADY_S = 40.0
_RECOVERY_S = 120.0


@dataclass(slots=True)
class Outcome:
    """`unknown` are those without an answer, or with one of 5xx: applied or not, but never twice."""

    commits: int = 0
    unknown: int = 0
    kills: int = 0
    database_kills: int = 0
    problems: list[str] = field(default_factory=list)

    def note(self, workload: PropertyWorkload, problem: str | None) -> None:
        ledgers = {id(each): each for each in workload.ledgers}.values()
        self.commits += sum(len(each.acknowledged) for each in ledgers)
        self.unknown += sum(each.unknown for each in ledgers)
        if problem is not None:
            sys.stderr.write(f"  WRONG {problem}\n")
            self.problems.append(problem)


class Killer(threading.Thread):
    """Kills one of the processes that serve or, in turn, of Postgres, when all are up; looks every `every_s` seconds.

    The supervisor replaces its own. When a session of Postgres is killed, Postgres ends all others at once and recovers
    from its log, as after kill -9 of all of it.
    """

    def __init__(self, supervisor: int, postgres: int | None, *, every_s: float, seed: int) -> None:
        super().__init__(name="killer", daemon=True)
        self.kills = 0
        self.database_kills = 0
        self._postgres = postgres
        self._supervisor = supervisor
        self._every_s = every_s
        self._rng = random.Random(seed)  # noqa: S311 which one it is must be repeatable, not secret
        self._over = threading.Event()
        self._may = threading.Event()
        self._seen: dict[int, float] = {}

    def run(self) -> None:
        while not self._over.wait(self._every_s):
            now = time.monotonic()
            serving = [each.pid for each in processes.tree(self._supervisor) if each.parent == self._supervisor]
            self._seen = {pid: self._seen.get(pid, now) for pid in serving}
            # one goes on, and a server whose processes end while they start would end, as it should
            if (
                self._may.is_set()
                and len(serving) > 1
                and all(now - since > _STEADY_S for since in self._seen.values())
            ):
                self._kill(serving)

    def _kill(self, serving: list[int]) -> None:
        sessions = _sessions(self._postgres)
        with suppress(ProcessLookupError):
            if sessions and self.kills > self.database_kills:
                os.kill(self._rng.choice(sessions), signal.SIGKILL)
                self.database_kills += 1
            else:
                os.kill(self._rng.choice(serving), signal.SIGKILL)
                self.kills += 1
                return
        self._seen.clear()  # the next one is killed when all have been steady again

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """It kills while the block lasts, and lets the set-up and the comparison alone."""
        self._may.set()
        try:
            yield
        finally:
            self._may.clear()

    def stop(self) -> None:
        self._over.set()
        self.join()


def _sessions(postgres: int | None) -> list[int]:
    """Postgres' processes that answer clients: their titles name the client's address, with its port."""
    if postgres is None:
        return []
    tree = [each for each in processes.tree(postgres) if each.parent == postgres]
    return [each.pid for each in tree if b"(" in Path(f"/proc/{each.pid}/cmdline").read_bytes()]


def _until_ready(target: Target) -> None:
    """Postgres may still be recovering."""
    deadline = time.monotonic() + _RECOVERY_S
    parts = urlsplit(target.client.uri)
    while True:
        with suppress(OSError), urlopen(f"http://{parts.netloc}/health/ready", timeout=5):
            return
        if time.monotonic() > deadline:
            raise BenchmarkError(f"The server is not ready again after {_RECOVERY_S:.0f} s")
        time.sleep(0.2)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger_under_kills", description=__doc__)
    parser.add_argument("--commits", type=int, default=100_000, help="acknowledged, at least [100000]")
    parser.add_argument("--clients", type=int, default=32, help="connections [32]")
    parser.add_argument("--processes", type=int, default=2, help="that serve [2]")
    parser.add_argument("--every", type=float, default=5.0, metavar="S", help="seconds between two looks [5]")
    parser.add_argument("--seed", type=int, default=1, help="which process is killed when [1]")
    options = parser.parse_args()
    began = time.monotonic()
    try:
        with interrupting(), DevelopmentServer(processes=options.processes) as server:
            found = measured(options, server.ready)
    except BenchmarkError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    verdict = "nothing lost, nothing doubled" if not found.problems else "; ".join(found.problems)
    kills = f"{found.kills} processes and {found.database_kills} times the database killed"
    minutes = (time.monotonic() - began) / 60
    print(
        f"{found.commits:,} acknowledged commits, {found.unknown:,} of unknown outcome, {kills}, {minutes:.1f} minutes"
    )
    print(verdict)
    return 1 if found.problems else 0


def measured(options: argparse.Namespace, ready: Path) -> Outcome:
    target = Target.from_ready_file(ready)
    if target.parts.server is None:
        raise BenchmarkError("The server's processes cannot be seen: this works on Linux only")
    found = Outcome()
    scenarios = [
        PropertyCommits("commit-apart", "", is_contended=False),
        PropertyCommits("commit-contended", "", is_contended=True),
    ]
    for scenario in scenarios:
        scenario.prepare(target)
    killer = Killer(target.parts.server, target.parts.postgres, every_s=options.every, seed=options.seed)
    killer.start()
    try:
        while found.commits < options.commits:
            for scenario in scenarios:
                target.renew(ready)  # connections to a process that was killed are of no use
                endpoint = target.endpoint
                workload = scenario.workload(endpoint, options.clients)
                assert isinstance(workload, PropertyWorkload)  # noqa: S101 what this scenario makes
                with killer.at_work():
                    drive(endpoint, workload, Plan(options.clients, _SLICE_S, 0))
                _until_ready(target)
                target.renew(ready)
                found.note(workload, scenario.verdict(workload))
                kills = f"{killer.kills} + {killer.database_kills} kills"
                sys.stderr.write(f"  {found.commits:,} commits, {found.unknown:,} unknown, {kills}\n")
    finally:
        killer.stop()
    found.kills, found.database_kills = killer.kills, killer.database_kills
    return found


if __name__ == "__main__":
    sys.exit(main())
