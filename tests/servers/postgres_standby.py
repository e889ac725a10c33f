"""A PostgreSQL server and its standby (streaming replication), of which the first can be lost and the second promoted."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from standalone.errors import EmbeddedError
from standalone.ports import HOST, free_port
from standalone.postgres import EmbeddedPostgres, binaries, home
from standalone.postgres.cluster import ENVIRONMENT, SUPERUSER
from standalone.process import ManagedProcess

_PATIENCE_S = 60.0
# the machine does not fail here, only processes do
_SETTINGS = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}


@dataclass
class Servers:
    """`url` names both, the primary first, as an installation would be told of them."""

    primary: EmbeddedPostgres
    standby: ManagedProcess
    standby_port: int

    @property
    def url(self) -> str:
        """Of both servers and the database for use."""
        known = self.primary.url
        return known.replace(f":{self.primary.port}/", f":{self.primary.port},{HOST}:{self.standby_port}/")

    def replicate_synchronously(self) -> None:
        """From now on a commit is acknowledged when the standby has it, too."""
        with self._at(self.primary.port) as connection:
            connection.execute("alter system set synchronous_standby_names = '*'")
            connection.execute("select pg_reload_conf()")
        _until(lambda: self._told(self.primary.port, "select sync_state from pg_stat_replication") == "sync")

    def cut_off_the_standby(self) -> None:
        """From now on it receives nothing."""
        with self._at(self.standby_port) as connection:
            connection.execute("alter system set primary_conninfo = ''")
            connection.execute("select pg_reload_conf()")
        _until(lambda: self._told(self.standby_port, "select count(*) from pg_stat_wal_receiver") == 0)

    def lose_the_primary(self) -> None:
        """SIGKILL for it and each of its sessions at once: a session would finish what it does."""
        pid = self.primary.process.pid
        os.kill(pid, signal.SIGSTOP)
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
        self.primary.process.wait(_PATIENCE_S)

    def promote_the_standby(self) -> None:
        with self._at(self.standby_port) as connection:
            connection.execute("alter system reset synchronous_standby_names")
            connection.execute("select pg_reload_conf()")
            connection.execute("select pg_promote()")
        _until(lambda: self._told(self.standby_port, "select pg_is_in_recovery()") is False)

    def _at(self, port: int) -> "psycopg.Connection[tuple[object, ...]]":
        known = self.primary.url_of("postgres")
        return psycopg.connect(known.replace(f":{self.primary.port}/", f":{port}/"), autocommit=True, connect_timeout=5)

    def _told(self, port: int, question: str) -> object:
        with self._at(port) as connection:
            row = connection.execute(question).fetchone()
        return row and row[0]


@contextmanager
def start() -> Iterator[Servers]:
    """Both, in folders that are gone at the end."""
    directory = Path(tempfile.mkdtemp(prefix="lw-standby-"))
    directory.chmod(0o711)  # root's server runs as another user, who must be able to enter
    primary = EmbeddedPostgres(directory / "primary", settings=_SETTINGS)
    place = None
    try:
        with primary:
            (directory / "standby").mkdir(mode=0o755)
            place = home.find(directory / "standby")
            place.cluster.mkdir(mode=0o700)
            place.give(place.cluster)
            port = free_port()
            copy = _child("pg_basebackup", primary, place, ["-R", "-c", "fast", "-d", primary.url_of("postgres"), "-D"])
            with copy:
                assert copy.wait(_PATIENCE_S) == 0, copy.log_text()
            settings = [f"{name}={value}" for name, value in {**_SETTINGS, "port": port}.items()]
            options = [part for each in settings for part in ("-c", each)]
            options += ["-c", f"listen_addresses={HOST}", "-c", "unix_socket_directories=", "-c", "max_connections=200"]
            with _child("postgres", primary, place, [*options, "-D"]) as standby:
                servers = Servers(primary, standby, port)
                _until(lambda: servers._told(port, "select pg_is_in_recovery()") is True)
                yield servers
    finally:
        for folder in {directory, primary.base, place.base if place else directory}:
            shutil.rmtree(folder, ignore_errors=folder != directory)


def _child(name: str, primary: EmbeddedPostgres, place: home.Home, arguments: list[str]) -> ManagedProcess:
    """A program of PostgreSQL on the standby's data, as the user who owns it."""
    postgres = binaries.find(place.account, shared=home.SHARED).postgres
    return ManagedProcess(
        f"{name} of the standby of {SUPERUSER}@{primary.port}",
        [postgres.with_name(name), *arguments, place.cluster],
        log=place.data_dir / f"{name}.log",
        environment=ENVIRONMENT,
        account=place.account,
        directory=Path("/"),
        stop_signal=signal.SIGINT,
        orphan_signal=signal.SIGINT,
    )


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            if is_so():
                return
        except psycopg.OperationalError:
            pass
        if time.monotonic() > end:
            raise EmbeddedError("PostgreSQL and its standby did not reach the state that was waited for")
        time.sleep(0.05)
