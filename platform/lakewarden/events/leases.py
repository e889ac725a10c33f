"""Which worker serves a sink: a lease in the database, which also holds the sink's progress."""

from typing import Final

from lakewarden.prepared_statements import execute, fetch


class LeaseLost(Exception):
    """Another worker serves the sink now."""


class Lease:
    """The right of `holder` to serve the sink `name`, for `seconds` after each call that succeeded."""

    def __init__(self, name: str, holder: str, *, seconds: float) -> None:
        self._name, self._holder, self._seconds = name, holder, seconds

    def acquire(self, *, first: int) -> int | None:
        """The position up to which events were delivered; None: another worker holds the lease.

        `first` is the position of a sink that is not known yet.
        """
        execute(_KNOWN, [self._name, first])
        rows = fetch(_ACQUIRE, [self._holder, self._seconds, self._name, self._holder])
        return int(rows[0][0]) if rows else None

    def renew(self) -> None:
        """Raises LeaseLost."""
        self._held(fetch(_RENEW, [self._seconds, self._name, self._holder]))

    def advance(self, position: int) -> None:
        """All events up to a position were delivered. Raises LeaseLost."""
        self._held(fetch(_ADVANCE, [position, self._seconds, self._name, self._holder]))

    def failed(self, reason: str) -> None:
        """Raises LeaseLost."""
        self._held(fetch(_FAILED, [reason[:500], self._seconds, self._name, self._holder]))

    def release(self) -> None:
        execute(_RELEASE, [self._name, self._holder])

    def _held(self, rows: list[tuple[object, ...]]) -> None:
        if not rows:
            raise LeaseLost(f"The sink {self._name!r} is served by another worker now, or its events are replayed")


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
    update event_sink set delivered = %s, failure = '', failing_since = null, {_UNTIL} {_MINE}
"""  # noqa: S608
_FAILED: Final = f"""
    update event_sink set failure = %s, failing_since = coalesce(failing_since, now()), {_UNTIL} {_MINE}
"""  # noqa: S608
_RELEASE: Final = "update event_sink set leased_until = null where name = %s and leased_by = %s"
