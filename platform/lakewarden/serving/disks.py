"""How much room there is where a server writes: its local warehouses, and the fallback files of change data."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lakewarden.config import Config

_PATIENCE_S: Final = 1.0
_COUNTS_S: Final = 120.0


def folders(settings: Config) -> list[Path]:
    fallback = settings.ingest.fallback_folder
    return [*settings.storage.local_roots, *([] if fallback is None else [Path(fallback)])]


class DiskSpace(Collector):
    """A folder whose disk does not answer is left out after two minutes; other metrics are not delayed by it."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._looks = [_Look(folder) for folder in folders]

    def describe(self) -> list[Metric]:
        """Nothing: else the registry would look at the start."""
        return []

    def collect(self) -> Iterator[Metric]:
        free = GaugeMetricFamily("lakewarden_disk_free_bytes", "Room on the disk of a folder.", labels=["folder"])
        size = GaugeMetricFamily("lakewarden_disk_size_bytes", "Size of the disk of a folder.", labels=["folder"])
        for look in self._looks:
            look.begin()
        deadline = time.monotonic() + _PATIENCE_S
        for look in self._looks:
            found = look.found(within_s=deadline - time.monotonic())
            if found is not None:
                free.add_metric([str(look.folder)], found[0])
                size.add_metric([str(look.folder)], found[1])
        yield free
        yield size


class _Look:
    """At one folder, by a thread of its own: a network volume may hang."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._thread: threading.Thread | None = None
        self._found: tuple[float, int, int] | None = None

    def begin(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._ask, name="lakewarden disk", daemon=True)
            self._thread.start()

    def found(self, *, within_s: float) -> tuple[int, int] | None:
        """Free bytes and all bytes, as an ordinary user has them; None if they are not known."""
        if self._thread is not None:
            self._thread.join(max(within_s, 0))
        known = self._found
        if known is None or time.monotonic() - known[0] > _COUNTS_S:
            return None
        return known[1], known[2]

    def _ask(self) -> None:
        try:
            told = os.statvfs(self.folder)
        except OSError:
            self._found = None  # the folder is not there (yet)
            return
        used = told.f_blocks - told.f_bfree
        self._found = time.monotonic(), told.f_bavail * told.f_frsize, (used + told.f_bavail) * told.f_frsize
