"""The thread that writes what requests leave behind (counts of calls, refusals), off their path; started by asgi.py."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import Error, connection

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Chore:
    """`work` is called every `interval_s` seconds, and once at the end; what it cannot write it keeps."""

    name: str
    interval_s: float
    work: Callable[[], None]


class Recorder:
    """Does its chores until it is stopped. A database that is down costs nobody but this thread."""

    def __init__(self, chores: Sequence[Chore]) -> None:
        self._chores = chores
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, timeout_s: float) -> None:
        """Do every chore once more; give up on a database that takes longer than `timeout_s`."""
        self._stopping.set()
        if self._thread.ident is not None:  # a server that is stopped while it starts has nothing to write
            self._thread.join(timeout_s)

    def _run(self) -> None:
        due = {chore.name: time.monotonic() + chore.interval_s for chore in self._chores}
        while not self._stopping.wait(max(0.0, min(due.values()) - time.monotonic())):
            for chore in self._chores:
                if due[chore.name] <= time.monotonic():
                    perform(chore)
                    due[chore.name] = time.monotonic() + chore.interval_s
        for chore in self._chores:
            perform(chore)
        connection.close()


def perform(chore: Chore) -> None:
    """Do it; a failure of the database is logged, and the connection opened anew next time."""
    try:
        chore.work()
    except Error as error:
        connection.close()
        logger.warning("%s could not be written: %s", chore.name, str(error).strip())
