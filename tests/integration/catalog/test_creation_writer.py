"""Creations on the event loop are what the ordinary ones are, and leave alone what they cannot do."""

import asyncio
import json
import os
import re
import threading
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from django.db import connection

from catalog import access
from catalog.documents import Document, inflated
from catalog.identifiers import NamespaceIdentifier
from catalog.models import Namespace, Tabular
from catalog.models.tabular import TabularDocument
from catalog.services import creation_writer, location_claims, namespaces, tables
from catalog.services.creation_writer import additions
from catalog.services.creation_writer.new_namespaces import Created
from catalog.services.pointer import Stored
from catalog.services.tables import CreateTable
from lakewarden import config, quotas
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import change_log
from lakewarden.authz.ledger.models import Change as LoggedChange
from lakewarden.context import Caller, IdempotencyKey, PrincipalId, RequestContext
from lakewarden.errors import AlreadyExists, CommitStateUnknown
from lakewarden.hot import connections
from lakewarden.idempotency.models import IdempotencyRecord
from lakewarden.storage.interface import StorageError
from lakewarden.storage.local import LocalStorage
from tenants.models import Warehouse
from tenants.services import projects
from tests.integration.catalog.lake import SCHEMA, Lake
from tests.servers import asgi_client

T = TypeVar("T")
Top = Callable[..., Granted[Warehouse]]
Into = Callable[..., Granted[Namespace]]


def at_once(*work: Coroutine[Any, Any, T]) -> list[T]:
    """What each of them returns; they begin in their order, at the same moment."""

    async def all_of_them() -> list[T]:
        return list(await asyncio.gather(*work))

    return asgi_client._await(all_of_them())


def body(name: str, **more: Any) -> bytes:
    return json.dumps({"name": name, "schema": SCHEMA, **more}).encode()


def key() -> IdempotencyKey:
    return IdempotencyKey(uuid.uuid4(), fingerprint="of-the-request", attempt=uuid.uuid4())


@pytest.fixture
def context() -> RequestContext:
    return RequestContext(caller=Caller(PrincipalId("oidc~engine")), request_id="one-request", user_agent="pytest")


@pytest.fixture
def into(lake: Lake, context: RequestContext) -> Into:
    """`into("sales")`: where the engine may create tables; the folder is known to be free."""

    def granted(name: str = "sales", idempotency: IdempotencyKey | None = None) -> Granted[Namespace]:
        ref = NamespaceIdentifier.parse(lake.warehouse_id, name)
        found = access.namespace(replace(context, idempotency=idempotency), ref, NamespaceAction.CREATE_TABLE)
        if not Tabular.objects.filter(namespace_id=found.target.id).exists():
            assert lake.create_table("first", within=name).status == 200
        return found

    return granted


@pytest.fixture
def top(lake: Lake, context: RequestContext) -> Top:
    """Where the engine may create top namespaces."""
    assert lake.create_namespace("counts-them").status == 200  # their quota is known to have room

    def granted(idempotency: IdempotencyKey | None = None) -> Granted[Warehouse]:
        asked = replace(context, idempotency=idempotency)
        return access.warehouse(asked, lake.warehouse_id, WarehouseAction.CREATE_NAMESPACE)

    return granted


def table(namespace: Granted[Namespace], name: str, **more: Any) -> Coroutine[Any, Any, Stored | None]:
    request = CreateTable(name=name, location=more.get("location"), stage_create=more.get("stage-create", False))
    return creation_writer.create_table(namespace, request, body(name, **more))


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


def becomes(number: int, found: Callable[[], int]) -> bool:
    """Whether `found` is so many in the end: files that are not used are removed in the background."""
    for _ in range(200):
        if found() == number:
            return True
        threading.Event().wait(0.05)
    return False


TABLES = ("tabular", "namespace", "authz_grant", "audit_entry", "outbox_event", "idempotency_record", "authz_change")
VOLATILE = {"at", "created_at", "updated_at", "sequence", "key", "attempt", "last_at", "document"}


