"""`lakewarden serve`: one process that serves, or one that supervises several of them."""

import socket
import sys
import threading
from collections.abc import Callable

from django.db import connections

from lakewarden import board
from lakewarden.config import Config
from lakewarden.serving.division import processes_of
from lakewarden.serving.listener import PortUnusable, allow_open_files, listen
from lakewarden.serving.supervisor import Supervisor
from lakewarden.stop import AFTERWARDS_S, Stop


def run(settings: Config, stop: Stop) -> int:
    """Serve until a signal, and end the process then; returns 1, having said why, when that cannot be."""
    try:
        listener = listen(settings.server)
    except PortUnusable as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201 a sentence for the person at the terminal
        return 1
    processes = processes_of(settings)
    if processes == 1:
        return _serve(settings, stop, listener)
    connections.close_all()  # the database was only looked at
    supervisor = Supervisor(settings, listener, processes)
    stop.prepare(supervisor.stop, bound_s=supervisor.bound_s, at_last=supervisor.kill)
    return supervisor.run()


def run_one(settings: Config, stop: Stop, *, listener: int, lifeline: int) -> int:
    """Serve as one of several: until a signal, or until the supervisor closes its end of the lifeline, or is gone."""
    line = socket.socket(fileno=lifeline)

    def hold() -> None:
        line.recv(1)
        stop.begin()

    def tell() -> None:
        board.current().note_ready()
        line.send(b"r")

    threading.Thread(target=hold, name="lifeline", daemon=True).start()
    return _serve(settings, stop, socket.socket(fileno=listener), on_ready=tell)


def _serve(settings: Config, stop: Stop, listener: socket.socket, on_ready: Callable[[], None] | None = None) -> int:
    from lakewarden.serving.server import Server  # noqa: PLC0415 it needs much that a supervisor does without

    allow_open_files(settings.server.max_connections)
    server = Server(settings.server, on_ready=on_ready)
    stop.prepare(server.stop, bound_s=settings.server.stop_timeout_s + AFTERWARDS_S)
    server.run(sockets=[listener])
    return 0
