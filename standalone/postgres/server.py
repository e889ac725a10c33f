"""The embedded PostgreSQL server: `with EmbeddedPostgres(data_dir) as server: connect(server.url)`."""

import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.parse import quote

import psycopg
from psycopg import sql

from standalone import ports
from standalone.errors import EmbeddedError
from standalone.postgres import binaries, diagnosis, home
from standalone.postgres.cluster import ENVIRONMENT, SUPERUSER, Cluster
from standalone.process import ManagedProcess

_SETTINGS = {
    "listen_addresses": ports.HOST,
    # the Unix socket is not needed, and the length of its path would be limited
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}
_FAST_AND_FORGETFUL = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_PORT_ATTEMPTS = 5
_STOP_GRACE_S = 30.0


class EmbeddedPostgres:
    """One PostgreSQL server below `data_dir`, a child that ends with us, with one database made for use.

    Reachable on 127.0.0.1 as user `postgres` with a random password. As root it runs as the owner of existing
    data or `nobody`; see `home` for where the data are then.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int | None = None,
        database: str = "lakewarden",
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
        shared: Path = home.SHARED,
        start_timeout_s: float = 120.0,
    ) -> None:
        """`durable=False` is for tests: quick, and lost by a crash of the machine.

        `settings` are postgresql.conf's. Without `port` a free one is taken at each start. `shared` is the
        folder for root's fallback.
        """
        self.data_dir = data_dir.absolute()
        self.port = port or 0
        self._wanted_port = port
        self._database = database
        self._settings = _SETTINGS | ({} if durable else _FAST_AND_FORGETFUL) | dict(settings or {})
        self._durable = durable
        self._shared = shared
        self._start_timeout_s = start_timeout_s
        self._password = ""
        self._home: home.Home | None = None
        self._process: ManagedProcess | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def process(self) -> ManagedProcess:
        """The server's process, for watching it."""
        if self._process is None:
            raise EmbeddedError("The embedded PostgreSQL has not been started.")
        return self._process

    @property
    def base(self) -> Path:
        """The folder that holds PostgreSQL's data folder: `data_dir`, or root's fallback."""
        return self._home.base if self._home else self.data_dir

    @property
    def url(self) -> str:
        """The URL of the database that was created for use."""
        return self.url_of(self._database)

    def url_of(self, database: str) -> str:
        """The URL of another database of this server."""
        return f"postgresql://{SUPERUSER}:{quote(self._password)}@{ports.HOST}:{self.port}/{quote(database)}"

    def start(self) -> None:
        """Start the server and wait until a real connection works. `EmbeddedError` says why it does not.

        Call it from a thread that lives as long as the server should (see `ManagedProcess`).
        """
        self._make_data_dir()
        place = home.find(self.data_dir, shared=self._shared)
        self._home = place
        self._password = place.password()
        cluster = Cluster(place, binaries.find(place.account, shared=self._shared), durable=self._durable)
        cluster.ensure_made(self._password)
        cluster.ensure_unused()
        try:
            self._start_on_a_port(cluster)
            self._ensure_database(place)
        except BaseException:  # also at Ctrl-C, the server must not keep running
            self.stop()
            raise

    def stop(self) -> None:
        """Fast shutdown: ends sessions and writes everything. Idempotent."""
        if self._process is not None:
            self._process.stop()

    def _make_data_dir(self) -> None:
        try:
            self.data_dir.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            raise EmbeddedError(
                f"The data directory {self.data_dir} cannot be made: {error.strerror}. "
                "Give another one with --data-dir."
            ) from error

    def _start_on_a_port(self, cluster: Cluster) -> None:
        for _ in range(_PORT_ATTEMPTS):
            self.port = self._wanted_port or ports.free_port()
            self._process = self._child(cluster)
            self._process.start()
            if self._became_ready(cluster):
                return
            text = self._process.log_text()
            if not diagnosis.port_was_taken(text):
                what = f"The embedded PostgreSQL {self._process.ended()} while starting"
                raise EmbeddedError(diagnosis.explain(what, text, place=cluster.home.cluster, log=cluster.home.log))
            if self._wanted_port is not None:
                holder = ports.find_holder(self.port) or "another program"
                raise EmbeddedError(f"Port {self.port} is taken by {holder}: give the database another port.")
        raise EmbeddedError(f"{_PORT_ATTEMPTS} free ports in a row were taken before PostgreSQL could use them.")

    def _child(self, cluster: Cluster) -> ManagedProcess:
        settings = self._settings | {"port": str(self.port)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return ManagedProcess(
            "PostgreSQL",
            [cluster.binaries.postgres, "-D", cluster.home.cluster, *options],
            log=cluster.home.log,
            environment=ENVIRONMENT,
            account=cluster.home.account,
            directory=Path("/"),
            stop_signal=signal.SIGINT,
            orphan_signal=signal.SIGINT,
            grace_s=_STOP_GRACE_S,
        )

    def _became_ready(self, cluster: Cluster) -> bool:
        """True once a connection works; False when the server has ended."""
        deadline = time.monotonic() + self._start_timeout_s
        last = "it is still starting"
        while not self.process.exited:
            if cluster.accepts_connections(self.process.pid):
                try:
                    self._connect().close()
                except psycopg.OperationalError as error:
                    last = str(error).strip()
                else:
                    return True
            if "password authentication failed" in last:
                raise EmbeddedError(
                    f"The password in {self.data_dir / 'postgres.password'} is not that of its database: "
                    "put the right one back, or delete both to start with an empty database."
                )
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"The embedded PostgreSQL was not ready after {self._start_timeout_s:.0f} s: {last} "
                    f"(log: {self.process.log})."
                )
            time.sleep(0.02)
        return False

    def _connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(self.url_of("postgres"), connect_timeout=5, autocommit=True)

    def _ensure_database(self, place: home.Home) -> None:
        try:
            with self._connect() as connection:
                known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [self._database])
                if known.fetchone() is None:
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(self._database)))
        except psycopg.Error as error:
            what = f"The database {self._database} could not be made"
            raise EmbeddedError(diagnosis.explain(what, str(error), place=place.cluster, log=place.log)) from error
