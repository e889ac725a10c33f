"""Checks whether the database is migrated to this version and the server is bootstrapped; for database.py."""

import django
import psycopg
from django.db.migrations.loader import MigrationLoader

from lakewarden.doctor.findings import Finding, fail, ok, warn

Key = tuple[str, str]


def migrations(connection: psycopg.Connection) -> Finding:
    """Compare the migrations applied in the database with those of this version."""
    django.setup()
    carried = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    replaced = {key for migration in carried.values() for key in migration.replaces}
    applied = _applied(connection)
    if unknown := sorted(applied - set(carried) - replaced):
        return fail(
            "migrations",
            f"the database is newer than this version: it has {_names(unknown)}",
            fix="install the newer version of Lakewarden here too",
        )
    pending = sorted(
        key
        for key, migration in carried.items()
        # a squashed migration counts as applied if all migrations that it replaces are applied
        if key not in applied
        and key not in replaced
        and not (migration.replaces and set(migration.replaces) <= applied)
    )
    if pending:
        return fail("migrations", f"{len(pending)} are pending: {_names(pending)}", fix="run `lakewarden migrate`")
    return ok("migrations", f"all {len(applied)} are applied")


def bootstrap(connection: psycopg.Connection) -> Finding:
    row = connection.execute("select 1 from server where bootstrapped_at is not null").fetchone()
    if row is not None:
        return ok("bootstrap", "the server has an administrator")
    return warn(
        "bootstrap",
        "this server has no administrator yet",
        fix="run `lakewarden bootstrap --admin <provider>~<subject>`, or POST /management/v1/bootstrap as yourself",
    )


def _applied(connection: psycopg.Connection) -> set[Key]:
    if connection.execute("select to_regclass('django_migrations')").fetchone() == (None,):
        return set()
    return {(app, name) for app, name in connection.execute("select app, name from django_migrations")}


def _names(keys: list[Key]) -> str:
    names = ", ".join(f"{app}.{name}" for app, name in keys[:3])
    return f"{names} and {len(keys) - 3} more" if len(keys) > 3 else names  # noqa: PLR2004 as many as fit in a line
