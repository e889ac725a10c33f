"""A process is frozen or killed: the others answer everything within the limits, and recover by themselves."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from lakewarden.config import PREFIX
from lakewarden.doctor import backlog
from standalone import ports
from standalone.commands import lakewarden_command
from standalone.errors import EmbeddedError
from standalone.process import ManagedProcess
from tests.integration.catalog.observed import local
from tests.integration.replicas.exchange import Answer, Call
from tests.integration.replicas.pair import Lake, Pair, Replica, add_clients, started
from tests.servers import postgres
from tests.servers.issuer import run_issuer
from tests.servers.postgres import VARIABLE, PostgresServer
from tests.servers.silent_proxy import SilentProxy, silent_proxy

LOCK_S, STATEMENT_S, IDLE_S, GRACE_S = 2, 3, 4, 3
LIMITS = {
    "LAKEWARDEN__DATABASE__LOCK_TIMEOUT_S": str(LOCK_S),
    "LAKEWARDEN__DATABASE__STATEMENT_TIMEOUT_S": str(STATEMENT_S),
    "LAKEWARDEN__DATABASE__IDLE_IN_TRANSACTION_TIMEOUT_S": str(IDLE_S),
    "LAKEWARDEN__DATABASE__CONNECT_TIMEOUT_S": "3",
}
MACHINE_S = 10.0
"""Additional time for a busy machine."""
CROWD = 20
"""More requests than a server has threads."""


@dataclass
class Scene:
    """Server `b` reaches the database through `proxy`; the database is the scene's own."""

    pair: Pair
    proxy: SilentProxy
    database: PostgresServer

    def kill_database(self) -> None:
        """`kill -9`; its sessions' processes notice and end."""
        assert self.database.embedded is not None
        os.kill(self.database.embedded.process.pid, signal.SIGKILL)
        self.database.embedded.process.wait(10)

    def start_database(self) -> None:
        assert self.database.embedded is not None
        _until(self._is_started, within_s=60, what="the database's start")

    def _is_started(self) -> bool:
        assert self.database.embedded is not None
        try:
            self.database.embedded.start()
        except EmbeddedError:
            return False  # what is left of the killed one has not ended yet
        return True

    @contextmanager
    def session(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        with psycopg.connect(self.pair.a.server.settings["LAKEWARDEN__DATABASE__URL"], autocommit=True) as connection:
            yield connection

    def timed(self, calls: Sequence[Call]) -> tuple[list[Answer], float]:
        begun = time.monotonic()
        return self.pair.ask(calls), time.monotonic() - begun


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    state_dir = tmp_path_factory.mktemp("frozen") / "state"
    signed_in = add_clients(state_dir)
    with pytest.MonkeyPatch.context() as patch, postgres.start(port=ports.free_port()) as database:
        patch.setenv(VARIABLE, database.url)
        port = urlsplit(database.url).port
        assert port is not None
        with silent_proxy(port) as proxy, run_issuer(state_dir) as issuer:
            through = _through(proxy, port)
            with started(issuer, signed_in(issuer)[:2], settings=LIMITS, b_through=through) as pair:
                yield Scene(pair, proxy, database)


def _through(proxy: SilentProxy, port: int) -> Callable[[str], str]:
    return lambda url: url.replace(f":{port}/", f":{proxy.port}/")


@pytest.fixture
def lake(scene: Scene) -> Lake:
    made = Lake.made(scene.pair)
    made.add_namespace("sales")
    made.add_table("sales", "orders")
    made.add_table("sales", "others")
    return made


def _commit(replica: Replica, lake: Lake, table: str, name: str = "a") -> Call:
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: "x"}}]}
    return replica.call(replica.pair.admin, "POST", lake.tables("sales", table), body)


def _long_commit(replica: Replica, lake: Lake, table: str) -> Call:
    """By the route of several tables: its transaction has more statements, between which it may be frozen."""
    change = {
        "identifier": {"namespace": ["sales"], "name": table},
        "requirements": [],
        "updates": [{"action": "set-properties", "updates": {"a": "x"}}],
    }
    return replica.call(replica.pair.admin, "POST", lake.path("transactions", "commit"), {"table-changes": [change]})


def _load(replica: Replica, lake: Lake) -> Call:
    return replica.call(replica.pair.admin, "GET", lake.tables("sales", "others"))


def _honest(answers: Sequence[Answer]) -> None:
    """Each either says that nothing was changed, or that it is not known."""
    for answer in answers:
        assert answer.error in {(503, "ServiceUnavailableException"), (500, "CommitStateUnknownException")}, answer
        assert ("retry-after" in answer.headers) is (answer.status == 503)


