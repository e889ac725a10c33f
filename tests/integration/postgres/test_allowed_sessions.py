"""How many sessions PostgreSQL allows is compared with what a server needs, whichever limit is the smallest."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from lakewarden import config
from lakewarden.doctor import database_sessions
from lakewarden.doctor.findings import State
from lakewarden.postgres import allowed_sessions
from lakewarden.postgres.opening import open_plain
from tests.servers import postgres

ROLE = "few_sessions"


@pytest.fixture
def owned() -> Iterator[tuple[str, psycopg.Connection]]:
    """The address of a database by the name of a user who owns it, and a session of somebody who may change both."""
    with postgres.shared() as server:
        url = server.create_database(ROLE)
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(f"create role {ROLE} login password 'few'".encode())
            admin.execute(f"alter database {ROLE} owner to {ROLE}".encode())
            parts = urlsplit(url)
            yield parts._replace(netloc=f"{ROLE}:few@{parts.netloc.rpartition('@')[2]}").geturl(), admin
            admin.execute(f"alter database {ROLE} owner to current_user".encode())
            admin.execute(f"drop role {ROLE}".encode())
        server.drop_database(ROLE)


def told(url: str, needed: int) -> str | None:
    with psycopg.connect(url) as connection:
        return allowed_sessions.shortage(connection, needed=needed)


def test_the_smallest_limit_counts(owned: tuple[str, psycopg.Connection]) -> None:
    url, admin = owned
    assert told(url, 1) is None
    assert "max_connections, less those that are reserved" in (told(url, 10**6) or "")
    admin.execute(f"alter database {ROLE} connection limit 9".encode())
    assert told(url, 9) is None
    assert f"allows 9 sessions here (the limit of the database '{ROLE}'), and 10 may" in (told(url, 10) or "")
    admin.execute(f"alter role {ROLE} connection limit 5".encode())
    assert f"allows 5 sessions here (the limit of '{ROLE}'), and 6 may be needed" in (told(url, 6) or "")
    admin.execute(f"alter role {ROLE} superuser".encode())
    assert told(url, 10) is None  # no limit of a database or of its own is a superuser's


def test_the_doctor_says_how_to_mend_it(owned: tuple[str, psycopg.Connection]) -> None:
    url, admin = owned
    admin.execute(f"alter role {ROLE} connection limit 5".encode())
    settings = config.read({"LAKEWARDEN__DATABASE__URL": url})
    with open_plain(settings.database) as connection:
        found = database_sessions.examine(connection, settings)
    assert found.state is State.WARN
    assert "and 24 may be needed by a server" in found.sentence
    assert "LAKEWARDEN__SERVER__THREADS" in (found.fix or "")