def rows() -> dict[str, list[dict[str, Any]]]:
    """All rows, in the order in which they were written."""
    with connection.cursor() as cursor:
        found = {}
        for name in TABLES:
            cursor.execute(f"select to_jsonb(t) from {name} t order by xmin::text::bigint, ctid")  # noqa: S608 our own names
            found[name] = [json.loads(value) for (value,) in cursor.fetchall()]
    for row in found["tabular"]:
        document = TabularDocument.objects.get(tabular_id=row["id"])
        plain = inflated(Document(bytes(document.content), document.crc, document.length)).decode()
        assert len(plain) == document.length
        row["document"] = re.sub(r'"last-updated-ms":\d+', "", plain) + f" of version {document.version}"
    return found


def new_rows(before: dict[str, list[dict[str, Any]]], *, within: str) -> str:
    """What has come since, without what is different for each object."""
    ids: dict[str, str] = {}
    lines = []
    for name, found in rows().items():
        for row in found:
            if row not in before[name]:
                plain = {column: value for column, value in row.items() if column not in VOLATILE}
                if not isinstance(row.get("id"), str):
                    plain.pop("id", None)
                lines.append(f"{name} {json.dumps(plain, sort_keys=True)} {row.get('document', '')}")
    text = "\n".join(lines).replace(within, "somewhere")
    return re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", lambda each: ids.setdefault(each[0], f"id{len(ids)}"), text)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"properties": {"owner": "me", "format-version": "1"}},
        {"properties": {"write.metadata.compression-codec": "gzip"}, "partition-spec": {"fields": []}},
    ],
)
@pytest.mark.parametrize("keyed", ["with a key", ""])
def test_a_table_is_the_same_in_all_tables_whichever_way_it_came(
    lake: Lake, into: Into, keyed: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "are_logged", lambda: True)
    lake.create_namespace("other")
    ordinary, writer = into("sales", key() if keyed else None), into("other", key() if keyed else None)

    before = rows()
    tables.create(ordinary, CreateTable(name="orders"), body("orders", **more))
    expected = new_rows(before, within="sales")
    before = rows()
    (made,) = at_once(table(writer, "orders", **more))

    assert made is not None
    assert new_rows(before, within="other") == expected
    assert expected.count("\n") == (5 if keyed else 4)
    stored = Tabular.objects.get(id=made.tabular.id)
    for column in ("location", "metadata_location", "uuid", "version", "name_key", "namespace_id", "warehouse_id"):
        assert getattr(made.tabular, column) == getattr(stored, column)
    assert lake.load("orders", within="other")["metadata"]["table-uuid"] == str(made.tabular.uuid)
    assert Path(stored.metadata_location.removeprefix("file://")).is_file()


@pytest.mark.parametrize("where", ["nested", "top"])
@pytest.mark.parametrize("keyed", ["with a key", ""])
def test_a_namespace_is_the_same_in_all_tables_whichever_way_it_came(
    into: Into, top: Top, keyed: str, where: str
) -> None:
    def parent(name: str) -> tuple[Granted[Warehouse] | Granted[Namespace], tuple[str, ...]]:
        asked = key() if keyed else None
        return (into("Sales", asked), ("SALES", name)) if where == "nested" else (top(asked), (name,))

    ordinary, path = parent("first-one")
    before = rows()
    created = namespaces.create(ordinary, path, {"owner": "me"})
    expected = new_rows(before, within="first-one")
    writer, path = parent("other-one")
    before = rows()
    (made,) = at_once(namespace(writer, *path, owner="me"))

    assert made is not None
    assert new_rows(before, within="other-one") == expected
    assert expected.count("\n") == (4 if keyed else 3)
    found = Namespace.objects.get(name_key="other-one")
    assert made == Created(found.path, found.properties)
    assert created.path[:-1] == made.path[:-1]


def test_of_two_creations_of_one_name_one_wins_and_the_other_explains_itself(into: Into, base: Path) -> None:
    sales = into()
    before = files(base)
    made = at_once(table(sales, "orders"), table(sales, "Orders"), table(sales, "bills"))
    assert sorted(each is not None for each in made) == [False, True, True]
    assert Tabular.objects.filter(name_key="orders").count() == 1
    with pytest.raises(AlreadyExists):
        tables.create(sales, CreateTable(name="orders"), body("orders"))
    assert becomes(2, lambda: len(files(base) - before))


