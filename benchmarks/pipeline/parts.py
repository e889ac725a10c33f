"""The processes of a run: a pipeline and a worker beside a development server, and what kills them."""

import os
import random
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.machine import processes
from standalone import commands
from standalone.process import ManagedProcess
from standalone.ready import ReadyInfo

_GRACE_S = 120.0
_SETTLED_S = 20.0
_LONGEST_PAUSE_S = 10.0


def database_url(ready: Path) -> str:
    data = ready.with_name("data")
    port = (data / "postgres" / "postmaster.pid").read_text(encoding="utf-8").splitlines()[3]
    password = (data / "postgres.password").read_text(encoding="utf-8").strip()
    return f"postgresql://postgres:{password}@127.0.0.1:{port}/lakewarden"


def part(
    name: str, arguments: tuple[str, ...], ready: Path, info: ReadyInfo, more: Mapping[str, str]
) -> ManagedProcess:
    """A command of Lakewarden with the settings of the development server's own parts."""
    data = ready.with_name("data")
    login = {
        "PIPELINE__CATALOG_URI": info.catalog_uri,
        "PIPELINE__OAUTH2_SERVER_URI": info.token_endpoint,
        "PIPELINE__CLIENT_ID": info.engine.client_id,
        "PIPELINE__CLIENT_SECRET": info.engine.client_secret,
        "PIPELINE__SCOPE": info.engine.scope,
    }
    environment = commands.environment(
        database_url=database_url(ready),
        issuer=info.issuer,
        local_root=data / "warehouse",
        keys=data / "secrets.keys",
        more=login | dict(more),
    )
    return ManagedProcess(
        name,
        commands.lakewarden_command(*arguments),
        log=ready.with_name(f"{name}.log"),
        environment={key: value for key, value in environment.items() if not key.startswith("AWS_")},
        directory=Path("/"),
        grace_s=_GRACE_S,
    )


@dataclass(frozen=True, slots=True)
class Blow:
    """A process called `name` is killed `pause_s` after so much of the run's work was done (0 to 1)."""

    at: float
    pause_s: float
    name: str


class Killer:
    """Kills processes with SIGKILL at random points of a run, which depend on `seed` alone.

    The supervisor of the server starts its processes again; `look` starts the others.
    """

    def __init__(self, supervisor: int, parts: Mapping[str, ManagedProcess], *, kills: int, seed: int) -> None:
        self.kills: dict[str, int] = dict.fromkeys(["server", *parts], 0)
        self._supervisor = supervisor
        self._parts = dict(parts)
        self._chance = random.Random(seed)  # noqa: S311 which one it is must be repeatable, not secret
        self._blows = sorted((self._blow() for _ in range(kills)), key=lambda each: each.at)
        self._due: float | None = None
        self._seen: dict[int, float] = {}
        self._dead: set[str] = set()

    def look(self, done: float) -> None:
        """To be called often, with the part of the work that is done."""
        while self._dead:
            process = self._parts[self._dead.pop()]
            process.stop()
            process.start()
        now = time.monotonic()
        if self._due is None and self._blows and done >= self._blows[0].at:
            self._due = now + self._blows[0].pause_s
        if self._due is not None and now >= self._due:
            name = self._blows[0].name
            if self._kill_server() if name == "server" else self._kill_part(name):
                del self._blows[0]
                self._due = None

    def _blow(self) -> Blow:
        name = self._chance.choice(["server", *self._parts, "pipeline"])
        return Blow(self._chance.uniform(0.01, 0.95), self._chance.uniform(0, _LONGEST_PAUSE_S), name)

    def _kill_server(self) -> bool:
        """Some processes that serve, unless one has just been started: the supervisor gives up on those."""
        serving = [each.pid for each in processes.tree(self._supervisor) if each.parent == self._supervisor]
        now = time.monotonic()
        self._seen = {pid: self._seen.get(pid, now) for pid in serving}
        if not serving or any(now - since < _SETTLED_S for since in self._seen.values()):
            return False
        for pid in self._chance.sample(serving, self._chance.randint(1, max(1, len(serving) - 1))):
            self._kill(pid, "server")
        return True

    def _kill_part(self, name: str) -> bool:
        process = self._parts[name]
        below = [each.pid for each in processes.tree(process.pid)]
        if not below:
            return False
        self._kill(below[0], name)
        for pid in below[1:]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._dead.add(name)
        return True

    def _kill(self, pid: int, name: str) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.kills[name] += 1
            sys.stderr.write(f"  {time.strftime('%H:%M:%S')} killed {name} ({pid})\n")


@dataclass(frozen=True, slots=True)
class Log:
    """The logs of all warehouses together: events ever received and not flushed, and batches that wait."""

    received: int
    buffered: int
    waiting: int


def log_of(connection: psycopg.Connection[tuple[object, ...]]) -> Log:
    row = connection.execute(
        "select coalesce(sum(total_events), 0)::bigint, coalesce(sum(buffered_events), 0)::bigint,"
        " coalesce(sum(buffered_batches), 0)::bigint from ingest_log_head"
    ).fetchone()
    assert row is not None  # noqa: S101 an aggregate has a row
    return Log(*(int(str(each)) for each in row))
