"""Compares the sessions that PostgreSQL allows this user with those that a server or worker opens when it is busy."""

from typing import Any, Final

from lakewarden.config import Config

REMEDY: Final = "lower LAKEWARDEN__SERVER__THREADS or LAKEWARDEN__WORKER__TASKS_AT_ONCE, or allow more for each replica"
_BESIDE_THREADS: Final = 8  # of each process: hot reads, its health, its records


def needed_by_server(settings: Config) -> int:
    """At least: where the number of processes is not set, it is chosen by the cores."""
    return settings.server.threads + _BESIDE_THREADS * (settings.server.processes or 1)


def needed_by_worker(settings: Config) -> int:
    return 2 * settings.worker.tasks_at_once + 4


def shortage(connection: Any, *, needed: int) -> str | None:  # noqa: ANN401 psycopg's or Django's
    """A sentence if fewer are allowed than are `needed`. A pooler in between may have a limit of its own."""
    with connection.cursor() as cursor:
        cursor.execute(_ALLOWED)
        user, database, is_superuser, of_server, of_database, of_user = cursor.fetchone()
    limits = [(of_server, "max_connections, less those that are reserved")]
    if not is_superuser:
        limits += [(of_database, f"the limit of the database {database!r}"), (of_user, f"the limit of {user!r}")]
    allowed, which = min((each for each in limits if each[0] >= 0), key=lambda each: each[0])
    if allowed >= needed:
        return None
    return f"PostgreSQL allows {allowed} sessions here ({which}), and {needed} may be needed"


_ALLOWED: Final = """
    select current_user, current_database(), rolsuper,
           current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
               - coalesce(current_setting('reserved_connections', true), '0')::int,
           datconnlimit, rolconnlimit
    from pg_roles, pg_database where rolname = current_user and datname = current_database()
"""
