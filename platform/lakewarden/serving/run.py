"""Runs `lakewarden serve`: a single process that serves, or a supervisor of several."""

import socket
import sys
import threading
from collections.abc import Callable

from django.db import connections

from lakewarden import board
from lakewarden.config import Config
from lakewarden.postgres import history
from lakewarden.serving.division import processes_of
from lakewarden.serving.listener import PortUnusable, allow_open_files, listen
from lakewarden.serving.measurements import serve_metrics
from lakewarden.serving.supervisor import Supervisor
from lakewarden.stop import AFTERWARDS_S, Stop


def run(settings: Config, stop: Stop) -> int:
    """Serve until a signal, then end the process; returns 1, after printing why, if a port cannot be opened."""
    try:
        listener = listen(settings.server)
        processes = processes_of(settings)
        if processes == 1:
            serve_metrics(settings, board.current(), has_processes=False)
            return _serve(settings, stop, listener)
        connections.close_all()  # the supervisor needs no database: it was only used for checks at the start
        supervisor = Supervisor(settings, listener, processes)
    except PortUnusable as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201 a message for the terminal
        return 1
    stop.prepare(supervisor.stop, bound_s=supervisor.bound_s, at_last=supervisor.kill)
    return supervisor.run()


def run_one(settings: Config, stop: Stop, *, listener: int, lifeline: int) -> int:
    """Serve as one of several processes, until a signal, or until the supervisor closes the lifeline or dies."""
    line = socket.socket(fileno=lifeline)

    def hold() -> None:
        line.recv(1)
        stop.begin()

    def report_ready() -> None:
        board.current().note_ready()
        line.send(b"r")

    threading.Thread(target=hold, name="lifeline", daemon=True).start()
    return _serve(settings, stop, socket.socket(fileno=listener), on_ready=report_ready)


def _serve(settings: Config, stop: Stop, listener: socket.socket, on_ready: Callable[[], None] | None = None) -> int:
    from lakewarden.serving.server import Server  # noqa: PLC0415 imports much that a supervisor does not need

    allow_open_files(settings.server.max_connections)
    history.end_process_when_forked()
    server = Server(settings.server, on_ready=on_ready)
    stop.prepare(server.stop, bound_s=settings.server.stop_timeout_s + AFTERWARDS_S)
    server.run(sockets=[listener])
    return 0
