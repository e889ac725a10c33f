"""How long a session of this process may wait for what; chosen once, by the command, before the first is opened."""

from dataclasses import dataclass, replace
from typing import Self

from lakewarden import config
from lakewarden.config import SessionTimeouts

ANSWER_GRACE_S = 3.0
"""The database ends a statement itself: only one that is frozen, or cut off in silence, is still quiet after this."""


@dataclass(frozen=True, slots=True)
class Limits:
    """All in seconds; None is without a limit."""

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
        """How long we wait for an answer before we hang up ourselves."""
        return None if self.statement_s is None else self.statement_s + ANSWER_GRACE_S

    def at_most(self, statement_s: float) -> Self:
        """These, with a shorter time for a statement."""
        return replace(self, statement_s=min(statement_s, self.statement_s or statement_s))

    def parameters(self) -> dict[str, str]:
        """PostgreSQL's names and values; one that the server does not know is left out there."""
        database = config.current().database
        named = {
            "lock_timeout": self.lock_s,
            "statement_timeout": self.statement_s,
            "idle_in_transaction_session_timeout": self.idle_in_transaction_s,
            "transaction_timeout": self.transaction_s,
        }
        return {name: str(round((seconds or 0) * 1000)) for name, seconds in named.items()} | {
            # the server's side: a server machine that is gone does not keep a session for hours
            "tcp_keepalives_idle": str(database.keepalive_idle_s),
            "tcp_keepalives_interval": str(database.keepalive_interval_s),
            "tcp_keepalives_count": str(database.keepalive_count),
        }


UNLIMITED = Limits(None, None, None, None)
"""For migrations: they take the time that they take."""

_chosen: list[Limits] = []


def choose(limits: Limits) -> None:
    """Say what the sessions of this process are for; without it they are for requests."""
    _chosen[:] = [limits]


def current() -> Limits:
    return _chosen[0] if _chosen else _of_requests()


def of_work() -> Limits:
    """For a worker: whole warehouses take longer than a caller would wait."""
    return Limits.of(config.current().worker)


def _of_requests() -> Limits:
    return Limits.of(config.current().database)
