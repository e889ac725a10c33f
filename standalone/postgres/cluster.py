"""Creates and checks PostgreSQL's data folder; after any interruption it is either complete or missing."""

import contextlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from standalone.errors import EmbeddedError
from standalone.postgres import diagnosis
from standalone.postgres.binaries import MAJOR, Binaries
from standalone.postgres.home import Home
from standalone.private_files import write_private
from standalone.process import ManagedProcess

SUPERUSER = "postgres"
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
_LEAST_FREE_BYTES = 200 * 1024 * 1024
_INITDB_TIMEOUT_S = 300.0
_PREVIOUS_END_S = 15.0
_STATUS_LINE = 7


@dataclass(frozen=True)
class Cluster:
    """The data folder of one server."""

    home: Home
    binaries: Binaries
    durable: bool

    def ensure_made(self, password: str) -> None:
        """Create the data folder if it is missing.

        It is made under another name and renamed when it is whole: what a killed attempt left is swept away.
        """
        if self.home.cluster.exists():
            self._check_version()
            return
        unfinished = self.home.unfinished
        shutil.rmtree(unfinished, ignore_errors=True)
        self._check_space()
        unfinished.mkdir(mode=0o700)
        self.home.give(unfinished)
        try:
            self._run_initdb(password)
            (unfinished / "data").rename(self.home.cluster)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def ensure_unused(self) -> None:
        """Wait for a server that an earlier, killed parent left to end, and remove a stale lock file.

        PostgreSQL judges its lock file by the pid, and would refuse to start if another program has that pid.
        """
        lock = self.home.cluster / "postmaster.pid"
        deadline = time.monotonic() + _PREVIOUS_END_S
        while (pid := self._live_server(lock)) is not None:
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"Another PostgreSQL (pid {pid}) is using {self.home.cluster}: "
                    f"stop it with `kill -INT {pid}` and start again."
                )
            time.sleep(0.1)
        lock.unlink(missing_ok=True)

    def accepts_connections(self, pid: int) -> bool:
        """Whether server `pid` says in its lock file that it is ready.

        Asked before connecting, so that we never talk to a stranger who was quicker to take the port.
        """
        try:
            lines = (self.home.cluster / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > _STATUS_LINE and lines[0] == str(pid) and lines[_STATUS_LINE].strip() == "ready"

    def _run_initdb(self, password: str) -> None:
        secret = self.home.unfinished / "password"
        write_private(secret, password)
        self.home.give(secret)
        command: list[str | Path] = [
            self.binaries.initdb,
            "-D",
            self.home.unfinished / "data",
            "-U",
            SUPERUSER,
        ]
        command += ["-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8"]
        # the same collation on every system, even if the system has no C.UTF-8
        command += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command += [] if self.durable else ["--no-sync"]
        initdb = ManagedProcess(
            "initdb",
            command,
            log=self.home.log.with_name("initdb.log"),
            environment=ENVIRONMENT,
            account=self.home.account,
            directory=Path("/"),
        )
        with initdb:
            code = initdb.wait(_INITDB_TIMEOUT_S)
        if code != 0:
            what = "The embedded database could not be made"
            raise EmbeddedError(diagnosis.explain(what, initdb.log_text(), place=self.home.base, log=initdb.log))

    def _check_version(self) -> None:
        path = self.home.cluster / "PG_VERSION"
        try:
            found = path.read_text().strip()
        except OSError as error:
            raise EmbeddedError(
                f"{self.home.cluster} cannot be read as a PostgreSQL data folder ({error.strerror}): "
                "start as its owner, or move it away to start with an empty database."
            ) from error
        if found != str(MAJOR):
            raise EmbeddedError(
                f"The database in {self.home.cluster} is PostgreSQL {found}'s, and this version brings "
                f"{MAJOR}: start the version that made it, or move it away to start with an empty database."
            )

    def _check_space(self) -> None:
        free = shutil.disk_usage(self.home.base).free
        if free < _LEAST_FREE_BYTES:
            raise EmbeddedError(
                f"The disk that holds {self.home.base} is full: {free // 2**20} MiB are free and "
                f"{_LEAST_FREE_BYTES // 2**20} MiB are needed. Free some, or give another directory "
                "with --data-dir."
            )

    def _live_server(self, lock: Path) -> int | None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int(lock.read_text().splitlines()[0])
            os.kill(pid, 0)
            return pid if self._is_ours(pid) else None
        return None

    def _is_ours(self, pid: int) -> bool:
        """Whether process `pid` is a server of this folder, which is then its working directory."""
        try:
            return Path(f"/proc/{pid}/cwd").samefile(self.home.cluster)
        except FileNotFoundError:
            # it has ended, or the system has no /proc, so only the pid can be checked
            return not Path("/proc/self").exists()
