"""A watched child process that never outlives this process; used for every server of the process tree."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Self

from standalone import launch
from standalone.accounts import Account
from standalone.errors import EmbeddedError
from standalone.guardian import GUARDIAN

_ROTATE_BYTES = 10 * 1024 * 1024
_TAIL_BYTES = 16 * 1024
# a link instead of a log is refused: through it, root could overwrite any file
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW


class ManagedProcess:
    """One program, its output in `log`, in a session of its own (Ctrl-C in the terminal reaches only us).

    It ends when we end, even by kill -9: on Linux the kernel sends it `orphan_signal`, elsewhere the guardian
    does. Linux ties that to the *thread* that called `start`: it must live as long as the child should.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        account: Account | None = None,
        directory: Path | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
        orphan_signal: signal.Signals = signal.SIGKILL,
        grace_s: float = 10.0,
    ) -> None:
        """`command[0]` is an absolute path; without `environment` it inherits this process's; `account` needs root."""
        self.name = name
        self.log = log
        self._command = [str(part) for part in command]
        self._environment = environment
        self._account = account
        self._directory = directory
        self._stop_signal = stop_signal
        self._orphan_signal = orphan_signal
        self._grace_s = grace_s
        self._child: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The program's process id, which is also its process group's."""
        return self._running().pid

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs; a negative number is the signal that ended it."""
        code = self._running().poll()
        if code is not None:
            self._clean_up()
        return code

    @property
    def exited(self) -> bool:
        return self.exit_code is not None

    def start(self) -> None:
        """Start the program; one that cannot run ends with 126. `EmbeddedError`: it cannot have a log."""
        try:
            output = self._open_log()
        except OSError as error:
            raise EmbeddedError(
                f"Cannot write the log {self.log}: {error.strerror}. Give another directory with --data-dir."
            ) from error
        with output:
            self._log_start = output.tell()
            self._child = subprocess.Popen(
                [*self._launcher(), *self._command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                cwd=self._directory,
                start_new_session=True,
            )
        GUARDIAN.add(self._child.pid, signal_name=self._orphan_signal.name.removeprefix("SIG"))

    def wait(self, timeout_s: float) -> int | None:
        """The exit code, or None if it still runs after `timeout_s` seconds."""
        try:
            self._running().wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        return self.exit_code

    def stop(self) -> None:
        """Ask it to end, and kill it with its group after the grace time. Idempotent."""
        if self._child is None:
            return
        if not self.exited:
            self._child.send_signal(self._stop_signal)
            if self.wait(self._grace_s) is None:
                self._signal_group(signal.SIGKILL)
                self._child.wait()
        self._clean_up()

    def ended(self) -> str:
        """How it ended, for a message: "ended with exit code 1", "was killed by SIGKILL", "is running"."""
        code = self.exit_code
        if code is None:
            return "is running"
        return f"ended with exit code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"

    def log_text(self) -> str:
        """Its output since this start, at most the last 16 KiB."""
        with self.log.open("rb") as source:
            source.seek(max(self._log_start, source.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return source.read().decode(errors="replace")

    def log_tail(self, *, lines: int = 8) -> str:
        """The last lines of its output since this start."""
        return "\n".join(self.log_text().rstrip().splitlines()[-lines:])

    def obituary(self, *, when: str) -> str:
        """A message that it ended and how, with the end of its log and the log's path."""
        tail = self.log_tail().replace("\n", "\n  ") or "(it wrote nothing)"
        return f"{self.name} {self.ended()} {when}. The end of its log {self.log}:\n  {tail}"

    def _launcher(self) -> list[str]:
        user = [str(self._account.uid), str(self._account.gid)] if self._account else ["-", "-"]
        binding = [str(os.getpid()), str(self._orphan_signal.value)]
        return [sys.executable, "-I", "-S", launch.__file__, *binding, *user]

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._child is None:
            raise EmbeddedError(f"{self.name} has not been started.")
        return self._child

    def _clean_up(self) -> None:
        # also ends processes that the program has started: a group exists as long as one member does
        if self._child is not None and GUARDIAN.holds(self._child.pid):
            self._signal_group(signal.SIGKILL)
            GUARDIAN.drop(self._child.pid)

    def _signal_group(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._running().pid, number)
        except (ProcessLookupError, PermissionError):  # macOS says "not permitted" of a group of zombies
            return

    def _open_log(self) -> BinaryIO:
        self.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > _ROTATE_BYTES:
            self.log.replace(self.log.with_suffix(f"{self.log.suffix}.1"))
        output = os.fdopen(os.open(self.log, _APPEND, 0o600), "ab")
        output.seek(0, os.SEEK_END)
        return output
