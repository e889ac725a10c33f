"""Accepts connections on a socket that several processes share, so each gets about the same number.

With the event loop's own accept, the process that wakes up first takes all waiting connections: an engine that opens
eight at once would be served by one core. Here a process accepts one at a time, and one with more connections than
another waits for a moment first.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

from lakewarden import board

logger = logging.getLogger(__name__)

# for the process with the fewest connections; if it is busy or hangs, another one accepts after this time
_HEAD_START_S: Final = 0.002
_PAUSE_S: Final = 0.5  # after a failure, for example if no file descriptor is left


class Acceptor:
    """`connection` creates a protocol; `connections` returns how many connections this process has."""

    def __init__(
        self, listener: socket.socket, connection: Callable[[], asyncio.Protocol], connections: Callable[[], int]
    ) -> None:
        self._listener = listener
        self._connection = connection
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._starting: set[asyncio.Task[object]] = set()
        self._is_closed = False
        listener.setblocking(False)  # noqa: FBT003 its signature
        self._listen()

    def close(self) -> None:
        self._is_closed = True
        self._loop.remove_reader(self._listener)

    def _listen(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listener, self._on_waiting)

    def _on_waiting(self) -> None:
        fewest = board.current().fewest_connections_elsewhere()
        if fewest is None or self._connections() + len(self._starting) <= fewest:
            self._accept()
            return
        self._loop.remove_reader(self._listener)
        self._loop.call_later(_HEAD_START_S, self._accept_late)

    def _accept_late(self) -> None:
        if not self._is_closed:
            self._accept()
            self._listen()

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another process was first, or the client is gone
        except OSError as error:
            logger.error("A connection could not be accepted: %s", error.strerror)  # noqa: TRY400 it says all
            self._loop.remove_reader(self._listener)
            self._loop.call_later(_PAUSE_S, self._listen)
            return
        accepted.setblocking(False)  # noqa: FBT003 its signature
        starting = self._loop.create_task(self._loop.connect_accepted_socket(self._connection, accepted))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
