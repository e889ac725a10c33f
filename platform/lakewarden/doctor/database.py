"""Checks the database: reachable, recent enough, migrated, bootstrapped; then warehouses, work and growing tables.

It uses plain SQL and a connection of its own, because it must work with a database of any version.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

import psycopg

from lakewarden.config import Config
from lakewarden.doctor import backlog, database_sessions, event_sinks, growing_tables, schema, secrets, warehouses
from lakewarden.doctor.findings import Finding, State, fail, ok
from lakewarden.postgres.bounded import Bounded
from lakewarden.postgres.opening import open_plain

OLDEST = 15  # PostgreSQL's major version
_REFUSED = ("password authentication failed", "no password supplied", 'role "')
_ADDRESS = "postgresql://user:password@host:port/database"


def examine(settings: Config) -> Iterator[Finding]:
    if settings.database.url is None:
        yield fail("database", "its address is not set", fix=f"set LAKEWARDEN__DATABASE__URL to {_ADDRESS}")
        return
    url = settings.database.url.get_secret_value()
    place = shown(url)
    if place is None:
        yield fail(
            "database",
            "its address is not understood",
            fix=f"write it as {_ADDRESS}, with special characters of the password percent-encoded",
        )
        return
    try:
        connection = open_plain(settings.database)
    except psycopg.Error as error:
        yield unreachable(place, _without_password(str(error), url))
        return
    with connection:
        try:
            yield from _reached(connection, place, settings)
        except psycopg.Error as error:
            yield fail(
                "database",
                f"{place} rejects queries: {error.diag.message_primary or type(error).__name__}",
                fix="see that the user in LAKEWARDEN__DATABASE__URL owns the database's tables",
            )


def shown(url: str) -> str | None:
    """`host:port/database` of an address; None if it is malformed, because any part of it could be the password."""
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError:
        return None
    if parts.scheme not in {"postgresql", "postgres"} or url.count("@") > 1 or parts.fragment:
        return None
    return f"{parts.hostname or 'localhost'}:{port}{parts.path}"


def unreachable(place: str, reason: str) -> Finding:
    """Why there is no connection to `place`, derived from libpq's message."""
    if any(sign in reason for sign in _REFUSED):
        return fail(
            "database",
            f"{place} rejects the user or the password",
            fix="correct user and password in LAKEWARDEN__DATABASE__URL, or create the role in PostgreSQL",
        )
    if "does not exist" in reason:
        return fail("database", f"{place} does not exist on that server", fix="create it: createdb, or CREATE DATABASE")
    return fail(
        "database",
        f"{place} cannot be reached: {_last_line(reason)}",
        fix="see that PostgreSQL runs there and that host and port in LAKEWARDEN__DATABASE__URL are right",
    )


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1].strip() if text.strip() else "no reason is given"


def _without_password(text: str, url: str) -> str:
    password = urlsplit(url).password
    for secret in {password, unquote(password or "")} - {None, ""}:
        # only whole words are masked: a password such as "a" must not make the whole message unreadable
        text = re.sub(rf"(?<!\w){re.escape(str(secret))}(?!\w)", "***", text)
    return text


def _reached(connection: Bounded, place: str, settings: Config) -> Iterator[Finding]:
    version = connection.info.server_version // 10_000
    if version < OLDEST:
        yield fail(
            "database",
            f"{place} is PostgreSQL {version}, {OLDEST} is the oldest that works",
            fix="upgrade the PostgreSQL server",
        )
        return
    yield ok("database", f"{place} is reachable, PostgreSQL {version}")
    yield database_sessions.examine(connection, settings)
    migrated = schema.migrations(connection)
    yield migrated
    if migrated.state is State.OK:
        yield schema.bootstrap(connection)
        yield from secrets.examine(connection, settings.secrets)
        yield from warehouses.examine(connection)
        yield from backlog.examine(connection)
        yield from event_sinks.examine(connection)
        yield from growing_tables.examine(connection, settings)
