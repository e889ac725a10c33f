"""Answers `/metrics` on a port of its own, for Prometheus: for a server's processes, or for what all workers must do.

The processes of a server write their measurements into files of a folder, which the supervisor reads and adds up
(`PROMETHEUS_MULTIPROC_DIR` of prometheus_client).
"""

import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast

from django.conf import settings as django_settings
from django.db import Error, connections
from prometheus_client import REGISTRY, CollectorRegistry, Metric, multiprocess, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lakewarden import __version__
from lakewarden.board import Board
from lakewarden.http import health
from lakewarden.serving.disks import DiskSpace
from lakewarden.serving.listener import PortUnusable

logger = logging.getLogger(__name__)

FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
_FRESH_S: Final = 5.0


class ServerMetrics:
    """Of one server: of this process, or of several processes that are supervised."""

    def __init__(self, host: str, port: int, board: Board, *, folders: Sequence[Path], has_processes: bool) -> None:
        """`folders` are those whose disks are measured."""
        self._folder = tempfile.mkdtemp(prefix="lakewarden-metrics-") if has_processes else None
        registry = CollectorRegistry() if has_processes else REGISTRY
        if self._folder is not None:
            multiprocess.MultiProcessCollector(registry, path=self._folder)  # type: ignore[no-untyped-call]
        registry.register(_OfBoard(board, has_processes=has_processes))
        registry.register(DiskSpace(folders))
        _start(host, port, registry)

    @property
    def environment(self) -> Mapping[str, str]:
        """What the processes must know."""
        return {} if self._folder is None else {FOLDER: self._folder}

    def forget(self, pid: int) -> None:
        """A process has ended: its gauges count no longer."""
        if self._folder is not None:
            multiprocess.mark_process_dead(pid, self._folder)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def serve_database(host: str, port: int) -> None:
    """Answer for what all workers have done and must do. Raises PortUnusable."""
    registry = CollectorRegistry()
    registry.register(_OfDatabase())
    _start(host, port, registry)


def _start(host: str, port: int, registry: CollectorRegistry) -> None:
    try:
        start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise PortUnusable(
            f"{host}:{port} cannot be used for metrics: {error.strerror}; set LAKEWARDEN__METRICS__PORT, of a worker "
            "LAKEWARDEN__METRICS__WORKER_PORT, to a free port"
        ) from None


class _OfBoard(Collector):
    def __init__(self, board: Board, *, has_processes: bool) -> None:
        self._board = board
        self._has_processes = has_processes

    def collect(self) -> Iterator[Metric]:
        version = GaugeMetricFamily("lakewarden_info", "The version that runs.", labels=["version"])
        version.add_metric([__version__], 1)
        yield version
        ready = self._board.ready if self._has_processes else int(not health.STOPPING.is_set())
        yield _gauge("lakewarden_connections", "Open connections of clients.", self._board.connections)
        yield _gauge("lakewarden_processes", "Processes that the server should have.", self._board.processes)
        yield _gauge("lakewarden_processes_ready", "Processes that answer requests.", ready)


class _Module(Protocol):
    def collect(self) -> Iterator[Metric]: ...


class _OfDatabase(Collector):
    """Asked at most every few seconds, however often somebody reads: the port needs no token."""

    def __init__(self) -> None:
        self._modules = [cast("_Module", import_module(name)) for name in django_settings.METRICS_MODULES]
        self._lock = threading.Lock()
        self._kept: list[Metric] = []
        self._asked_at = float("-inf")

    def describe(self) -> list[Metric]:
        """Nothing: else the registry would ask the database at the start."""
        return []

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            if time.monotonic() - self._asked_at >= _FRESH_S:
                self._kept = self._ask()
                self._asked_at = time.monotonic()
            yield from self._kept

    def _ask(self) -> list[Metric]:
        try:
            found = [metric for module in self._modules for metric in module.collect()]
        except Error as error:
            logger.warning("The database could not be asked for metrics: %s", error)
            return [_gauge("lakewarden_database_up", "Whether the database answers.", 0)]
        finally:
            connections.close_all()  # of this thread, which ends with the request
        return [_gauge("lakewarden_database_up", "Whether the database answers.", 1), *found]


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value=value)
