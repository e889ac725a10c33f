"""Keeps the processes of one server running: starts them, replaces those that end or hang, and stops them in time."""

import logging
import os
import selectors
import signal
import socket
import time
from typing import Final

from lakewarden import board
from lakewarden.board import Board
from lakewarden.config import Config
from lakewarden.serving.child import Child
from lakewarden.serving.division import environment_of_one
from lakewarden.serving.measurements import serve_metrics
from lakewarden.stop import AFTERWARDS_S

logger = logging.getLogger(__name__)

_LOOK_S: Final = 1.0
_MARGIN_S: Final = 1.0  # added to the time in which a process must stop
_STEADY_S: Final = 60.0  # a process that ran for at least this long is restarted without a pause
_LONGEST_PAUSE_S: Final = 30.0
_FAILED_STARTS: Final = 5  # in a row, while no process is ready


class Supervisor:
    """Holds the listening socket but never accepts: while a process is replaced, the others take new connections."""

    def __init__(self, settings: Config, listener: socket.socket, processes: int) -> None:
        self._settings = settings.server
        self._listener = listener
        self._file = board.new_file(processes)
        self._board = Board(self._file, processes=processes, row=-1)
        self._metrics = serve_metrics(settings, self._board, has_processes=True)
        self._environment = environment_of_one(os.environ, settings, processes) | dict(self._metrics.environment)
        self._children = [Child(row) for row in range(processes)]
        self._selector = selectors.DefaultSelector()
        self._waker, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._is_stopping = False
        self._awake_since = time.monotonic()
        self._looked = self._awake_since

    @property
    def bound_s(self) -> float:
        """Seconds after a signal in which all processes have ended."""
        return self._settings.stop_timeout_s + AFTERWARDS_S + 2 * _MARGIN_S

    def stop(self) -> None:
        """Begin to stop; any thread may call it."""
        self._is_stopping = True
        self._waker.send(b"s")

    def kill(self) -> None:
        """Kill all processes; any thread may call it."""
        for child in self._children:
            child.kill()

    def run(self) -> int:
        """Run until a signal, then return 0; returns 1 if no process can be started, which the log explains."""
        address = "{}:{}".format(*self._listener.getsockname()[:2])
        logger.info("Serving %s by %d processes", address, len(self._children))
        code = 0
        while not self._is_stopping and code == 0:
            self._start_due()
            code = self._handle_messages(_LOOK_S)
            self._end_hung()
        self._stop_all()
        self._metrics.close()
        return code

    def _start_due(self) -> None:
        for child in self._children:
            if not child.is_running and child.due <= time.monotonic():
                line = child.start(
                    listener=self._listener.fileno(),
                    board=self._file,
                    processes=len(self._children),
                    environment=self._environment,
                )
                self._selector.register(line, selectors.EVENT_READ, child)

    def _handle_messages(self, patience_s: float) -> int:
        """Handle messages from the processes; returns 1 if the server must end."""
        code = 0
        for key, _ in self._selector.select(patience_s):
            child = key.data
            if child is None:
                continue  # `stop` was called
            if child.read():
                child.is_ready = True
                if all(each.is_ready for each in self._children):
                    self._board.note_all_ready()
            else:
                self._selector.unregister(key.fileobj)
                code = self._ended(child) or code
        return code

    def _ended(self, child: Child) -> int:
        was_ready, pid, ran_s = child.is_ready, child.pid, time.monotonic() - child.started
        how = _end_of(child.reap())
        self._board.clear(child.row)
        self._metrics.forget(pid)
        if self._is_stopping:
            return 0
        if not (was_ready or self._board.were_all_ready):
            logger.error("Process %d %s before it was ready: the server ends", pid, how)
            return 1
        child.failures = 0 if was_ready and ran_s >= _STEADY_S else child.failures + 1
        if child.failures >= _FAILED_STARTS and not was_ready and not any(each.is_ready for each in self._children):
            logger.error("No process can be started: the last one, %d, %s; the server ends", pid, how)
            return 1
        pause_s = 0.0 if was_ready and child.failures <= 1 else min(2.0 ** (child.failures - 1), _LONGEST_PAUSE_S)
        child.due = time.monotonic() + pause_s
        logger.warning("Process %d %s; another one is started in %g s", pid, how, pause_s)
        return 0

    def _end_hung(self) -> None:
        """Kill processes whose event loop is blocked. They are still running, so only a missing heartbeat shows it."""
        now = time.monotonic()
        if now - self._looked > 2 * _LOOK_S:
            self._awake_since = now  # this process was suspended itself, perhaps with the others
        self._looked = now
        for child in self._children:
            seen = max(self._board.seen(child.row) / 1000, self._awake_since)
            if child.is_ready and now - seen > self._settings.hang_timeout_s:
                logger.error("Process %d has shown no sign of life for %.0f s: it is killed", child.pid, now - seen)
                child.kill()

    def _stop_all(self) -> None:
        self._is_stopping = True
        self._listener.close()
        for child in self._children:
            child.stop()
        deadline = time.monotonic() + self._settings.stop_timeout_s + AFTERWARDS_S + _MARGIN_S
        while any(each.is_running for each in self._children):
            if time.monotonic() > deadline:
                self.kill()
            self._handle_messages(_LOOK_S)


def _end_of(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
