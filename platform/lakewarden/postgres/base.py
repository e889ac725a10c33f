"""Django's PostgreSQL backend with `Bounded` connections; settings.py names this package as the engine."""

from typing import Any

from django.db.backends.postgresql import base

from lakewarden.postgres import limits
from lakewarden.postgres.bounded import Bounded, begin


class DatabaseWrapper(base.DatabaseWrapper):
    has_sent_commit = False
    """Whether a commit was sent since `lakewarden.database.begin_request`: then a failed
    request must not be repeated.
    """

    def get_new_connection(self, conn_params: dict[str, Any]) -> Bounded:
        connection = Bounded.connect(**conn_params, autocommit=True)
        try:
            begin(connection, limits.current())
        except BaseException:
            connection.close()
            raise
        return connection

    def _commit(self) -> None:
        self.has_sent_commit = True
        super()._commit()  # type: ignore[misc]  # Django's own hook, which its stubs leave out
