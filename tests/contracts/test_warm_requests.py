"""Requests whose decisions are cached cost one or two queries and no call to OpenFGA, with every backend."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from django.db import connections
from openfga_sdk.sync.rest import RESTClientObject

from lakewarden import backends
from lakewarden.authz.decision_cache import CALLER_PRINCIPALS, HELD_PRIVILEGES
from lakewarden.authz.openfga import store
from lakewarden.authz.openfga.authorizer import OpenFgaAuthorizer
from lakewarden.hot.sessions import Session
from lakewarden.hot.statements import Statement
from lakewarden.http import request_threads
from tenants.models import Warehouse
from tenants.services import projects
from tests.installation import admin, admin_context, client, engine, grant, warehouse
from tests.servers.asgi_client import AsgiClient

__all__ = ["admin", "admin_context", "client", "engine", "grant", "warehouse"]

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
NOTHING: dict[str, Any] = {"requirements": [], "updates": []}
PROPERTY = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"color": "blue"}}]}


@dataclass
class Asked:
    """Statements by their text (BEGIN and COMMIT apart), and how many HTTP calls went to OpenFGA."""

    statements: list[str] = field(default_factory=list)
    calls: int = 0

    def by(self, request: Callable[[], int]) -> "Asked":
        """The queries and calls of one request, which must succeed."""
        self.statements, self.calls = [], 0
        assert request() in {200, 204}
        return Asked(self.statements, self.calls)


@pytest.fixture(params=["database", "openfga"])
def backend(request: pytest.FixtureRequest, database: None) -> Iterator[str]:
    """Everything in this process is decided by it."""
    if request.param == "openfga":
        store.migrate(request.getfixturevalue("settings"))
    backends.authorizer.cache_clear()
    yield request.param
    decides = backends.authorizer()
    assert isinstance(decides, OpenFgaAuthorizer) == (request.param == "openfga")
    if isinstance(decides, OpenFgaAuthorizer):
        decides.close()
    backends.authorizer.cache_clear()
    HELD_PRIVILEGES.clear()
    CALLER_PRINCIPALS.clear()


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Requests run on one thread: another one would open a connection, and that costs statements of its own."""
    with ThreadPoolExecutor(1) as threads:
        monkeypatch.setattr(request_threads.THREADS, "executor", threads)
        yield
        threads.submit(connections.close_all).result(20)


@pytest.fixture
def asked(backend: str, one_thread: None, monkeypatch: pytest.MonkeyPatch) -> Asked:
    counts = Asked()

    def noted(execute: Callable[..., Any]) -> Callable[..., Any]:
        def noting(cursor: object, statement: object, *arguments: Any, **options: Any) -> Any:
            counts.statements.append(str(statement))
            return execute(cursor, statement, *arguments, **options)

        return noting

    request = RESTClientObject.request

    def called(*arguments: Any, **options: Any) -> Any:
        counts.calls += 1
        return request(*arguments, **options)

    for cursor in (psycopg.Cursor, psycopg.AsyncCursor):
        monkeypatch.setattr(cursor, "execute", noted(cursor.execute))
    monkeypatch.setattr(Session, "fetch", noted(Session.fetch))
    monkeypatch.setattr(Statement, "fetch_one", noted(Statement.fetch_one))
    monkeypatch.setattr(RESTClientObject, "request", called)
    return counts


@dataclass
class Place:
    """Two namespaces of two tables; `one` of namespace `sales` is the only one that the stranger may read."""

    asked: Asked
    warehouse: Warehouse
    engine: AsgiClient
    stranger: AsgiClient

    @property
    def base(self) -> str:
        return f"/catalog/v1/{self.warehouse.id}/namespaces"

    def first_and_next(self, caller: AsgiClient, method: str, path: str, json: Any = None) -> tuple[Asked, Asked]:
        """The queries and calls of a request after a change of rights, and of the same request once more."""

        def request() -> int:
            return caller.call(method, path.format(base=self.base), json=json).status

        assert request() in {200, 204}
        projects.bump_epoch(self.warehouse.project_id)
        return self.asked.by(request), self.asked.by(request)


@pytest.fixture
def place(asked: Asked, engine: AsgiClient, admin: AsgiClient, client: AsgiClient, warehouse: Warehouse) -> Place:
    made = Place(asked, warehouse, engine, client.as_user("stranger"))
    for namespace in ("sales", "archive"):
        assert engine.post(made.base, {"namespace": [namespace]}).status == 200
        for name in ("one", "two"):
            assert engine.post(f"{made.base}/{namespace}/tables", {"name": name, "schema": SCHEMA}).status == 200
    assert made.stranger.get("/management/v1/whoami").status == 200
    found = engine.get(f"{made.base}/sales/tables?returnUuids=true").json()
    identifier = dict(zip((each["name"] for each in found["identifiers"]), found["table-uuids"], strict=True))["one"]
    entry = {"privilege": "select", "principal": {"user": "oidc~stranger"}}
    grants = f"/management/v1/warehouse/{warehouse.id}/table/{identifier}/grants"
    assert admin.post(grants, {"writes": [entry]}).status == 204
    return made


ROUTES = {
    "config": ("GET", "/catalog/v1/config?warehouse=lake", None, 1),
    "load table": ("GET", "{base}/sales/tables/one", None, 1),
    "head table": ("HEAD", "{base}/sales/tables/one", None, 1),
    "list tables": ("GET", "{base}/sales/tables", None, 1),
    "list namespaces": ("GET", "{base}", None, 1),
    "load namespace": ("GET", "{base}/sales", None, 1),
    "credentials": ("GET", "{base}/sales/tables/one/credentials", None, 1),
    # the document is a second look-up, unless this process has committed it or loaded it
    "commit of nothing": ("POST", "{base}/sales/tables/one", NOTHING, 2),
    # row, document, audit entry and event are written by one statement
    "commit of a property": ("POST", "{base}/sales/tables/one", PROPERTY, 2),
}
FILTERED = {
    "load table": ("{base}/sales/tables/one", 1),
    # the look-up that finds that not all may be shown, the one of the place, and the query that filters
    "list tables": ("{base}/sales/tables", 3),
    "list namespaces": ("{base}", 3),
    "list warehouses": ("/management/v1/warehouse", 3),
}


def check(first: Asked, warm: Asked, *, backend: str, statements: int) -> None:
    assert (warm.calls, len(warm.statements)) == (0, statements), warm.statements
    # the first one was counted: were nothing of it seen, the zero would prove nothing
    assert (first.calls > 0) == (backend == "openfga")
    assert len(first.statements) > statements


@pytest.mark.parametrize("name", ROUTES)
def test_a_warm_request_asks_openfga_nothing_and_postgres_once(place: Place, backend: str, name: str) -> None:
    method, path, body, statements = ROUTES[name]
    first, warm = place.first_and_next(place.engine, method, path, body)
    check(first, warm, backend=backend, statements=statements)


@pytest.mark.parametrize("name", FILTERED)
def test_a_warm_request_of_somebody_who_sees_a_part_asks_openfga_nothing(place: Place, backend: str, name: str) -> None:
    path, statements = FILTERED[name]
    first, warm = place.first_and_next(place.stranger, "GET", path)
    check(first, warm, backend=backend, statements=statements)
    assert '"two"' not in place.stranger.get(f"{place.base}/sales/tables").body.decode()
