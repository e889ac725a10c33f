"""Checks that database and authorization model are at this version; otherwise `serve` and `work` do not start."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import psycopg
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connections
from django.db.migrations.executor import MigrationExecutor

from lakewarden import backends, config
from lakewarden.authz.ledger import change_log
from lakewarden.errors import Unavailable
from lakewarden.postgres import allowed_sessions, pooler
from lakewarden.postgres.opening import accepts_connections

_LOCK = 0x6C6B6D67  # advisory lock: two runs of `lakewarden migrate` at the same time wait for each other
_PAUSE_S: Final = 0.5
_SAID_EVERY_S: Final = 10.0


class DatabaseNotReady(Exception):
    """The database or OpenFGA cannot be used; the message names the command or setting that helps."""


class DatabaseUnreachable(DatabaseNotReady):
    """The database did not answer or refused the connection."""


class DatabaseNotMigrated(DatabaseNotReady):
    """`lakewarden migrate` has not been run yet."""


def pending() -> list[str]:
    """The migrations that are not applied yet, as `app.name`; raises DatabaseNotReady."""
    try:
        executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    except (OperationalError, InterfaceError) as error:
        connections[DEFAULT_DB_ALIAS].close()  # otherwise the next attempt would use the same broken connection
        raise DatabaseUnreachable(f"The database cannot be reached: {str(error).strip()}") from error
    unknown = set(executor.loader.applied_migrations) - set(executor.loader.disk_migrations)
    if unknown:
        names = ", ".join(f"{app}.{name}" for app, name in sorted(unknown)[:3])
        raise DatabaseNotReady(
            f"The database is newer than this version of Lakewarden (it has {names}): start the newer version"
        )
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def require_current() -> None:
    """Raises DatabaseNotReady unless database and authorization model are at exactly this version."""
    _refuse_wrong_pooler()
    missing = pending()
    if missing:
        raise DatabaseNotMigrated(
            f"The database is not migrated ({len(missing)} pending, first {missing[0]}): run `lakewarden migrate` first"
        )
    settings = config.current()
    if settings.authorization.by_openfga:
        from lakewarden.authz.openfga import store  # noqa: PLC0415 its SDK takes time to load

        if problem := store.problem(settings.openfga):
            raise DatabaseNotMigrated(f"OpenFGA cannot be used: {problem}")
    else:
        change_log.stop_following()


def require_decisions() -> None:
    """Raises DatabaseNotMigrated unless OpenFGA, if it decides, answers and has what the database says of it."""
    settings = config.current()
    if settings.authorization.by_openfga:
        from lakewarden.authz.openfga import store  # noqa: PLC0415 its SDK takes time to load

        try:
            problem = store.lost(settings.openfga)
        except Unavailable as error:
            raise DatabaseNotMigrated(error.message) from error
        if problem:
            raise DatabaseNotMigrated(f"OpenFGA cannot be used: {problem}")


def require_keys() -> None:
    """Raises DatabaseNotReady unless the secrets in the database can be read with the keys of the configuration."""
    if problem := backends.secrets_problem():
        raise DatabaseNotReady(
            f"The secrets in the database cannot be used. {problem}. Is it lost? See `lakewarden secrets forget-lost`"
        )


def few_sessions(needed: int) -> str | None:
    """A sentence if PostgreSQL allows fewer; None also if the database has just gone away, which the next use says."""
    with suppress(Error):
        return allowed_sessions.shortage(connections[DEFAULT_DB_ALIAS], needed=needed)
    return None


def wait_until_current(tell: Callable[[str], None]) -> None:
    """Like `require_current`, but wait for a database that is not reachable yet, at most `database.start_wait_s`.

    It does not wait for a database that accepts connections but rejects this one (a wrong password). `tell` is called
    with a message immediately and then every ten seconds.
    """
    settings = config.current().database
    began, told_at, has_accepted = time.monotonic(), -_SAID_EVERY_S, False
    while True:
        try:
            return require_current()
        except DatabaseUnreachable as error:
            accepts, waited_s = accepts_connections(settings), time.monotonic() - began
            # the database may have become reachable since the failure, so it gets a second attempt before this one
            # counts
            if (accepts and has_accepted) or waited_s >= settings.start_wait_s:
                raise
            has_accepted = accepts
            if waited_s - told_at >= _SAID_EVERY_S:
                told_at = waited_s
                tell(f"{error}. Waiting for it for at most {settings.start_wait_s:g} s (database.start_wait_s)")
        time.sleep(_PAUSE_S)


def wait_for(tell: Callable[[str], None], *, migrated: bool, patience_s: float) -> None:
    """Wait at most `patience_s` for a database that can be reached, and with `migrated` for one at this version.

    With `migrated` OpenFGA must answer, too: servers start without it, but a new one need not before it can decide.

    Raises DatabaseNotReady: the last reason why it was not.
    """
    began, told_at = time.monotonic(), -_SAID_EVERY_S
    while True:
        try:
            if not migrated:
                return _refuse_wrong_pooler()
            require_current()
            return require_decisions()
        except (DatabaseUnreachable, DatabaseNotMigrated) as error:
            waited_s = time.monotonic() - began
            if waited_s >= patience_s:
                raise
            if waited_s - told_at >= _SAID_EVERY_S:
                told_at = waited_s
                tell(f"{error}. Waiting for at most {patience_s:g} s (--wait)")
        time.sleep(_PAUSE_S)


def _refuse_wrong_pooler() -> None:
    try:
        is_wrong = pooler.lends_by_transaction(config.current().database)
    except psycopg.Error as error:
        raise DatabaseUnreachable(f"The database cannot be reached: {str(error).strip()}") from error
    if is_wrong:
        raise DatabaseNotReady(f"The database cannot be used: {pooler.SENTENCE}. To mend it, {pooler.REMEDY}")


def migrate_authorization() -> list[str]:
    """Update OpenFGA's store and model to this version; returns a sentence for each step. Raises DatabaseNotReady."""
    settings = config.current()
    if not settings.authorization.by_openfga:
        return []
    from lakewarden.authz.openfga import store  # noqa: PLC0415 its SDK takes time to load

    try:
        with _alone():
            return store.migrate(settings.openfga)
    except Unavailable as error:
        raise DatabaseNotReady(error.message) from error


def migrate(*, verbosity: int) -> list[str]:
    """Apply pending migrations under a lock; returns their names. Raises DatabaseNotReady."""
    _refuse_wrong_pooler()
    missing = pending()
    if not missing:
        return []
    with _alone():
        call_command("migrate", interactive=False, verbosity=verbosity)
    return missing


@contextmanager
def _alone() -> Iterator[None]:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("select pg_advisory_lock(%s)", [_LOCK])
        try:
            yield
        finally:
            cursor.execute("select pg_advisory_unlock(%s)", [_LOCK])
