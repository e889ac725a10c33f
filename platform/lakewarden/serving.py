"""Runs the HTTP server of `lakewarden serve`."""

import errno
import signal
import socket
import sys

import uvicorn

from lakewarden.config import Config
from lakewarden.http.header_limit import BoundedHeaders


def run(settings: Config) -> int:
    """Serve until TERM or INT; returns the exit code. A taken port is said in one sentence."""
    try:
        listener = _listen(settings.server.host, settings.server.port)
    except OSError as error:
        reason = "is taken by another program" if error.errno == errno.EADDRINUSE else f"is unusable: {error.strerror}"
        print(  # noqa: T201 a sentence for the person at the terminal
            f"Error: {settings.server.host}:{settings.server.port} {reason}; "
            "set LAKEWARDEN__SERVER__PORT to a free port",
            file=sys.stderr,
        )
        return 1
    server = uvicorn.Server(
        uvicorn.Config(
            "lakewarden.asgi:application",
            http=BoundedHeaders,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=20,
        )
    )
    for stopping in (signal.SIGTERM, signal.SIGINT):
        # the server sends itself the signal again when it has stopped: by then all is done
        signal.signal(stopping, lambda *_: None)
    server.run(sockets=[listener])
    return 0


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(2048)
    listener.set_inheritable(True)
    return listener
