"""Purges by real workers that are killed -9 at random, again and again; and a large one, in constant memory.

`LAKEWARDEN_TEST_PURGE_FILES` sets how many files the large one has.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from procrastinate.contrib.django import app
from procrastinate.exceptions import AlreadyEnqueued

from lakewarden.storage.removal import Tally
from lakewarden.tasks import purge
from lakewarden.tasks.stalled import retry_stalled_jobs
from tenants.models import Warehouse
from tests.integration.tasks.purges import Wanted, ask, fill, ledger, outcome, sql

PURGES = 1000
KILLS = 30
WORKERS = 3
MANY_FILES = int(os.environ.get("LAKEWARDEN_TEST_PURGE_FILES", "200000"))
NURSERY = Path(__file__).with_name("worker_nursery.py")
NAMES = (*(f"metadata/{number}.json" for number in range(4)), *(f"data/p={number % 3}/{number}" for number in range(6)))

LARGE = (*NAMES, *(f"data/large/{number}" for number in range(1000)))


class Nursery:
    """Starts workers, kills them, and lets the time pass after which a dead one counts as such."""

    def __init__(self, process: subprocess.Popen[str], registered: Path) -> None:
        self._process, self._registered = process, registered
        self.alive: list[int] = []
        self._dead: list[int] = []

    def start(self) -> int:
        pid = int(self._asked("start"))
        self.alive.append(pid)
        return pid

    def kill(self, pid: int) -> bool:
        """Whether it had not ended by itself, as one does that was thought dead and taken off the list."""
        self.alive.remove(pid)
        self._dead.append(pid)
        return self._asked(f"kill {pid}") == "killed"

    def _asked(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def registered(self) -> dict[int, int]:
        """The ids that workers have in the queue, by their pids."""
        lines = self._registered.read_text().splitlines() if self._registered.exists() else []
        return {int(pid): int(number) for pid, number in (line.split() for line in lines)}

    def let_time_pass(self, *, also_for: int | None = None) -> None:
        """As if a minute had passed since the last sign of life of the dead, and of one who lives."""
        known = self.registered()
        silent = [known[pid] for pid in (*self._dead, *([also_for] if also_for else [])) if pid in known]
        sql("update procrastinate_workers set last_heartbeat = now() - interval '1 minute' where id = any(%s)", silent)
        with contextlib.suppress(AlreadyEnqueued):
            app.configure_task(retry_stalled_jobs.name).defer(timestamp=0)

    def stop(self) -> None:
        self._process.communicate(timeout=10)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "workers.log"


@pytest.fixture
def nursery(warehouse: Warehouse, tmp_path: Path, log: Path) -> Iterator[Nursery]:
    registered = tmp_path / "registered"
    with log.open("wb") as output:
        command = [sys.executable, str(NURSERY), str(registered)]
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output, env=os.environ, text=True
        )
    found = Nursery(child, registered)
    yield found
    found.stop()


def wait_for(condition: Callable[[], bool], *, what: str, log: Path, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen:\n{open_rows()}\n{log.read_text()[-3000:]}"
        time.sleep(0.1)


def files_below(folder: Path) -> set[str]:
    return {os.path.join(root, name) for root, _, names in os.walk(folder) for name in names}  # noqa: PTH118 many


def arrange(sales: Path) -> tuple[list[Path], set[str]]:
    """The folders to purge, and the files that must survive: beside each of them, with names that begin alike."""
    for number in range(PURGES):
        fill(sales / f"t{number}x", ["metadata/0.json"])
        fill(sales / f"t{number}.metadata", ["0"])
    return [sales / f"t{number}" for number in range(PURGES)], files_below(sales)


def drop(warehouse: Warehouse, folders: list[Path]) -> Iterator[Wanted]:
    """The last one is large, so that it takes longer than to notice that it has begun."""
    for folder in folders:
        tally = fill(folder, LARGE if folder == folders[-1] else NAMES)
        yield Wanted(ask(warehouse, folder), folder, tally)


def at_work(nursery: Nursery) -> list[int]:
    """The workers that have a job in hand."""
    holding = {number for (number,) in sql("select worker_id from procrastinate_jobs where status = 'doing'")}
    known = nursery.registered()
    return [pid for pid in nursery.alive if known.get(pid) in holding]


def kill_while_they_work(
    warehouse: Warehouse, nursery: Nursery, folders: list[Path], log: Path, chance: random.Random
) -> list[Wanted]:
    """A part of the purges is asked for right before each kill: whoever is killed has something to do."""
    wanted: list[Wanted] = []
    kills, portion = 0, -(-len(folders) // KILLS)
    for _ in range(WORKERS):
        nursery.start()
    while kills < KILLS:
        wait_for(lambda: set(nursery.alive) <= nursery.registered().keys(), what="the workers", log=log)
        wanted += drop(warehouse, folders[len(wanted) : len(wanted) + portion])
        time.sleep(chance.uniform(0, 0.05))
        # all may be done already, or the folders all asked for
        kills += nursery.kill(chance.choice(at_work(nursery) or nursery.alive))
        nursery.start()
        # now and then somebody is only slow, and loses its work to another
        nursery.let_time_pass(also_for=chance.choice(nursery.alive) if chance.random() < 0.2 else None)
    nursery.start()  # one whom nobody has ever thought dead
    return wanted


def open_tasks() -> int:
    return int(sql("select count(*) from task where outcome is null")[0][0])


def open_rows() -> str:
    """Of some tasks that are not over: their attempts, jobs and what happened to these; and the workers."""
    tables = {
        "task": "select * from task where outcome is null order by id limit 5",
        "attempts": "select a.* from task_attempt a join task t on t.id = a.task_id where t.outcome is null limit 20",
        "jobs": "select j.* from procrastinate_jobs j where j.status <> 'succeeded' order by j.id limit 20",
        "events": "select e.* from procrastinate_events e join task t on t.job_id = e.job_id where t.outcome is null",
        "intents": "select task_id, attempt from purge_intent",
        "workers": "select *, now() from procrastinate_workers",
    }
    return "\n".join(f"{name}: {row}" for name, query in tables.items() for row in sql(query))


@pytest.mark.timeout(900)
def test_purges_are_exact_however_often_their_workers_are_killed(
    warehouse: Warehouse, nursery: Nursery, tmp_path: Path, log: Path
) -> None:
    seed = random.randrange(1_000_000)  # noqa: S311 no secret
    chance = random.Random(seed)  # noqa: S311 no secret
    sales = tmp_path / "lake" / "sales"
    folders, decoys = arrange(sales)
    began = time.monotonic()
    wanted = kill_while_they_work(warehouse, nursery, folders, log, chance)
    interrupted_after = time.monotonic() - began
    wait_for(lambda: nursery.let_time_pass() or open_tasks() == 0, what=f"the end (seed {seed})", log=log)  # type: ignore[func-returns-value]
    took = time.monotonic() - began

    assert len({each.folder for each in wanted}) == PURGES
    assert sql("select outcome, count(*) from task where queue_name = %s group by 1", purge.QUEUE) == [
        ("SUCCESS", PURGES)
    ]
    assert files_below(sales) == decoys
    assert [each.folder for each in wanted if each.folder.exists()] == []
    wrong = [(each.folder.name, each.tally, ledger(each.task_id)) for each in wanted]
    assert [each for each in wrong if each[1] != each[2]] == [], f"seed {seed}"
    assert sql("select 1 from purge_intent") == []
    again = sql("select count(*) from task where attempt > 1")[0][0]
    assert again > 0
    print(  # noqa: T201 the figures
        f"\n{PURGES} purges, {KILLS} kills in {interrupted_after:.0f} s, {again} purges begun again, {took:.0f} s in all"
    )


def fill_many(folder: Path, count: int) -> None:
    for number in range(count):
        inner = f"{folder}/data/{number // 1000}"
        if number % 1000 == 0:
            os.makedirs(inner)  # noqa: PTH103 many
        os.close(os.open(f"{inner}/{number}", os.O_CREAT | os.O_WRONLY))


def peak_kib(task: object, log: Path) -> int:
    """Of a worker process that does the task, and ends."""
    with log.open("ab") as output:
        command = [sys.executable, "-m", "lakewarden.cli", "work"]
        child = subprocess.Popen(command, stdout=output, stderr=output, env=os.environ)
    try:
        wait_for(lambda: outcome(task)[0] == "SUCCESS", what="the purge", log=log, seconds=600)  # type: ignore[arg-type]
    finally:
        child.send_signal(signal.SIGTERM)
        _, _, used = os.wait4(child.pid, 0)
        child.returncode = 0  # it is waited for
    return used.ru_maxrss


@pytest.mark.timeout(900)
def test_a_large_purge_takes_no_more_memory_than_a_small_one(warehouse: Warehouse, tmp_path: Path, log: Path) -> None:
    sales = tmp_path / "lake" / "sales"
    peaks: list[int] = []
    for count in (2_000, MANY_FILES):
        folder = sales / f"t{count}"
        fill_many(folder, count)
        began = time.monotonic()
        task = ask(warehouse, folder)
        peaks.append(peak_kib(task, log))
        took = time.monotonic() - began
        assert ledger(task) == Tally(count, 0, count // 1000 + 2)
        assert not folder.exists()
        print(f"\n{count} files: {took:.1f} s, at most {peaks[-1]} KiB")  # noqa: T201 the figures
    assert peaks[1] - peaks[0] < 10 * 1024
