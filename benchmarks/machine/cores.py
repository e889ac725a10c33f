"""Gives the server a core of its own, so that neither the generator nor Postgres takes its time."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cores:
    """`server` is for the server under test, `rest` for Postgres and the generator."""

    server: frozenset[int]
    rest: frozenset[int]

    @classmethod
    def split(cls) -> "Cores | None":
        """The first core that we may use, and the others; None where that cannot be done or there is only one."""
        if not hasattr(os, "sched_setaffinity"):
            return None
        usable = sorted(os.sched_getaffinity(0))
        return cls(frozenset(usable[:1]), frozenset(usable[1:])) if len(usable) > 1 else None


def pin(pids: Iterable[int], cores: frozenset[int]) -> None:
    """Keep all threads of these processes on `cores`; what they start later stays there too.

    Processes that have ended, or that belong to another user, are not changed.
    """
    for pid in pids:
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                with suppress(ProcessLookupError, PermissionError):
                    os.sched_setaffinity(int(task.name), cores)
