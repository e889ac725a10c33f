"""Cancels running database queries when the process stops."""

import contextlib
import threading
from typing import Any, Final

import psycopg
from django.db import connections
from psycopg.pq import TransactionStatus

_PATIENCE_S: Final = 1.0


class RunningQueries:
    def __init__(self) -> None:
        self._sessions: list[Any] = []
        self._lock = threading.Lock()

    def register(self) -> None:
        """Register the calling thread's session, which it keeps for its whole life."""
        with self._lock:
            self._sessions.append(connections["default"])

    def cancel(self) -> None:
        """Cancel running queries. Otherwise PostgreSQL would go on waiting for a lock after the process has ended."""
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            connection: psycopg.Connection[Any] | None = session.connection
            if connection is not None and connection.info.transaction_status == TransactionStatus.ACTIVE:
                with contextlib.suppress(psycopg.Error):
                    connection.cancel_safe(timeout=_PATIENCE_S)


RUNNING: Final = RunningQueries()
