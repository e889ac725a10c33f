"""Creations that reach the creation writer together, on the event loop of the application."""

import asyncio
import json
import os
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from catalog.models import Namespace, Tabular
from catalog.services import creation_writer
from catalog.services.client_access import Addition
from catalog.services.creation_writer.new_namespaces import Created
from catalog.services.pointer import Stored
from catalog.services.tables import CreateTable
from lakewarden.authz.interface import Granted
from lakewarden.context import IdempotencyKey
from tenants.models import Warehouse
from tests.integration.catalog.lake import SCHEMA
from tests.integration.catalog.together import on_the_loop

T = TypeVar("T")
Top = Callable[..., Granted[Warehouse]]
Into = Callable[..., Granted[Namespace]]


def create_together(*work: Coroutine[Any, Any, T]) -> list[T]:
    """What each of them returns; they begin in their order, at the same moment."""
    return on_the_loop(lambda: asyncio.gather(*work))


def body(name: str, **more: Any) -> bytes:
    return json.dumps({"name": name, "schema": SCHEMA, **more}).encode()


def key() -> IdempotencyKey:
    return IdempotencyKey(uuid.uuid4(), fingerprint="of-the-request", attempt=uuid.uuid4())


def table(
    namespace: Granted[Namespace], name: str, *, is_taken: bool = False, **more: Any
) -> Coroutine[Any, Any, Stored | None]:
    request = CreateTable(name=name, location=more.get("location"), stage_create=more.get("stage-create", False))
    asked = body(name, **more)
    return _created(creation_writer.create_table(namespace, request, asked, is_taken=is_taken, access=no_access))


async def no_access(_: Tabular) -> Addition:
    """For warehouses in a directory, where nobody asks."""
    raise AssertionError


async def _created(creation: Coroutine[Any, Any, tuple[Stored, Addition] | None]) -> Stored | None:
    done = await creation
    return done and done[0]


def namespace(
    parent: Granted[Warehouse] | Granted[Namespace], *path: str, **properties: str
) -> Coroutine[Any, Any, Created | None]:
    return creation_writer.create_namespace(parent, path, properties)


@contextmanager
def elsewhere(*statements: str) -> Iterator[psycopg.Connection]:
    """Another process that is in the middle of a transaction."""
    with psycopg.connect(os.environ["LAKEWARDEN__DATABASE__URL"]) as other:
        for statement in statements:
            other.execute(statement)
        yield other
        other.rollback()


def files(base: Path) -> set[Path]:
    return {path for path in base.rglob("*") if path.is_file()}


TAKES_ORDERS = """
    insert into tabular (id, warehouse_id, namespace_id, kind, name, name_key, uuid, location, metadata_location,
                         version, created_at, updated_at)
    select gen_random_uuid(), warehouse_id, namespace_id, kind, 'orders', 'orders', gen_random_uuid(), location || 'x',
           metadata_location, 1, now(), now() from tabular limit 1
"""
