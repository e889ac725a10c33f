"""One of the processes that a supervisor runs, and the socket pair that connects them.

The process writes to its end when it is ready, and stops when the supervisor closes the other end or dies. The
supervisor reads end-of-file when the process has ended, in whatever way.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

_REAP_S: Final = 5.0


class Child:
    """The process of one row of the board; it is restarted when it ends."""

    def __init__(self, row: int) -> None:
        self.row = row
        self.is_ready = False
        self.failures = 0
        """How often in a row it ended after a short time."""
        self.due = 0.0
        """When it may be started, in seconds of the monotonic clock."""
        self.started = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def start(self, *, listener: int, board: int, processes: int, environment: Mapping[str, str]) -> socket.socket:
        """Start the process; returns the supervisor's end of the socket pair."""
        self._line, theirs = socket.socketpair()
        with theirs:
            place = [str(each) for each in (listener, theirs.fileno(), board, processes, self.row)]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "lakewarden.cli", "serve-one", *place],
                pass_fds=(listener, theirs.fileno(), board),
                env=environment,
            )
        self.is_ready, self.started = False, time.monotonic()
        return self._line

    def read(self) -> bool:
        """Read from the socket pair: True: the process is ready; False: it has ended."""
        try:
            return self._line is not None and bool(self._line.recv(1))
        except ConnectionError:
            return False

    def stop(self) -> None:
        """Ask the process to stop; it may finish the requests in progress."""
        if self._line is not None:
            with suppress(OSError):
                self._line.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        process = self._process
        if process is not None:
            process.kill()

    def reap(self) -> int:
        """The exit code of the ended process; a negative number is the signal that ended it."""
        assert self._process is not None  # noqa: S101 only what was started has ended
        try:
            code = self._process.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if self._line is not None:
            self._line.close()
        self._process = self._line = None
        self.is_ready = False
        return code
