"""For all tests in this process: a migrated database, emptied for each test, and callers of the real application.

`client` calls without credentials; `admin` is the bootstrapped server's administrator; `warehouse` lies in `tmp_path`;
`engine` is an application that may create and modify in it; `stranger` has no right at all. Any further caller is
`client.as_user("<name>")`, whose principal is `oidc~<name>`; `grant` gives one a right on the warehouse.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from jsonschema import Draft202012Validator
from pytest_django import DjangoDbBlocker

from lakewarden import backends, config
from lakewarden import settings as lakewarden_settings
from lakewarden.authz.actions import ProjectAction
from lakewarden.authz.decision_cache import CALLER_PRINCIPALS, HELD_PRIVILEGES
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.config.secrets import new_key
from lakewarden.context import Caller, PrincipalId, RequestContext
from lakewarden.events.models import OutboxEvent
from lakewarden.events.schemas import all_schemas
from lakewarden.events.types import EVENTS
from lakewarden.storage.profiles import parse_profile
from tenants import access
from tenants.models import Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects, servers, warehouses
from tests.servers import asgi_client, postgres
from tests.servers.asgi_client import AsgiClient
from tests.servers.stub_authenticator import StubAuthenticator

Grant = Callable[[str, str], None]

ADMIN = PrincipalId("oidc~admin")
EVENT_SCHEMAS = {
    name: Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    for name, schema in all_schemas().items()
}


@pytest.fixture(scope="session")
def database_url(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker, worker_id: str
) -> Iterator[str]:
    """A migrated database of this process; settings and `LAKEWARDEN__*` (for servers as processes) point to it."""
    with postgres.shared() as server, django_db_blocker.unblock():
        url = server.create_database(f"lakewarden_{worker_id}")
        os.environ["LAKEWARDEN__DATABASE__URL"] = url
        os.environ["LAKEWARDEN__STORAGE__LOCAL_ROOTS"] = str(tmp_path_factory.getbasetemp())
        os.environ["LAKEWARDEN__SECRETS__KEYS"] = new_key("tests")
        config.current.cache_clear()
        settings.DATABASES["default"] = lakewarden_settings._database(config.current().database)
        # Django has read the settings without a database, and remembers that
        connections.close_all()
        connections.settings = connections.configure_settings(None)
        del connections["default"]
        call_command("migrate", interactive=False, verbosity=0)
        yield url
        asgi_client.close_connections()
        connections.close_all()
        server.drop_database(f"lakewarden_{worker_id}")


@pytest.fixture(scope="session")
def django_db_setup(database_url: str) -> None:
    """Tests marked `django_db` use the same database, not one of Django's own."""


@pytest.fixture
def database(database_url: str, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The database, empty of everything but its migrations; the test may use the ORM."""
    with django_db_blocker.unblock():
        with connection.cursor() as cursor:
            names = set(connection.introspection.table_names(cursor)) - {"django_migrations"}
            tables = ", ".join(connection.ops.quote_name(name) for name in sorted(names))
            cursor.execute(f"truncate {tables} restart identity cascade")
        yield
        for kind, about, members in OutboxEvent.objects.values_list("type", "object_type", "data").distinct():
            described = EVENTS[kind]
            assert about in described.objects, f"{kind} is about a {about}: events.types does not say so"
            assert set(described.data) <= members.keys() <= {*described.data, *described.sometimes}, kind
            EVENT_SCHEMAS[kind].validate(members)


@pytest.fixture
def client(database: None, monkeypatch: pytest.MonkeyPatch) -> AsgiClient:
    """A caller without credentials of the application with this database."""
    stub = StubAuthenticator()
    monkeypatch.setattr(backends, "authenticator", lambda: stub)
    backends.authorizer.cache_clear()
    HELD_PRIVILEGES.clear()
    CALLER_PRINCIPALS.clear()
    return AsgiClient()


@pytest.fixture
def admin_context() -> RequestContext:
    """For service calls of the administrator `oidc~admin`, e.g. to arrange a test."""
    caller = Caller(ADMIN, name="Admin", email="admin@example.org", kind="human")
    return RequestContext(caller=caller, request_id="arranged-by-a-test", user_agent="pytest")


@pytest.fixture
def admin(client: AsgiClient, admin_context: RequestContext) -> AsgiClient:
    """The first administrator of a bootstrapped server."""
    servers.bootstrap(admin_context.caller, admin_context)
    return client.as_user("admin")


@pytest.fixture
def stranger(client: AsgiClient, admin: AsgiClient) -> AsgiClient:
    """Somebody with a valid token and no rights."""
    return client.as_user("stranger")


@pytest.fixture
def warehouse(admin: AsgiClient, admin_context: RequestContext, tmp_path: Path) -> Warehouse:
    """An empty warehouse named `lake` in the default project, in `tmp_path/lake`; the administrator owns it."""
    granted = access.project(admin_context, DEFAULT_PROJECT_ID, ProjectAction.CREATE_WAREHOUSE)
    profile = parse_profile({"type": "local", "base-path": str(tmp_path / "lake")})
    return warehouses.create(granted, "lake", profile=profile, delete_profile={"type": "hard"})


@pytest.fixture
def grant(warehouse: Warehouse) -> Grant:
    """`grant("alice", "select")` gives `oidc~alice` a privilege on the warehouse."""

    def give(name: str, privilege: str) -> None:
        ledger.give(
            access.warehouse_chain(warehouse), [(PrincipalId(f"oidc~{name}"), Privilege(privilege))], granted_by=ADMIN
        )
        projects.bump_epoch(warehouse.project_id)

    return give


@pytest.fixture
def engine(client: AsgiClient, grant: Grant) -> AsgiClient:
    """An application that may create and modify everything in the warehouse, but not grant."""
    grant("engine", "create")
    grant("engine", "modify")
    return client.as_user("engine")