def test_of_two_creations_of_one_namespace_one_wins(top: Top) -> None:
    made = at_once(namespace(top(), "one"), namespace(top(), "ONE"), namespace(top(), "two"))
    assert sorted(each is not None for each in made) == [False, True, True]
    assert Namespace.objects.filter(name_key="one").count() == 1


NOT_ORDINARY: dict[str, dict[str, Any]] = {
    "staged": {"stage-create": True},
    "a location": {"location": "file:///somewhere"},
    "a wrong schema": {"schema": {"type": "struct", "fields": [{"id": 1}]}},
    "a wrong codec": {"properties": {"write.metadata.compression-codec": "lz4"}},
    "a path outside": {"properties": {"write.data.path": "file:///elsewhere"}},
    "metadata outside": {"properties": {"write.metadata.path": "file:///elsewhere"}},
    "a large body": {"properties": {"a": "x" * 40_000}},
    "too many properties": {"properties": {str(number): "" for number in range(3000)}},
}


@pytest.mark.parametrize("what", NOT_ORDINARY)
def test_what_is_not_ordinary_is_left_alone(into: Into, base: Path, what: str) -> None:
    sales = into()
    there, found = files(base), rows()
    assert at_once(table(sales, "orders", **NOT_ORDINARY[what])) == [None]
    assert (files(base), rows()) == (there, found)


@pytest.mark.parametrize("name", ["", "x" * 256, "a\x00b", "first", "FIRST"])
def test_a_name_that_cannot_be_or_is_taken_is_left_alone_and_nothing_is_written(
    into: Into, base: Path, name: str
) -> None:
    sales = into()
    there, found = files(base), rows()
    assert at_once(table(sales, name)) == [None]
    assert (files(base), rows()) == (there, found)


@pytest.mark.parametrize("path", [(), ("",), ("a\x00b",), ("x" * 300,), ("sales",), ("elsewhere", "inner")])
def test_a_namespace_that_cannot_be_is_left_alone(top: Top, into: Into, path: tuple[str, ...]) -> None:
    parent = top() if len(path) < 2 else into()
    found = rows()
    assert at_once(namespace(parent, *path)) == [None]
    assert rows() == found


def test_namespaces_with_a_location_or_properties_that_cannot_be_are_left_alone(top: Top) -> None:
    assert at_once(
        namespace(top(), "a", location="file:///x"),
        namespace(top(), "b", p="a\x00"),
        namespace(top(), "c", p="x" * 10**6),
    ) == [None, None, None]
    assert not Namespace.objects.filter(name_key__in=["a", "b", "c"]).exists()


def test_the_first_table_of_a_namespace_of_this_process_is_ordinary(lake: Lake, into: Into, top: Top) -> None:
    into()  # the warehouse's tables were counted
    assert all(at_once(namespace(top(), "fresh")))
    granted = access.namespace(
        into().context, NamespaceIdentifier.parse(lake.warehouse_id, "fresh"), NamespaceAction.CREATE_TABLE
    )
    assert all(at_once(table(granted, "orders"), table(granted, "bills")))


def test_a_folder_that_was_not_looked_at_is_looked_at_first(lake: Lake, context: RequestContext) -> None:
    """It may lie in the location of a table of an older release."""
    lake.create_namespace("fresh")
    location_claims._FREE_FOLDERS.clear()
    granted = access.namespace(
        context, NamespaceIdentifier.parse(lake.warehouse_id, "fresh"), NamespaceAction.CREATE_TABLE
    )
    assert at_once(table(granted, "orders")) == [None]
    tables.create(granted, CreateTable(name="orders"), body("orders"))
    assert all(at_once(table(granted, "bills")))


