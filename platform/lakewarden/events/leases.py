"""Which worker serves a sink: a lease in the database, which also holds the sink's progress."""

import time
from typing import Final, LiteralString

from lakewarden.prepared_statements import execute, fetch


class LeaseLost(Exception):
    """Another worker serves the sink now."""


class Lease:
    """The right of `holder` to serve the sink `name`, for `seconds` after each call that succeeded."""

    def __init__(self, name: str, holder: str, *, seconds: float) -> None:
        self._name, self._holder, self._seconds = name, holder, seconds
        self._ends_at = 0.0

    def acquire(self, *, first: int) -> int | None:
        """The position up to which events were delivered; None: another worker holds the lease.

        `first` is the position of a sink that is not known yet.
        """
        execute(_KNOWN, [self._name, first])
        asked_at = time.monotonic()
        rows = fetch(_ACQUIRE, [self._holder, self._seconds, self._name, self._holder])
        if not rows:
            return None
        self._ends_at = asked_at + self._seconds
        return int(rows[0][0])

    def ensure_held(self) -> None:
        """Without a statement: by this process's clock, the lease has not ended. Raises LeaseLost.

        Another worker cannot have it before that, so a process that was frozen notices it before it sends anything.
        """
        if time.monotonic() >= self._ends_at:
            raise LeaseLost(f"The lease of the sink {self._name!r} ended while this worker did not renew it")

    def renew(self) -> None:
        """Raises LeaseLost."""
        self._held(_RENEW, [self._seconds, self._name, self._holder])

    def advance(self, position: int, *, sent: int) -> None:
        """All events up to a position were delivered, `sent` of them since the last call. Raises LeaseLost."""
        self._held(_ADVANCE, [position, sent, sent, self._seconds, self._name, self._holder])

    def failed(self, reason: str) -> None:
        """Raises LeaseLost."""
        self._held(_FAILED, [reason[:500], self._seconds, self._name, self._holder])

    def release(self) -> None:
        execute(_RELEASE, [self._name, self._holder])

    def _held(self, statement: LiteralString, parameters: list[object]) -> None:
        asked_at = time.monotonic()
        if not fetch(statement, parameters):
            self._ends_at = 0.0
            raise LeaseLost(f"The sink {self._name!r} is served by another worker now, or its events are replayed")
        self._ends_at = asked_at + self._seconds


_KNOWN: Final = "insert into event_sink (name, delivered) values (%s, %s) on conflict (name) do nothing"
_UNTIL: Final = "leased_until = now() + make_interval(secs => %s::float8), seen_at = now()"
_MINE: Final = "where name = %s and leased_by = %s returning 1"
_ACQUIRE: Final = f"""
    update event_sink set leased_by = %s, {_UNTIL}
    where name = %s and (leased_by = %s or leased_until is null or leased_until < now())
    returning delivered
"""  # noqa: S608 constants
_RENEW: Final = f"update event_sink set {_UNTIL} {_MINE}"  # noqa: S608
_ADVANCE: Final = f"""
    update event_sink set delivered = %s, failure = '', failing_since = null, sent = sent + %s,
        recently_sent = %s + case when recent_since > now() - interval '1 minute' then recently_sent else 0 end,
        recent_since = case when recent_since > now() - interval '1 minute' then recent_since else now() end,
        {_UNTIL} {_MINE}
"""  # noqa: S608
_FAILED: Final = f"""
    update event_sink set failure = %s, failing_since = coalesce(failing_since, now()), {_UNTIL} {_MINE}
"""  # noqa: S608
_RELEASE: Final = "update event_sink set leased_until = null where name = %s and leased_by = %s"
