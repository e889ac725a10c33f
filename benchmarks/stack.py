"""Starts `lakewarden dev` on a temporary directory, for runs that were given no server."""

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.failures import BenchmarkError
from standalone.commands import lakewarden_command
from standalone.process import ManagedProcess

_START_S = 300.0
_STOP_S = 60.0


@contextmanager
def development_server() -> Iterator[Path]:
    """The ready file of a server of our own, which is stopped and removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="lakewarden-bench-"))
    folder.chmod(0o755)  # started as root, its Postgres runs as another user and has to get in
    ready = folder / "ready.json"
    server = ManagedProcess(
        "`lakewarden dev`",
        lakewarden_command("dev", "--data-dir", str(folder / "data"), "--ready-file", str(ready)),
        log=folder / "dev.log",
        directory=Path("/"),
        orphan_signal=signal.SIGTERM,
        grace_s=_STOP_S,
    )
    try:
        with server:
            _wait(server, ready)
            yield ready
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server: ManagedProcess, ready: Path) -> None:
    deadline = time.monotonic() + _START_S
    while not ready.exists():
        if server.exited:
            raise BenchmarkError(server.obituary(when="while starting"))
        if time.monotonic() > deadline:
            raise BenchmarkError(f"`lakewarden dev` is not ready after {_START_S:.0f} s: {server.log_tail()}")
        time.sleep(0.1)
