"""One pipeline for each warehouse: the lease, and the heartbeat that keeps it."""

import logging
import threading
import time
from uuid import UUID

from lakewarden.errors import LakewardenError, Unavailable
from pipeline.jobs.status import Status
from pipeline.sources.ledger import Ledger

INTERVAL_S = 1.0

log = logging.getLogger("lakewarden.pipeline")


class LeaseLost(LakewardenError):
    """Another pipeline may write to the warehouse by now."""


class Lease:
    """The right to write a warehouse's log to tables, as long as we can say that we are here.

    Half of the time after which another may take it over, we no longer rely on it: a commit that began before then has
    the other half to end.
    """

    def __init__(self, warehouse: UUID, status: Status, *, lease_s: float) -> None:
        self.warehouse = warehouse
        self.status = status
        self.lease_s = lease_s
        self._confirmed = 0.0

    def take(self, ledger: Ledger) -> str | None:
        """None when this process holds it now, else who does."""
        asked = time.monotonic()
        holder = ledger.take_lease(self.warehouse, lease_s=self.lease_s)
        self._confirmed = asked if holder is None else 0.0
        return holder

    def beat(self, ledger: Ledger) -> None:
        if not self._confirmed:
            return
        asked = time.monotonic()
        self._confirmed = asked if ledger.beat(self.warehouse, self.status.row()) else 0.0

    @property
    def is_held(self) -> bool:
        return time.monotonic() - self._confirmed < self.lease_s / 2

    def ensure(self) -> None:
        """Raises LeaseLost."""
        if not self.is_held:
            raise LeaseLost(
                "The pipeline could not say in time that it is there: the database did not answer, or another pipeline "
                "has taken the warehouse over"
            )


class Heart(threading.Thread):
    """Beats for all leases of the process, on a connection of its own."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self._ledger = ledger
        self._leases: list[Lease] = []
        self._stopped = threading.Event()

    def add(self, lease: Lease) -> None:
        self._leases = [*self._leases, lease]

    def remove(self, lease: Lease) -> None:
        self._leases = [each for each in self._leases if each is not lease]

    def run(self) -> None:
        while not self._stopped.wait(INTERVAL_S):
            for lease in self._leases:
                try:
                    lease.beat(self._ledger)
                except Unavailable as error:
                    log.debug("No heartbeat: %s", error)

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=INTERVAL_S * 5)
        self._ledger.close()
