"""The faults, and how they are repaired; one at a time, sometimes two together.

Each kind breaks something at once and returns the function that repairs it, with the time until then.
"""

import os
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from standalone.errors import EmbeddedError
from standalone.process import ManagedProcess
from tests.servers.lakewarden_serve import LakewardenServer
from tests.soak.freezing import freeze_lock_holder
from tests.soak.mending import Mend, Unmended
from tests.soak.stack import Network, Stack, Worker, children

STOP_WITHIN_S = 30.0


@dataclass(frozen=True)
class Kind:
    """`least_s` and `most_s`: how long it stays broken. `moves_worker`: whether work must be shown to go on after it.

    `needs_processes`: each replica must have several.
    """

    name: str
    cause: Callable[[Stack, random.Random], Mend]
    least_s: float = 0.0
    most_s: float = 0.5
    moves_worker: bool = False
    needs_processes: bool = False


def _kill_replica(stack: Stack, rng: random.Random) -> Mend:
    replica = rng.choice(stack.replicas)
    for pid in stack.pids_of(replica):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return lambda: _restart(replica)


def _kill_process(stack: Stack, rng: random.Random) -> Mend:
    """One of those that serve: the replica replaces it by itself."""
    for pid in _one_that_serves(stack, rng):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return lambda: None


def _freeze_process(stack: Stack, rng: random.Random) -> Mend:
    return _frozen(_one_that_serves(stack, rng))


def _one_that_serves(stack: Stack, rng: random.Random) -> list[int]:
    """None when all of a replica were killed a moment ago and are not replaced yet."""
    found = children(rng.choice(stack.replicas).process.pid)
    return rng.sample(found, 1) if found else []


def _stop_replica(stack: Stack, rng: random.Random) -> Mend:
    replica = rng.choice(stack.replicas)
    os.kill(replica.process.pid, signal.SIGTERM)

    def mend() -> None:
        try:
            _ended_cleanly(replica.process)
        finally:
            _restart(replica)

    return mend


def _freeze_replica(stack: Stack, rng: random.Random) -> Mend:
    return _frozen(stack.pids_of(rng.choice(stack.replicas)))


def _kill_postgres(stack: Stack, rng: random.Random) -> Mend:
    os.kill(stack.postgres.process.pid, signal.SIGKILL)
    return stack.restart_postgres


def _freeze_postgres(stack: Stack, rng: random.Random) -> Mend:
    main = stack.postgres.process.pid
    return _frozen([main, *children(main)])


def _cut_sessions(stack: Stack, rng: random.Random) -> Mend:
    with stack.database() as database:
        database.execute(_CUT, [rng.choice([0.3, 1.0])])
    return lambda: None


def _kill_worker(stack: Stack, rng: random.Random) -> Mend:
    worker = rng.choice(stack.workers)
    assert worker.process is not None
    os.kill(worker.process.pid, signal.SIGKILL)
    return lambda: _restart_worker(worker)


def _stop_worker(stack: Stack, rng: random.Random) -> Mend:
    worker = rng.choice(stack.workers)
    assert worker.process is not None
    process, is_starting = worker.process, worker.is_starting
    os.kill(process.pid, signal.SIGTERM)

    def mend() -> None:
        try:
            # one that has not begun to work has nothing to finish, and the signal itself ends it
            if not (is_starting and process.wait(STOP_WITHIN_S) == -signal.SIGTERM):
                _ended_cleanly(process)
        finally:
            _restart_worker(worker)

    return mend


def _fill_disk(stack: Stack, rng: random.Random) -> Mend:
    """The disk of the warehouses, and no other."""
    ballast = stack.disk / "ballast"
    with suppress(OSError), ballast.open("wb") as file:
        free = os.statvfs(stack.disk)
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize)
    with suppress(OSError), ballast.open("ab") as file:
        while True:
            file.write(b"x" * 4096)
            file.flush()
    return ballast.unlink


def _pause_network(stack: Stack, rng: random.Random) -> Mend:
    """Between one replica and the database nothing is delivered for a while."""
    network = rng.choice(stack.networks)
    assert network.process is not None
    return _frozen([network.process.pid])


def _cut_network(stack: Stack, rng: random.Random) -> Mend:
    """All connections between one replica and the database end, and no new one can be made for a while."""
    network: Network = rng.choice(stack.networks)
    network.cut()
    return network.start


KINDS = (
    Kind("kill-replica", _kill_replica),
    Kind("kill-process", _kill_process, needs_processes=True),
    Kind("freeze-process", _freeze_process, 0.3, 3.0, needs_processes=True),
    Kind("stop-replica", _stop_replica),
    Kind("freeze-replica", _freeze_replica, 0.3, 3.0),
    Kind("freeze-lock-holder", freeze_lock_holder, 0.5, 1.0),
    Kind("kill-postgres", _kill_postgres, moves_worker=True),
    Kind("freeze-postgres", _freeze_postgres, 0.3, 3.0),
    Kind("cut-sessions", _cut_sessions, 0.0, 0.0, moves_worker=True),
    Kind("kill-worker", _kill_worker, moves_worker=True),
    Kind("stop-worker", _stop_worker, moves_worker=True),
    Kind("fill-disk", _fill_disk, 0.3, 2.0),
    Kind("pause-network", _pause_network, 0.3, 3.0),
    Kind("cut-network", _cut_network, 0.1, 1.0),
)
TOGETHER = (
    ("kill-replica", "kill-worker"),
    ("freeze-replica", "cut-sessions"),
    ("fill-disk", "kill-replica"),
    ("pause-network", "kill-worker"),
    ("kill-postgres", "kill-worker"),
    ("freeze-replica", "cut-network"),
)
"""Made one after the other, mended in the same order."""


def chosen(
    rng: random.Random, *, small_disk: bool, several_processes: bool = False, only: Sequence[str] = ()
) -> Iterator[tuple[Kind, ...]]:
    """Without end: all kinds (or `only` some) in a new order, then two pairs, and again."""
    known = {each.name: each for each in KINDS if small_disk or each.name != "fill-disk"}
    known = {name: kind for name, kind in known.items() if several_processes or not kind.needs_processes}
    known = {name: kind for name, kind in known.items() if not only or name in only}
    pairs = [pair for pair in TOGETHER if set(pair) <= set(known)]
    while True:
        for kind in rng.sample(list(known.values()), len(known)):
            yield (kind,)
        for pair in rng.sample(pairs, min(2, len(pairs))):
            yield tuple(known[name] for name in pair)


def _frozen(pids: list[int]) -> Mend:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)

    def mend() -> None:
        for pid in reversed(pids):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    return mend


def _restart(replica: LakewardenServer) -> None:
    """Raises Unmended when it does not come up in two tries."""
    for last in (False, True):
        replica.stop()
        try:
            replica.start()
        except EmbeddedError as error:
            if last:
                raise Unmended(str(error)) from error
        else:
            return


def _restart_worker(worker: Worker) -> None:
    if worker.process is not None:
        worker.process.stop()
    worker.start()


def _ended_cleanly(process: ManagedProcess) -> None:
    """Raises Unmended when it does not end in its time, or not with 0."""
    if process.wait(STOP_WITHIN_S) is None:
        raise Unmended(f"{process.name} still ran {STOP_WITHIN_S:.0f} s after SIGTERM")
    if process.exit_code != 0:
        raise Unmended(f"{process.name} {process.ended()} after SIGTERM")


_CUT = """
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name <> 'soak' and random() < %s
"""
