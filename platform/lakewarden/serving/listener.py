"""Opens the port of `lakewarden serve`."""

import errno
import logging
import resource
import socket
from typing import Final

from lakewarden.config import ServerConfig
from lakewarden.http.connection import SPARE

logger = logging.getLogger(__name__)

_BACKLOG: Final = 2048
_OTHER_FILES: Final = 1024  # sessions of the database, files of warehouses


class PortUnusable(Exception):
    """The port cannot be opened; the message says why and which setting to change."""


def listen(settings: ServerConfig) -> socket.socket:
    """A listening socket. Raises PortUnusable."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        reason = "is taken by another program" if error.errno == errno.EADDRINUSE else f"is unusable: {error.strerror}"
        raise PortUnusable(
            f"{settings.host}:{settings.port} {reason}; set LAKEWARDEN__SERVER__PORT to a free port"
        ) from None
    listener.set_inheritable(True)
    return listener


def allow_open_files(connections: int) -> None:
    """Raise the limit of open files for this number of connections, each of which needs a file descriptor."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        if limit < wanted:
            logger.warning(
                "At most %d files may be open (ulimit -n), %d connections need %d", limit, connections, wanted
            )
