"""For the contracts of authorizers: a migrated database, a real OpenFGA in memory, and each backend on both.

`authorizer` runs a test against every backend that decides; `openfga` is the one that asks OpenFGA, with a store of its
own in each test.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections

from lakewarden import config
from lakewarden.authz.database import DatabaseAuthorizer
from lakewarden.authz.interface import Authorizer
from lakewarden.authz.ledger import change_log
from lakewarden.authz.openfga import store
from lakewarden.authz.openfga.authorizer import OpenFgaAuthorizer
from lakewarden.config import OpenFgaConfig
from lakewarden.ids import new_id
from tests.installation import database, database_url, django_db_setup
from tests.servers import openfga as servers
from tests.servers.openfga import OpenFgaServer

__all__ = ["database", "database_url", "django_db_setup"]

# the shared fixture replaces a connection that somebody has looked at already
connections["default"].close()


PATIENT = ("--request-timeout=20s", "--listObjects-deadline=20s")
"""On a busy machine a second is soon gone; `timeout_s` of the clients is as long."""


@pytest.fixture(scope="session")
def server() -> Iterator[OpenFgaServer]:
    with servers.start(flags=(*PATIENT, "--resolve-node-limit=40")) as running:
        yield running


@contextmanager
def configured(server: OpenFgaServer) -> Iterator[OpenFgaConfig]:
    """This process decides by OpenFGA, in a new store without tuples."""
    variables = {
        "LAKEWARDEN__AUTHORIZATION__BACKEND": "openfga",
        "LAKEWARDEN__OPENFGA__API_URL": server.url,
        "LAKEWARDEN__OPENFGA__API_TOKEN": server.api_key,
        "LAKEWARDEN__OPENFGA__TIMEOUT_S": "20",
        "LAKEWARDEN__OPENFGA__STORE": f"test-{new_id()}",
    }
    os.environ.update(variables)
    config.current.cache_clear()
    try:
        yield config.current().openfga
    finally:
        for name in variables:
            del os.environ[name]
        config.current.cache_clear()
        change_log.follow(lambda: None)


@pytest.fixture
def settings(server: OpenFgaServer, database: None) -> Iterator[OpenFgaConfig]:
    """As `configured`; the store is not made yet."""
    with configured(server) as made:
        yield made


@pytest.fixture
def openfga(settings: OpenFgaConfig) -> Iterator[OpenFgaAuthorizer]:
    store.migrate(settings)
    made = OpenFgaAuthorizer(settings)
    yield made
    made.close()


@pytest.fixture(params=["database", "openfga"])
def authorizer(request: pytest.FixtureRequest, database: None) -> Authorizer:
    if request.param == "openfga":
        return request.getfixturevalue("openfga")  # type: ignore[no-any-return]
    return DatabaseAuthorizer()
