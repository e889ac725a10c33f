"""The time limits of this process's database sessions; the command chooses them once, before it opens a connection."""

from dataclasses import dataclass, replace
from typing import Self

from lakewarden import config
from lakewarden.config import SessionTimeouts

ANSWER_GRACE_S = 3.0
"""Added to the statement time-out, so the database normally ends a statement first and the
client only as a fallback.
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """All in seconds; None: no limit."""

    lock_s: float | None
    statement_s: float | None
    idle_in_transaction_s: float | None
    transaction_s: float | None

    @classmethod
    def of(cls, settings: SessionTimeouts) -> Self:
        return cls(
            settings.lock_timeout_s,
            settings.statement_timeout_s,
            settings.idle_in_transaction_timeout_s,
            settings.transaction_timeout_s,
        )

    @property
    def answer_s(self) -> float | None:
        """How long the client waits for an answer before it closes the connection."""
        return None if self.statement_s is None else self.statement_s + ANSWER_GRACE_S

    def at_most(self, statement_s: float) -> Self:
        """The same limits with a statement time-out of at most `statement_s`."""
        return replace(self, statement_s=min(statement_s, self.statement_s or statement_s))

    def parameters(self) -> dict[str, str]:
        """PostgreSQL's names and values; names that the server does not know are left out when they are set."""
        database = config.current().database
        named = {
            "lock_timeout": self.lock_s,
            "statement_timeout": self.statement_s,
            "idle_in_transaction_session_timeout": self.idle_in_transaction_s,
            "transaction_timeout": self.transaction_s,
        }
        return {name: str(round((seconds or 0) * 1000)) for name, seconds in named.items()} | {
            # for the server's side: without them, a session of a machine that has vanished would hold its locks for
            # hours
            "tcp_keepalives_idle": str(database.keepalive_idle_s),
            "tcp_keepalives_interval": str(database.keepalive_interval_s),
            "tcp_keepalives_count": str(database.keepalive_count),
        }


UNLIMITED = Limits(None, None, None, None)
"""For migrations, whose duration cannot be predicted."""

_chosen: list[Limits] = []


def choose(limits: Limits) -> None:
    """Set the limits of this process's sessions; without this call they are those of requests."""
    _chosen[:] = [limits]


def current() -> Limits:
    return _chosen[0] if _chosen else _of_requests()


def of_work() -> Limits:
    """The limits of workers: work on whole warehouses takes longer than a request may."""
    return Limits.of(config.current().worker)


def _of_requests() -> Limits:
    return Limits.of(config.current().database)