@pytest.mark.parametrize("change", ["renamed", "dropped", "another right", "inactive", "other properties"])
def test_what_changed_since_the_decision_is_left_alone(
    lake: Lake, admin: Any, into: Into, base: Path, change: str
) -> None:
    lake.create_namespace("other")
    sales, other = into("sales"), into("other")
    match change:
        case "renamed":
            path = f"/management/v1/warehouse/{lake.warehouse_id}/namespace/{sales.target.id}/move"
            assert admin.post(path, {"destination": ["else"]}).status == 200
        case "dropped":
            lake.client.delete(lake.namespace("sales", recursive="true"))
        case "another right":
            projects.bump_epoch(sales.target.warehouse.project_id)
        case "inactive":
            Warehouse.objects.update(status="inactive")
        case "other properties":
            answer = lake.client.post(lake.namespace("sales", "properties"), {"updates": {"a": "b"}})
            assert answer.status == 200
    there = files(base)
    in_sales, inner, in_other = at_once(table(sales, "orders"), namespace(sales, "sales", "in"), table(other, "orders"))
    assert (in_sales, inner) == (None, None)
    is_project_wide = change != "other properties"  # what changes rights in a project does so for all of it
    assert (in_other is None) == is_project_wide
    assert becomes(0 if is_project_wide else 1, lambda: len(files(base) - there))


HOLDS = {
    "the namespace's row": "select 1 from namespace where path_key = 'sales' for no key update",
    "the tree": "select pg_advisory_xact_lock({lock}, {tree})",
}


@pytest.mark.parametrize("held", HOLDS)
def test_nobody_waits_for_a_namespace_that_another_process_changes(lake: Lake, into: Into, held: str) -> None:
    lake.create_namespace("other")
    sales, other = into("sales"), into("other")
    tree = namespaces.tree_of(sales.target.warehouse_id)
    with elsewhere(HOLDS[held].format(lock=namespaces.TREE_LOCK, tree=tree)):
        in_sales, inner, in_other = at_once(
            table(sales, "orders"), namespace(sales, "sales", "inner"), table(other, "orders")
        )
    assert (in_sales, inner) == (None, None)
    assert (in_other is not None) == (held == "the namespace's row")
    assert all(at_once(table(sales, "orders")))


TAKES_ORDERS = """
    insert into tabular (id, warehouse_id, namespace_id, kind, name, name_key, uuid, location, metadata_location,
                         version, created_at, updated_at)
    select gen_random_uuid(), warehouse_id, namespace_id, kind, 'orders', 'orders', uuid, location || 'x',
           metadata_location, 1, now(), now() from tabular limit 1
"""


def test_a_batch_with_a_name_that_another_process_is_taking_is_left_alone(into: Into, base: Path) -> None:
    """Each goes the ordinary way, where only who wants the name waits for it."""
    sales = into()
    before = files(base)
    with elsewhere(TAKES_ORDERS):
        orders, bills = at_once(table(sales, "orders"), table(sales, "bills"))
    assert orders is None
    # its file may have been written so much later that it came in a batch of its own
    assert becomes(0 if bills is None else 1, lambda: len(files(base) - before))


def test_a_key_that_was_used_takes_only_its_own_creation_out(into: Into, top: Top) -> None:
    used, fresh = key(), key()
    assert all(at_once(table(into("sales", used), "orders")))
    again = replace(used, attempt=uuid.uuid4())
    made = at_once(
        table(into("sales", again), "bills"), table(into("sales", fresh), "customers"), table(into(), "parts")
    )
    assert [each is not None for each in made] == [False, True, True]
    assert at_once(namespace(top(again), "again")) == [None]
    assert IdempotencyRecord.objects.count() == 2
    assert IdempotencyRecord.objects.get(key=fresh.key).object_id == str(Tabular.objects.get(name="customers").id)


def test_a_key_twice_at_once_creates_one_object(into: Into, base: Path) -> None:
    twice = key()
    into()
    before = files(base)
    made = at_once(
        table(into("sales", twice), "orders"),
        table(into("sales", replace(twice, attempt=uuid.uuid4())), "bills"),
        table(into(), "parts"),
    )
    assert made[2] is not None
    assert sum(each is not None for each in made) == 2
    assert IdempotencyRecord.objects.count() == 1
    assert becomes(2, lambda: len(files(base) - before))


