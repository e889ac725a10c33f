"""A flush has its table to itself: maintenance of the same table waits for the flush, or the flush for it."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from uuid import UUID

from lakewarden.errors import LakewardenError, Unavailable
from pipeline.sources.ledger import Ledger

PAUSE_S = 0.2

log = logging.getLogger("lakewarden.pipeline")


@dataclass(frozen=True, slots=True)
class TableLocks:
    """Of one warehouse. `ensure_ours` raises when another pipeline may write here."""

    ledger: Ledger
    warehouse: UUID
    wait_s: float
    ensure_ours: Callable[[], None]

    @contextmanager
    def held(self, table: Sequence[str]) -> Iterator[None]:
        """Waits until maintenance gives the table back. Raises `Unavailable` after `wait_s`, or as `ensure_ours`."""
        self._take(table)
        try:
            yield
        finally:
            self.give_back(table)

    def try_take(self, table: Sequence[str]) -> bool:
        """Take it, to be given back, unless maintenance has it now."""
        return self.ledger.try_lock(self.warehouse, table)

    def give_back(self, table: Sequence[str]) -> None:
        with suppress(LakewardenError):  # without the database there is no lock either
            self.ledger.unlock(self.warehouse, table)

    def _take(self, table: Sequence[str]) -> None:
        began = time.monotonic()
        while not self.try_take(table):
            self.ensure_ours()
            waited = time.monotonic() - began
            if waited > self.wait_s:
                shown = ".".join(table)
                raise Unavailable(f"Maintenance of the table {shown} has gone on for more than {waited:.0f} s.")
            if waited < PAUSE_S:
                log.info("%s: waiting for maintenance of the table", ".".join(table))
            time.sleep(PAUSE_S)
