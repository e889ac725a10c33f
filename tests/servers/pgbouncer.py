"""A real pgbouncer in front of a PostgreSQL: `with pgbouncer(url, mode="session") as bouncer: bouncer.url`.

It is Debian's package: as root it is installed when it is missing, else the lane fails by name.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import psycopg

from standalone import ports
from standalone.ports import HOST
from standalone.process import ManagedProcess
from tests.servers import debian

Mode = Literal["session", "transaction", "statement"]

_ACCOUNT = "nobody"
_POOL = "lakewarden"


@dataclass
class PgBouncer:
    """`url` is the database's through it; `set_mode` changes `pool_mode` while it runs."""

    url: str
    port: int
    directory: Path
    target: str

    def set_mode(self, mode: Mode) -> None:
        self.write(mode)
        with psycopg.connect(f"postgresql://{_POOL}@{HOST}:{self.port}/pgbouncer", autocommit=True) as console:
            console.execute("RELOAD", prepare=False)

    def write(self, mode: Mode) -> None:
        """Its configuration file."""
        target = urlsplit(self.target)
        (self.directory / "pgbouncer.ini").write_text(
            "[databases]\n"
            f"{_POOL} = host={target.hostname} port={target.port} dbname={target.path[1:]} user={target.username} "
            f"password='{unquote(target.password or '')}'\n"
            "[pgbouncer]\n"
            f"listen_addr = {HOST}\nlisten_port = {self.port}\nunix_socket_dir =\nauth_type = any\n"
            f"admin_users = {_POOL}\npool_mode = {mode}\nmax_client_conn = 500\ndefault_pool_size = 80\n"
            # application_name is known to it; nothing else that we send may need to be ignored
            "ignore_startup_parameters =\n"
        )


@contextmanager
def pgbouncer(target: str, *, mode: Mode) -> Iterator[PgBouncer]:
    """`target` is the address of a database of PostgreSQL."""
    directory = Path(tempfile.mkdtemp(prefix="lw-pgbouncer-"))
    directory.chmod(0o755)
    port = ports.free_port()
    bouncer = PgBouncer(f"postgresql://{_POOL}@{HOST}:{port}/{_POOL}", port, directory, target)
    bouncer.write(mode)
    as_other = ["-u", _ACCOUNT] if os.geteuid() == 0 else []
    command = [debian.program("pgbouncer", package="pgbouncer"), *as_other, str(directory / "pgbouncer.ini")]
    process = ManagedProcess("pgbouncer", command, log=directory / "pgbouncer.log")
    try:
        with process:
            _await_ready(bouncer, process)
            yield bouncer
    finally:
        shutil.rmtree(directory)


def _await_ready(bouncer: PgBouncer, process: ManagedProcess) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(bouncer.url, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            if process.exited or time.monotonic() > deadline:
                raise AssertionError(f"pgbouncer is not ready:\n{process.log_text()}") from error
            time.sleep(0.1)
        else:
            return