def test_a_quota_is_not_exceeded(lake: Lake, into: Into, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEWARDEN__QUOTAS__TABLES_IN_NAMESPACE", "30")
    config.current.cache_clear()
    try:
        sales = into()
        made = at_once(*(table(sales, f"t{number}") for number in range(40)))
        assert sum(each is not None for each in made) <= 1  # a part of what is left; the others are counted one by one
        for number in range(40):
            lake.create_table(f"more{number}")
            at_once(table(sales, f"and{number}"))
        assert Tabular.objects.count() == 30
    finally:
        monkeypatch.undo()
        config.current.cache_clear()
        quotas._rooms.clear()


def test_a_file_that_cannot_be_written_is_its_own_tables_alone(
    into: Into, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sales = into()
    write, count = LocalStorage.write_new, iter(range(100))

    def failing(self: LocalStorage, location: str, content: bytes) -> None:
        if next(count) == 3:
            raise StorageError("this one is refused")
        write(self, location, content)

    monkeypatch.setattr(LocalStorage, "write_new", failing)
    made = at_once(*(table(sales, f"t{number}") for number in range(10)))
    assert sum(each is None for each in made) == 1
    assert Tabular.objects.count() == 10


def test_a_database_that_goes_away_in_the_middle_leaves_the_outcome_unknown_and_the_file(
    into: Into, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sales = into()
    before = files(base)
    statement = additions._TABULARS
    monkeypatch.setattr(statement, "_text", statement._text.replace(b"'100'", b"'60000'"))  # it waits to be ended
    end = """
        select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'lakewarden hot' and wait_event_type = 'Lock' and datname = current_database()
    """

    def terminate() -> None:
        with psycopg.connect(os.environ["LAKEWARDEN__DATABASE__URL"], autocommit=True) as ending:
            for _ in range(200):
                if ending.execute(end).fetchall():
                    return
                threading.Event().wait(0.05)

    with elsewhere(TAKES_ORDERS):
        thread = threading.Thread(target=terminate)
        thread.start()
        with pytest.raises(CommitStateUnknown):
            at_once(table(sales, "orders"))
        thread.join()
    assert becomes(1, lambda: len(files(base) - before))


def test_connections_that_have_ended_while_they_were_idle_are_no_failure(into: Into) -> None:
    sales = into()
    assert all(at_once(*(table(sales, f"t{number}") for number in range(5))))
    assert connections._idle
    with psycopg.connect(os.environ["LAKEWARDEN__DATABASE__URL"], autocommit=True) as ending:
        ending.execute("""
            select pg_terminate_backend(pid, 5000) from pg_stat_activity
            where application_name = 'lakewarden hot' and datname = current_database()
        """)
    assert all(at_once(*(table(sales, f"u{number}") for number in range(5))))


def test_rights_of_new_objects_are_told_to_who_follows_the_log(
    into: Into, top: Top, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    monkeypatch.setattr(change_log, "are_logged", lambda: True)
    monkeypatch.setattr(change_log, "_followers", [lambda: told.append(LoggedChange.objects.count())])
    sales, above = into(), top()
    LoggedChange.objects.all().delete()
    told.clear()
    at_once(table(sales, "orders"), table(sales, "bills"))
    assert LoggedChange.objects.filter(relation="ownership", object_type="table").count() == 2
    # once for each batch, of which there may be two
    assert becomes(2, lambda: max(told, default=0))
    at_once(namespace(above, "new"))
    assert LoggedChange.objects.filter(relation="ownership", object_type="namespace").count() == 1
    assert becomes(3, lambda: max(told, default=0))


def test_a_caller_who_goes_away_changes_nothing_for_the_others(into: Into) -> None:
    sales = into()

    async def leave() -> Stored | None:
        leaving = asyncio.create_task(table(sales, "left"))
        staying = asyncio.create_task(table(sales, "stayed"))
        await asyncio.sleep(0)
        leaving.cancel()
        return await staying

    assert asgi_client._await(leave()) is not None
    assert becomes(1, Tabular.objects.filter(name="left").count), "what had begun was not finished"