def _until(done: Callable[[], bool], *, within_s: float, what: str) -> float:
    begun = time.monotonic()
    while not done():
        assert time.monotonic() - begun < within_s, f"{what} took more than {within_s} s"
        time.sleep(0.1)
    return time.monotonic() - begun


def test_a_row_that_is_held_for_ever_holds_up_nobody_else(scene: Scene, lake: Lake) -> None:
    a = scene.pair.a
    scene.pair.ask([_load(a, lake)])
    with scene.session() as connection, connection.transaction():
        connection.execute("select 1 from tabular where name = 'orders' for update")
        stuck, took = scene.timed([_commit(a, lake, "orders") for _ in range(CROWD)])
        assert {answer.error for answer in stuck} == {(503, "ServiceUnavailableException")}
        assert all("retry-after" in answer.headers for answer in stuck)
        assert took < 2 * LOCK_S + MACHINE_S

        others, took = scene.timed([_commit(a, lake, "others"), _load(a, lake)] * 3)
        assert {answer.status for answer in others} == {200}
        assert took < LOCK_S + MACHINE_S
    assert scene.pair.ask([_commit(a, lake, "orders")])[0].status == 200


_HOLDING = """
    select 1 from pg_stat_activity a join pg_locks l on l.pid = a.pid
    where a.application_name = 'replica_b' and a.state = 'idle in transaction' and l.mode = 'RowExclusiveLock'
        and l.relation = 'tabular'::regclass
"""


async def _frozen_while_it_holds_a_row(scene: Scene, lake: Lake, pid: int) -> "list[asyncio.Task[Answer]]":
    """Have `b` commit until it is caught idle inside a transaction that has changed the row; it stays frozen."""
    running: list[asyncio.Task[Answer]] = []
    deadline = time.monotonic() + 60
    with scene.session() as connection:
        while time.monotonic() < deadline:
            running = [each for each in running if not each.done()]
            while len(running) < 4:
                call = _long_commit(scene.pair.b, lake, "orders")
                running.append(asyncio.create_task(scene.pair.exchange.answer(call)))
            await asyncio.sleep(0.005)
            os.kill(pid, signal.SIGSTOP)
            # what it had sent before is done by then
            await asyncio.sleep(0.05)
            if connection.execute(_HOLDING).fetchone():
                return running
            os.kill(pid, signal.SIGCONT)
    raise AssertionError("it was never caught inside a transaction")


def test_a_frozen_server_holds_up_the_other_only_for_the_idle_time_out(scene: Scene, lake: Lake) -> None:
    a, b = scene.pair.both
    scene.pair.ask([_load(a, lake)])
    pid = b.server.process.pid
    try:
        running = scene.pair.run(_frozen_while_it_holds_a_row(scene, lake, pid))
        frozen_at = time.monotonic()
        answers, took = scene.timed([_commit(a, lake, "orders") for _ in range(CROWD)])
        assert took < 2 * LOCK_S + MACHINE_S
        assert {answer.status for answer in answers} <= {200, 503}, Counter(answer.status for answer in answers)
        others, took = scene.timed([_commit(a, lake, "others"), _load(a, lake)])
        assert {answer.status for answer in others} == {200}
        _until(
            lambda: scene.pair.ask([_commit(a, lake, "orders")])[0].status == 200,
            within_s=IDLE_S + MACHINE_S,
            what="the table's recovery",
        )
        assert time.monotonic() - frozen_at < 2 * LOCK_S + IDLE_S + 2 * MACHINE_S
    finally:
        os.kill(pid, signal.SIGCONT)

    async def told() -> list[Answer]:
        return list(await asyncio.gather(*running))

    # what it was doing was undone, and it says so; it goes on as if nothing had been
    assert {answer.status for answer in scene.pair.run(told())} <= {200, 204, 500, 503}
    assert scene.pair.ask([_commit(b, lake, "orders")])[0].status == 200


def test_a_server_whose_database_falls_silent_gives_up_and_recovers(scene: Scene, lake: Lake) -> None:
    a, b = scene.pair.both
    assert {answer.status for answer in scene.pair.ask([_commit(b, lake, "orders"), _load(b, lake)])} == {200}
    scene.proxy.fall_silent()
    try:
        answers, took = scene.timed([_commit(b, lake, "orders") for _ in range(4)])
        _honest(answers)
        assert took < 2 * (STATEMENT_S + GRACE_S) + MACHINE_S
        read, took = scene.timed([_load(b, lake)])
        assert read[0].status == 503
        assert took < STATEMENT_S + GRACE_S + MACHINE_S
        # whatever it held in the database is given back there
        _until(
            lambda: scene.pair.ask([_commit(a, lake, "orders")])[0].status == 200,
            within_s=IDLE_S + LOCK_S + MACHINE_S,
            what="the other server's commit",
        )
    finally:
        scene.proxy.speak()
    _until(
        lambda: {answer.status for answer in scene.pair.ask([_commit(b, lake, "orders"), _load(b, lake)])} == {200},
        within_s=MACHINE_S,
        what="its recovery",
    )


