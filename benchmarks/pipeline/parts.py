"""The processes of a run: a pipeline and a worker beside a development server, and what kills them."""

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psycopg

from benchmarks.machine import processes
from standalone import commands
from standalone.process import ManagedProcess
from standalone.ready import ReadyInfo

_GRACE_S = 120.0
_SETTLED_S = 20.0


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


class Killer(threading.Thread):
    """Kills a process with SIGKILL about each `every_s` seconds.

    Those that nobody supervises are started again by `revive`, which the main thread calls: a process ends with the
    thread that started it.
    """

    def __init__(self, supervisor: int, parts: Mapping[str, ManagedProcess], *, every_s: float) -> None:
        super().__init__(name="killer", daemon=True)
        self.kills: dict[str, int] = dict.fromkeys(["server", *parts], 0)
        self._supervisor = supervisor
        self._parts = dict(parts)
        self._every_s = every_s
        self._chance = random.Random(7)  # noqa: S311 which one it is must be repeatable, not secret
        self._stopped = threading.Event()
        self._seen: dict[int, float] = {}
        self._dead: set[str] = set()

    def revive(self) -> None:
        """Starts what was killed."""
        while self._dead:
            process = self._parts[self._dead.pop()]
            process.stop()
            process.start()

    def run(self) -> None:
        while not self._stopped.wait(self._every_s * self._chance.uniform(0.5, 1.5)):
            name = self._chance.choice(["server", *self._parts, "pipeline"])
            if name == "server":
                self._kill_server()
            elif name not in self._dead:
                self._kill_part(name)
                self._dead.add(name)

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def _kill_server(self) -> None:
        """Each process that serves, unless one has just been started: the supervisor gives up on those."""
        serving = [each.pid for each in processes.tree(self._supervisor) if each.parent == self._supervisor]
        now = time.monotonic()
        self._seen = {pid: self._seen.get(pid, now) for pid in serving}
        if serving and all(now - since >= _SETTLED_S for since in self._seen.values()):
            for pid in self._chance.sample(serving, self._chance.randint(1, max(1, len(serving) - 1))):
                self._kill(pid, "server")

    def _kill_part(self, name: str) -> None:
        process = self._parts[name]
        below = [each.pid for each in processes.tree(process.pid)]
        self._kill(below[0], name)
        for pid in below[1:]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _kill(self, pid: int, name: str) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.kills[name] += 1
            sys.stderr.write(f"  {time.strftime('%H:%M:%S')} killed {name} ({pid})\n")


def head(connection: psycopg.Connection[tuple[object, ...]]) -> tuple[int, int, int]:
    """Events received, the last position, and the one up to which all is in snapshots."""
    row = connection.execute(
        "select coalesce(sum(total_events), 0)::bigint, coalesce(max(last_position), 0),"
        " coalesce(max(flushed_position), 0) from ingest_log_head"
    ).fetchone()
    assert row is not None  # noqa: S101 an aggregate has a row
    return int(str(row[0])), int(str(row[1])), int(str(row[2]))
