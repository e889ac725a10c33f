"""For the catalog's routes: every answer is checked against the OpenAPI document; `lake` is a warehouse to work in."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from catalog import access
from catalog.identifiers import NamespaceIdentifier
from catalog.models import Namespace, Tabular
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.context import Caller, IdempotencyKey, PrincipalId, RequestContext
from lakewarden.events.models import OutboxEvent
from tenants.models import Warehouse
from tests.integration.catalog.creating import Into, Top
from tests.integration.catalog.deleted_namespaces import set_profile
from tests.integration.catalog.lake import Lake
from tests.integration.catalog.observed import Recorded, local
from tests.integration.catalog.openapi import CheckedClient
from tests.integration.catalog.together import Committing
from tests.servers.asgi_client import AsgiClient

__all__ = ["set_profile"]


@pytest.fixture
def client(client: AsgiClient) -> CheckedClient:
    """The `client` of all integration tests, which also checks every answer."""
    return CheckedClient(client.headers)


@pytest.fixture
def lake(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    """The warehouse as `engine` sees it, with the namespace `sales` in it."""
    found = Lake(engine, str(warehouse.id))
    assert found.create_namespace("sales").status == 200
    return found


@pytest.fixture
def recorded() -> Recorded:
    """Returns the types of the changes recorded since this fixture was set up; audit and outbox must agree on them."""
    audit, outbox = AuditEntry.objects.count(), OutboxEvent.objects.count()

    def since() -> list[str]:
        audited = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))[audit:]
        assert list(OutboxEvent.objects.order_by("sequence").values_list("type", flat=True))[outbox:] == audited
        return audited

    return since


@pytest.fixture
def base(warehouse: Warehouse) -> Path:
    """The warehouse's directory."""
    return local(warehouse.location)


@pytest.fixture
def committing(lake: Lake) -> Committing:
    for name in ("orders", "bills"):
        assert lake.create_table(name).status == 200
    return Committing(lake.warehouse_id)


@pytest.fixture
def other(database_url: str, committing: Committing) -> Iterator[psycopg.Connection[Any]]:
    """Another replica's transaction, which begins after `committing` is set up; rolled back at the end."""
    with psycopg.connect(database_url) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def context() -> RequestContext:
    return RequestContext(caller=Caller(PrincipalId("oidc~engine")), request_id="one-request", user_agent="pytest")


@pytest.fixture
def into(lake: Lake, context: RequestContext) -> Into:
    """`into("sales")`: a namespace in which the engine may create tables; its folder is known to be free."""

    def granted(name: str = "sales", idempotency: IdempotencyKey | None = None) -> Granted[Namespace]:
        ref = NamespaceIdentifier.parse(lake.warehouse_id, name)
        found = access.namespace(replace(context, idempotency=idempotency), ref, NamespaceAction.CREATE_TABLE)
        if not Tabular.objects.filter(namespace_id=found.target.id).exists():
            assert lake.create_table("first", within=name).status == 200
        return found

    return granted


@pytest.fixture
def top(lake: Lake, context: RequestContext) -> Top:
    """`top()`: the warehouse, in which the engine may create namespaces."""
    assert lake.create_namespace("counts-them").status == 200  # their quota is known to have room

    def granted(idempotency: IdempotencyKey | None = None) -> Granted[Warehouse]:
        asked = replace(context, idempotency=idempotency)
        return access.warehouse(asked, lake.warehouse_id, WarehouseAction.CREATE_NAMESPACE)

    return granted
