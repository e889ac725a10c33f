"""Delivers the log of events to the sinks, in threads of a worker: each at least once, in order per object."""

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

from django.db import DatabaseError, InterfaceError, close_old_connections, connections

from lakewarden import config
from lakewarden.events import log
from lakewarden.events.news import News
from lakewarden.events.served_sink import LONGEST_PAUSE_S, ServedSink
from lakewarden.ids import new_id

logger = logging.getLogger(__name__)

SHORTEST_IDLE_S: Final = 0.05
LONGEST_IDLE_S: Final = 1.0
"""Between two looks for new events: it doubles while there are none."""


class Relay:
    """A thread that numbers new events, one for each sink, and one that keeps the leases of all sinks."""

    def __init__(self) -> None:
        settings = config.current().events
        # unique for each start: the lease of an earlier one is never taken for this one's
        holder = f"{socket.gethostname()}/{os.getpid()}/{new_id()}"
        self._stopping = threading.Event()
        self._news = News()
        self._idle_s = SHORTEST_IDLE_S
        self._threads = [_thread("event log", lambda: self._repeat(self._number))]
        self._served: list[ServedSink] = []
        for name, sink in settings.sinks.items():
            served = ServedSink(
                name, sink, holder=holder, lease_s=settings.lease_s, source=settings.source, news=self._news
            )
            self._served.append(served)
            self._threads.append(_thread(f"sink {name}", lambda served=served: self._serve(served)))  # type: ignore[misc]
        if self._served:
            self._pause_s = settings.lease_s / 4
            self._threads.append(_thread("leases of sinks", lambda: self._repeat(self._keep)))

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def stop(self, *, within_s: float = 10) -> None:
        """A batch that is on its way is given up after `within_s`: another worker delivers it again."""
        self._stopping.set()
        self._news.nudge()
        deadline = time.monotonic() + within_s
        for each in self._threads:
            each.join(max(0.0, deadline - time.monotonic()))

    def _number(self) -> float:
        """One statement while there is nothing new, for all sinks of the process together."""
        has_new, end = log.look()
        moved = log.append_new() if has_new else 0
        self._news.tell(log.last_position() if moved else end)
        self._idle_s = SHORTEST_IDLE_S if moved else min(self._idle_s * 2, LONGEST_IDLE_S)
        return 0.0 if moved == log.BATCH else self._idle_s

    def _serve(self, served: ServedSink) -> None:
        try:
            self._repeat(served.step)
        finally:
            with contextlib.suppress(DatabaseError, InterfaceError):  # the lease ends by itself
                served.close()

    def _keep(self) -> float:
        for each in self._served:
            each.keep()
        return self._pause_s

    def _repeat(self, step: Callable[[], float]) -> None:
        """`step` returns the seconds to wait before the next one. A database that is away is waited for."""
        pause_s = 0.0
        while not self._stopping.wait(pause_s):
            try:
                close_old_connections()
                pause_s = step()
            except (DatabaseError, InterfaceError) as error:
                logger.warning("events wait for the database: %s", str(error).strip())
                pause_s = 5.0
            except Exception:
                logger.exception("events are delivered later because of an unexpected error")
                pause_s = LONGEST_PAUSE_S


def _thread(name: str, run: Callable[[], None]) -> threading.Thread:
    def running() -> None:
        try:
            run()
        finally:
            connections.close_all()  # of this thread

    return threading.Thread(target=running, name=name, daemon=True)
