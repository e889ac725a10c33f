"""Where the processes of a server leave what they measure; nothing is loaded for it unless metrics are configured."""

from collections.abc import Mapping
from typing import Protocol

from lakewarden.board import Board
from lakewarden.config import Config


class Measurements(Protocol):
    """Of the processes of a server."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What the processes must know."""

    def forget(self, pid: int) -> None:
        """A process has ended: its gauges do not count any longer."""

    def close(self) -> None: ...


class Unmeasured:
    """Of a server without metrics."""

    environment: Mapping[str, str] = {}

    def forget(self, pid: int) -> None:
        """Nothing is kept of a process."""

    def close(self) -> None:
        """Nothing was opened."""


def serve_metrics(settings: Config, board: Board, *, has_processes: bool) -> Measurements:
    """Answer `/metrics` if it is configured. Raises PortUnusable."""
    if settings.metrics.port is None:
        return Unmeasured()
    from lakewarden.serving import disks  # noqa: PLC0415 loads Prometheus' client
    from lakewarden.serving.metrics import ServerMetrics  # noqa: PLC0415 the same

    written, place = disks.folders(settings), settings.metrics
    return ServerMetrics(place.host, settings.metrics.port, board, folders=written, has_processes=has_processes)
