"""Compares the database with this version's migrations; `serve` and `work` refuse to start on a difference."""

from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.migrations.executor import MigrationExecutor

_LOCK = 0x6C6B6D67  # advisory lock: two `lakewarden migrate` at once run one after the other


class DatabaseNotReady(Exception):
    """The database cannot be used as it is; the message names the command or setting that helps."""


def pending() -> list[str]:
    """Migrations that this version has and the database has not, as `app.name`; raises DatabaseNotReady."""
    try:
        executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    except OperationalError as error:
        raise DatabaseNotReady(f"The database cannot be reached: {str(error).strip()}") from error
    unknown = set(executor.loader.applied_migrations) - set(executor.loader.disk_migrations)
    if unknown:
        names = ", ".join(f"{app}.{name}" for app, name in sorted(unknown)[:3])
        raise DatabaseNotReady(
            f"The database is newer than this version of Lakewarden (it has {names}): start the newer version"
        )
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def require_current() -> None:
    """Raises DatabaseNotReady unless the database is at exactly this version."""
    missing = pending()
    if missing:
        raise DatabaseNotReady(
            f"The database is not migrated ({len(missing)} pending, first {missing[0]}): run `lakewarden migrate` first"
        )


def migrate(*, verbosity: int) -> list[str]:
    """Apply what is pending, under a lock; returns the names. Raises DatabaseNotReady."""
    missing = pending()
    if not missing:
        return []
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("select pg_advisory_lock(%s)", [_LOCK])
        try:
            call_command("migrate", interactive=False, verbosity=verbosity)
        finally:
            cursor.execute("select pg_advisory_unlock(%s)", [_LOCK])
    return missing
