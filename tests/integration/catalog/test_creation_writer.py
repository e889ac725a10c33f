"""Creations on the event loop are what the ordinary ones are, and leave alone what they cannot do."""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from catalog import access
from catalog.identifiers import NamespaceIdentifier
from catalog.models import Namespace
from catalog.services import creation_writer
from catalog.services.pointer import Stored
from catalog.services.tables import CreateTable
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.context import Caller, PrincipalId, RequestContext
from tests.integration.catalog.lake import SCHEMA, Lake
from tests.servers import asgi_client

T = TypeVar("T")


def together(*work: Coroutine[Any, Any, T]) -> list[T]:
    async def run() -> list[T]:
        return list(await asyncio.gather(*work))

    return asgi_client._await(run())


def body(name: str, **more: Any) -> bytes:
    return json.dumps({"name": name, "schema": SCHEMA, **more}).encode()


@pytest.fixture
def context() -> RequestContext:
    return RequestContext(caller=Caller(PrincipalId("oidc~engine")), request_id="one-request", user_agent="pytest")


@pytest.fixture
def sales(lake: Lake, context: RequestContext) -> Granted[Namespace]:
    """Its folder is known to be free."""
    assert lake.create_table("first").status == 200
    ref = NamespaceIdentifier.parse(lake.warehouse_id, "sales")
    return access.namespace(context, ref, NamespaceAction.CREATE_TABLE)


def create(namespace: Granted[Namespace], name: str) -> Coroutine[Any, Any, Stored | None]:
    return creation_writer.create_table(namespace, CreateTable(name=name), body(name))


def test_tables_created_at_once_are_all_there(sales: Granted[Namespace], lake: Lake) -> None:
    assert all(together(*(create(sales, f"t{n}") for n in range(10))))
    assert [lake.load(f"t{n}")["metadata"]["location"] for n in range(10)]


def test_namespaces_created_at_once_are_all_there(lake: Lake, context: RequestContext) -> None:
    top = access.warehouse(context, lake.warehouse_id, WarehouseAction.CREATE_NAMESPACE)
    made = together(*(creation_writer.create_namespace(top, [f"n{n}"], {"a": "b"}) for n in range(10)))
    assert [each and each.path for each in made] == [[f"n{n}"] for n in range(10)]
    found = lake.client.get(lake.namespace("n3")).json()
    assert made[3] == (found["namespace"], found["properties"])