def test_a_frozen_database_hangs_nobody(scene: Scene, lake: Lake) -> None:
    a = scene.pair.a
    assert {answer.status for answer in scene.pair.ask([_commit(a, lake, "orders"), _load(a, lake)])} == {200}
    with _frozen(scene):
        answers, took = scene.timed([*(_commit(a, lake, "orders") for _ in range(4)), _load(a, lake)])
        _honest(answers)
        assert took < 2 * (STATEMENT_S + GRACE_S) + 3 + MACHINE_S
    _until(
        lambda: {answer.status for answer in scene.pair.ask([_commit(a, lake, "orders"), _load(a, lake)])} == {200},
        within_s=LOCK_S + MACHINE_S,
        what="its recovery",
    )


@contextmanager
def _frozen(scene: Scene) -> Iterator[None]:
    """All of PostgreSQL's processes stand still."""
    with scene.session() as connection:
        backends = [pid for (pid,) in connection.execute("select pid from pg_stat_activity").fetchall()]
    postmaster = _parent_of(backends[0])
    stopped = [postmaster, *backends]
    for pid in stopped:
        _signal(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # the session from which they were listed has ended


def _parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123 a file of the kernel's
        return int(stat.read().rpartition(")")[2].split()[1])


PURGES = 80


def test_a_worker_outlasts_a_database_that_is_killed(scene: Scene, lake: Lake, tmp_path: Path) -> None:
    """`kill -9` of PostgreSQL, then the end of all sessions, while it purges."""
    a, folders = scene.pair.a, []
    for number in range(PURGES):
        lake.add_table("sales", f"dropped{number}")
    for number in range(PURGES):
        path = lake.tables("sales", f"dropped{number}")
        folder = local(a.done("GET", path)["metadata"]["location"])
        (folder / "data").mkdir()
        (folder / "data" / "rows").write_bytes(b"rows")
        folders.append(folder)
        a.done("DELETE", f"{path}?purgeRequested=true")

    def left() -> int:
        return sum(folder.exists() for folder in folders)

    assert left() == PURGES
    log = tmp_path / "worker.log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    worker = ManagedProcess(
        "lakewarden work",
        lakewarden_command("work"),
        log=log,
        environment=environment | a.server.settings,
        grace_s=30,
    )
    with worker:
        _until(lambda: left() < PURGES, within_s=60, what="the first purge")
        scene.kill_database()
        time.sleep(2)
        assert worker.exit_code is None, log.read_text()
        scene.start_database()
        _until(lambda: left() < PURGES // 2, within_s=120, what="half of the purges")
        with scene.session() as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where pid <> pg_backend_pid() and datname = current_database()"
            )
        _until(lambda: left() == 0, within_s=180, what="the last purge")
        assert worker.exit_code is None, log.read_text()
        with scene.session() as connection:
            alive = partial(_worker_finding, connection)
            _until(lambda: alive().startswith("1 alive"), within_s=60, what="the worker's next sign of life")
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.wait(30) == 0
    with scene.session() as connection:
        assert "stopped cleanly" in _worker_finding(connection)


def _worker_finding(connection: "psycopg.Connection[tuple[Any, ...]]") -> str:
    return next(each.sentence for each in backlog.examine(connection) if each.name == "worker")


def test_a_worker_gives_up_with_an_exit_code_when_it_was_told_to(scene: Scene, tmp_path: Path) -> None:
    own = {f"{PREFIX}WORKER__GIVE_UP_AFTER_S": "4", f"{PREFIX}WORKER__STATEMENT_TIMEOUT_S": str(STATEMENT_S)}
    settings = scene.pair.b.server.settings | own
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)} | settings
    log = tmp_path / "worker.log"
    worker = ManagedProcess("lakewarden work", lakewarden_command("work"), log=log, environment=environment, grace_s=30)
    with worker, scene.session() as connection:
        _until(lambda: "alive" in _worker_finding(connection), within_s=60, what="its start")
        scene.proxy.fall_silent()
        try:
            code = worker.wait(120)
        finally:
            scene.proxy.speak()
    assert code == 1, log.read_text()
    assert "the worker stops" in log.read_text()
