"""Starts `lakewarden dev` on a temporary directory, for runs that were given no server."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from benchmarks.failures import BenchmarkError
from standalone.commands import lakewarden_command
from standalone.process import ManagedProcess

_START_S = 300.0
_STOP_S = 60.0


class DevelopmentServer:
    """A server of our own, stopped and removed at the end; its data and addresses survive `restart`.

    `storage` is the kind of its warehouse, as `lakewarden dev --warehouse` knows it; `endpoint` is that of an S3 store
    that is running, whose keys are in the environment.
    `settings` are variables of its environment.
    `checkout` is another working copy, with an environment in its `.venv`, whose code is started instead of this one.
    """

    def __init__(
        self,
        *,
        checkout: Path | None = None,
        processes: int = 1,
        storage: str = "file",
        endpoint: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="lakewarden-bench-"))
        self._folder.chmod(0o755)  # started as root, its Postgres runs as another user and has to get in
        self.ready = self._folder / "ready.json"
        places = ("--data-dir", str(self._folder / "data"), "--ready-file", str(self.ready))
        store = ("--s3-endpoint", endpoint) if endpoint else ()
        arguments = ("dev", "--warehouse", storage, *store, *places)
        self._server = ManagedProcess(
            "`lakewarden dev`",
            lakewarden_command(*arguments) if checkout is None else command_of(checkout, *arguments),
            log=self._folder / "dev.log",
            environment={**_environment(processes, is_other=checkout is not None), **(settings or {})},
            directory=Path("/"),
            orphan_signal=signal.SIGTERM,
            grace_s=_STOP_S,
        )

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def restart(self) -> None:
        """Stop it with its database and start both again."""
        self._server.stop()
        self._start()

    def _start(self) -> None:
        self._server.start()
        deadline = time.monotonic() + _START_S
        while not self.ready.exists():
            if self._server.exited:
                raise BenchmarkError(self._server.obituary(when="while starting"))
            if time.monotonic() > deadline:
                raise BenchmarkError(f"`lakewarden dev` is not ready after {_START_S:.0f} s: {self._server.log_tail()}")
            time.sleep(0.1)

    def _remove(self) -> None:
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def command_of(checkout: Path, *arguments: str) -> list[str]:
    """`lakewarden <arguments>` of another working copy. BenchmarkError where it cannot be started."""
    python = checkout.absolute() / ".venv" / "bin" / "python"
    if not python.exists():
        raise BenchmarkError(f"{checkout} has no environment to start it with: run `make setup` there")
    return [str(python), "-m", "lakewarden.cli", *arguments]


def _environment(processes: int, *, is_other: bool) -> Mapping[str, str]:
    # what leads Python to this checkout's code would be the wrong code in another's environment
    misleading = {"PYTHONPATH", "VIRTUAL_ENV"} if is_other else set[str]()
    kept = {name: value for name, value in os.environ.items() if name not in misleading}
    return kept | {"LAKEWARDEN__SERVER__PROCESSES": str(processes)}
