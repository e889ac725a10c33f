"""A real PostgreSQL for tests: quick, forgetful, in a temporary directory; databases are copied from templates.

One server serves a whole run: the process that starts first (pytest's controller) exports `url` in `VARIABLE`, and
every xdist worker that calls `shared()` attaches to it and makes databases of its own.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from standalone.postgres import EmbeddedPostgres

VARIABLE = "LAKEWARDEN_TEST_POSTGRES"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


@dataclass(frozen=True)
class PostgresServer:
    """A running server; `url` is its maintenance database's, with the superuser's rights."""

    url: str
    embedded: EmbeddedPostgres | None = None
    """Its process, of one that was started for the test itself."""

    def url_of(self, database: str) -> str:
        """`postgresql://...` of one of its databases."""
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{database}"))

    def create_database(self, name: str, *, template: str = "template1") -> str:
        """Make database `name` anew, a copy of `template` (which nobody may be connected to), and give its URL."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no plain database name: lower case letters, digits and _ only.")
        self.drop_database(name)
        command = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self._run(command.format(sql.Identifier(name), sql.Identifier(template)))
        return self.url_of(name)

    def drop_database(self, name: str) -> None:
        """Drop database `name` if it is there, and end the sessions in it."""
        self._run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _run(self, command: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(command)


@contextmanager
def start(*, port: int | None = None) -> Iterator[PostgresServer]:
    """A server of its own, gone with its data at the end; with a `port` it has that after another start too."""
    directory = Path(tempfile.mkdtemp(prefix="lw-postgres-"))
    # root's server runs as another user, who must be able to enter
    directory.chmod(0o711)
    server = EmbeddedPostgres(directory, durable=False, port=port, settings={"max_connections": "300"})
    try:
        with server:
            yield PostgresServer(server.url_of("postgres"), server)
    finally:
        for folder in {directory, server.base}:
            shutil.rmtree(folder)


@contextmanager
def shared() -> Iterator[PostgresServer]:
    """The server of this test run: the one whose URL is in `VARIABLE`, else one that is started and put there."""
    if known := os.environ.get(VARIABLE):
        yield PostgresServer(known)
        return
    with start() as server:
        os.environ[VARIABLE] = server.url
        try:
            yield server
        finally:
            del os.environ[VARIABLE]
