"""For the contracts of authorizers: a migrated database, a real OpenFGA in memory, and each backend on both.

`authorizer` runs a test against every backend that decides; `openfga` is the one that asks OpenFGA, with a store of its
own in each test.
"""

from collections.abc import Iterator

import pytest
from django.db import connections

from lakewarden.authz.database import DatabaseAuthorizer
from lakewarden.authz.interface import Authorizer
from lakewarden.authz.openfga import store
from lakewarden.authz.openfga.authorizer import OpenFgaAuthorizer
from lakewarden.config import OpenFgaConfig
from tests.contracts.openfga_decides import PATIENT, configured
from tests.installation import database, database_url, django_db_setup
from tests.servers import openfga as servers
from tests.servers.openfga import OpenFgaServer

__all__ = ["database", "database_url", "django_db_setup"]

# the shared fixture replaces a connection that somebody has looked at already
connections["default"].close()


@pytest.fixture(scope="session")
def server() -> Iterator[OpenFgaServer]:
    with servers.start(flags=(*PATIENT, "--resolve-node-limit=40")) as running:
        yield running


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
