"""`lakewarden serve` as a process of its own, configured like in production: `with serve(settings) as server`.

For lanes with an outside identity provider. Its database is new and migrated in the run's PostgreSQL; it has no
administrator until `bootstrap` (or `POST /management/v1/bootstrap` by a token's holder).
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from lakewarden.config import PREFIX
from lakewarden.config.secrets import new_key
from standalone.commands import lakewarden_command
from standalone.ports import HOST
from standalone.process import ManagedProcess
from standalone.web_server import start_web_server
from tests.servers import postgres

_numbers = count(1)
_COMMAND_TIMEOUT_S = 120


class LakewardenFailed(AssertionError):
    """A `lakewarden` command failed; the message contains its output."""


@dataclass
class LakewardenServer:
    """A `lakewarden serve` with its own database; its port stays the same over `restart`.

    `settings` are its LAKEWARDEN__* variables, `local_root` a directory below which warehouses may lie.
    """

    settings: dict[str, str]
    local_root: Path
    log: Path
    _process: ManagedProcess | None = field(default=None, repr=False)
    _port: int | None = None

    @property
    def uri(self) -> str:
        """`http://127.0.0.1:<port>`."""
        if self._port is None:
            raise LakewardenFailed("`lakewarden serve` has not been started: call `start`.")
        return f"http://{HOST}:{self._port}"

    @property
    def catalog_uri(self) -> str:
        return f"{self.uri}/catalog"

    @property
    def management_uri(self) -> str:
        return f"{self.uri}/management"

    @property
    def process(self) -> ManagedProcess:
        """The running server, to be watched."""
        if self._process is None:
            raise LakewardenFailed("`lakewarden serve` is stopped: call `start`.")
        return self._process

    def run(self, *arguments: str) -> str:
        """Run another `lakewarden` command with the same settings to its end; gives what it wrote."""
        done = subprocess.run(
            lakewarden_command(*arguments),
            env=self._environment(),
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_TIMEOUT_S,
        )
        if done.returncode != 0:
            raise LakewardenFailed(
                f"lakewarden {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def bootstrap(self, admin: str) -> None:
        """Make the user `<provider>~<subject>` the first administrator."""
        self.run("bootstrap", "--admin", admin)

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """Start it, with these settings changed from now on; returns when `/health` answers 200."""
        self.settings |= settings or {}
        self._process, self._port = start_web_server(self._child, path="/health", fixed_port=self._port)

    def stop(self) -> None:
        """Stop it as an operator would (TERM). Twice does no harm."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def restart(self, settings: Mapping[str, str] | None = None) -> None:
        """Stop and start, with these settings changed; the port and the database stay."""
        self.stop()
        self.start(settings)

    def log_text(self) -> str:
        """All that it has written, restarts included."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _child(self, port: int) -> ManagedProcess:
        return ManagedProcess(
            "lakewarden serve",
            lakewarden_command("serve"),
            log=self.log,
            environment=self._environment() | {f"{PREFIX}SERVER__PORT": str(port)},
            directory=Path("/"),
            grace_s=30.0,
        )

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}
        return inherited | self.settings | {"PYTHONUNBUFFERED": "1"}


@contextmanager
def prepared(settings: Mapping[str, str]) -> Iterator[LakewardenServer]:
    """A server with a migrated database that is not started yet; stopped, and its data removed, at the end."""
    directory = Path(tempfile.mkdtemp(prefix="lw-serve-"))
    name = f"serve_{os.getpid()}_{next(_numbers)}"
    with postgres.shared() as database:
        own = {
            f"{PREFIX}SERVER__HOST": HOST,
            f"{PREFIX}SERVER__PROCESSES": "1",
            f"{PREFIX}DATABASE__URL": database.create_database(name),
            f"{PREFIX}STORAGE__LOCAL_ROOTS": str(directory / "warehouses"),
            f"{PREFIX}SECRETS__KEYS": new_key("tests"),
        }
        server = LakewardenServer(own | dict(settings), directory / "warehouses", directory / "serve.log")
        server.local_root.mkdir()
        try:
            server.run("migrate")
            yield server
        finally:
            server.stop()
            database.drop_database(name)
            shutil.rmtree(directory)


@contextmanager
def serve(settings: Mapping[str, str]) -> Iterator[LakewardenServer]:
    """A running server with these LAKEWARDEN__* settings; database, port and storage are its own.

    `EmbeddedError` with the end of its log when it does not start, `LakewardenFailed` when migrating fails.
    """
    with prepared(settings) as server:
        server.start()
        yield server
