"""The number of a server's processes, and how limits of the configuration are divided among them."""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lakewarden.config import PREFIX, Config
from lakewarden.config.server import THREADS_OF_A_PROCESS

_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


def processes_of(settings: Config) -> int:
    """The configured number; else one for each core, but only as many as `server.threads` suffices for."""
    configured = settings.server.processes
    return configured or max(1, min(cores(), settings.server.threads // THREADS_OF_A_PROCESS))


def cores(quota: Path = _QUOTA) -> int:
    """The cores that this process may use, limited by CPU affinity and by the container's quota."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        limit, period = quota.read_text().split()
        return min(usable, math.ceil(int(limit) / int(period)))
    except (OSError, ValueError):
        return usable  # no limit ("max"), or not a container


def environment_of_one(environment: Mapping[str, str], settings: Config, processes: int) -> dict[str, str]:
    """The environment of one process, with its part of every limit that counts per process.

    Memory for bodies, answers and documents is not divided: the processes share its limits (`CommonShares`).
    """
    server = settings.server
    parts = {
        f"{PREFIX}SERVER__PROCESSES": 1,
        f"{PREFIX}SERVER__THREADS": server.threads // processes,
        f"{PREFIX}SERVER__VERIFICATION_THREADS": server.verification_threads // processes,
        f"{PREFIX}SERVER__QUEUE": server.queue // processes,
        f"{PREFIX}SERVER__MAX_CONNECTIONS": math.ceil(server.max_connections / processes),
        f"{PREFIX}STORAGE__MAX_CALLS_AT_ONCE": settings.storage.max_calls_at_once // processes,
    }
    kept = {name: value for name, value in environment.items() if name.upper() not in parts}
    return kept | {name: str(max(1, part)) for name, part in parts.items()}
