"""Fixtures of two projects side by side; conftest modules import them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from lakewarden import backends
from lakewarden.authz.decision_cache import CALLER_PRINCIPALS, HELD_PRIVILEGES
from tests.integration.isolation.world import TokenRoles, World, build
from tests.servers.asgi_client import AsgiClient


@contextmanager
def application(blocker: DjangoDbBlocker) -> Iterator[AsgiClient]:
    """The application with the tests' identity provider."""
    with blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        stub = TokenRoles()
        patch.setattr(backends, "authenticator", lambda: stub)
        backends.authorizer.cache_clear()
        yield AsgiClient()


def built(client: AsgiClient, directory: Path) -> World:
    """A world in a database that holds nothing else."""
    with connection.cursor() as cursor:
        names = set(connection.introspection.table_names(cursor)) - {"django_migrations"}
        tables = ", ".join(connection.ops.quote_name(name) for name in sorted(names))
        cursor.execute(f"truncate {tables} restart identity cascade")
    HELD_PRIVILEGES.clear()
    CALLER_PRINCIPALS.clear()
    return build(client, directory)


_shared: list[World] = []


@pytest.fixture
def world(
    database_url: str, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    with application(django_db_blocker) as client:
        if not (_shared and _shared[0].is_there()):
            _shared[:] = [built(client, tmp_path_factory.mktemp("world"))]
        yield _shared[0]


@pytest.fixture
def fresh_world(database_url: str, django_db_blocker: DjangoDbBlocker, tmp_path: Path) -> Iterator[World]:
    with application(django_db_blocker) as client:
        yield built(client, tmp_path)
