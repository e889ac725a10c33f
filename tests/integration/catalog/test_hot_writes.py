"""Hot writes have the same effects and answers as the same requests through Django."""

import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pytest
import zstandard
from django.db import connection, models

from catalog.api.hot import write
from catalog.models import Namespace, Tabular
from catalog.services.commit_writer import chains
from lakewarden import asgi
from lakewarden.audit.decision_buffer import DECISIONS
from lakewarden.audit.models import AuditEntry
from lakewarden.audit.refusals import PENDING
from lakewarden.events.models import OutboxEvent
from lakewarden.hot.routes import Answer as HotAnswer
from lakewarden.hot.routes import HotRequest
from lakewarden.idempotency.models import IdempotencyRecord
from lakewarden.urls import HOT_ROUTES
from lakewarden.usage.call_counter import COUNTS
from tenants.models import Warehouse
from tests.integration.catalog.lake import SCHEMA, Lake, add_snapshot, set_branch, set_properties
from tests.servers.asgi_client import Answer, AsgiClient

UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
MOMENT = re.compile(r"\b1[6-9]\d{11}\b")
ROWS: tuple[type[models.Model], ...] = (AuditEntry, OutboxEvent, IdempotencyRecord)
BESIDE = {
    "reserved_location": "kind, owners, location, owner_id, namespace_id",
    "reachable_location": "location, owner_id, until - now() > interval '1 minute'",
    "task": "queue_name, entity_name, arguments, lock, entity_type, entity_id, scheduled_for > now(), project_id",
    "procrastinate_jobs": "queue_name, args->>'location', args, task_name, lock, priority, status::text",
    "tabular": "name, kind, version",
    "namespace": "path, properties, version",
    "authz_grant": "object_type, principal_id, privilege",
}
"""What else a write leaves in the database: table and columns, sorted by the first three."""
FORGOTTEN = ("reserved_location where kind <> 'earlier'", "reachable_location", "task", "procrastinate_jobs")
OWN = {"id", "at", "created_at", "last_at", "fingerprint", "attempt", "sequence"}
"""Columns that differ from request to request."""


class Request(NamedTuple):
    path: str
    body: bytes
    headers: dict[str, str]
    method: str = "POST"


def commit(lake: Lake, name: str, *updates: Any, requirements: Any = (), **headers: str) -> Request:
    body = {"requirements": list(requirements), "updates": list(updates)}
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return Request(lake.table(name), json.dumps(body).encode(), {"x-request-id": "told-by-the-caller", **named})


def commits(lake: Lake) -> list[Request]:
    location = lake.load("orders")["metadata"]["location"]
    head = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
    append = (add_snapshot(1, sequence=1, location=location), set_branch("main", 1))
    key, other = str(uuid4()), str(uuid4())
    return [
        commit(lake, "orders", set_properties(a="1")),
        commit(lake, "ORDERS", set_properties(a="2"), accept_encoding="gzip"),
        commit(lake, "orders", set_properties(a="3" * 4000), accept_encoding="zstd"),
        commit(lake, "orders", set_properties(a="4" * 4000), accept_encoding="identity", user_agent="an engine"),
        commit(lake, "orders"),
        commit(lake, "orders", *append, requirements=[head]),
        commit(lake, "orders", *append, requirements=[head]),
        commit(lake, "orders", {"action": "unheard-of"}),
        commit(lake, "orders", set_properties(a="x" * 15_000)),
        commit(lake, "orders", requirements=[{"type": "assert-table-uuid", "uuid": str(uuid4())}]),
        commit(lake, "orders", requirements=[{"type": "assert-create"}]),
        commit(lake, "orders", set_properties(b="1"), idempotency_key=key),
        commit(lake, "orders", set_properties(b="1"), idempotency_key=key),
        commit(lake, "orders", set_properties(b="2"), idempotency_key=key),
        commit(lake, "orders", *append, requirements=[head], idempotency_key=other),
        commit(lake, "orders", *append, requirements=[head], idempotency_key=other),
        commit(lake, "orders", set_properties(b="3"), idempotency_key="none"),
        commit(lake, "missing", set_properties(a="1")),
        commit(lake, "view", set_properties(a="1")),
        commit(lake, "orders", set_properties(c="1"), content_encoding="gzip"),
        commit(lake, "orders", set_properties(c="2"), x_assume_role="nobody"),
        commit(lake, "orders", {"action": "set-location", "location": f"{location}/../elsewhere"}),
        Request(lake.table("orders"), b"{", {}),
        Request(lake.table("orders"), b'{"requirements": [], "updates": 3}', {}),
        Request(lake.table("orders") + "?a=b", b'{"requirements": [], "updates": []}', {}),
        Request(lake.table("orders"), b"[" * 60_000, {}),
        Request(lake.table("orders"), b'{"requirements": [' + b"{}," * 2000 + b'{}], "updates": []}', {}),
    ]


def table(lake: Lake, name: str, within: str = "sales", schema: Any = SCHEMA, **more: Any) -> Request:
    body = {"name": name, "schema": schema} | {key.replace("_", "-"): value for key, value in more.items()}
    return Request(lake.namespace(within, "tables"), json.dumps(body).encode(), {"user-agent": "an engine"})


def namespace(lake: Lake, *path: str, **more: Any) -> Request:
    body = {"namespace": list(path), **more}
    return Request(lake.path("namespaces"), json.dumps(body).encode(), {"user-agent": "an engine"})


def with_key(request: Request, key: str, **headers: str) -> Request:
    return request._replace(headers={**request.headers, "idempotency-key": key, **headers})


def creations(lake: Lake) -> list[Request]:
    key, other, third, fourth = (str(uuid4()) for _ in range(4))
    fields = [{"id": number, "name": f"c{number}", "type": "long", "required": False} for number in range(1, 100)]
    return [
        table(lake, "T 1 ünï"),
        table(lake, "t 1 ÜNÏ"),
        table(lake, "t2", properties={"owner": "x"}),
        with_key(table(lake, "t3"), key),
        with_key(table(lake, "t3"), key),
        with_key(table(lake, "t4"), key),
        with_key(table(lake, "t3"), other),
        with_key(table(lake, "t3"), other),
        table(lake, "wide", schema={"type": "struct", "fields": fields}),
        table(lake, "t5", within="missing"),
        table(lake, "view"),
        table(lake, ""),
        table(lake, "a/b"),
        table(lake, "t6", stage_create=True),
        table(lake, "t7", location="file:///etc"),
        table(lake, "t8", schema={"type": "nothing"}),
        table(lake, "t9", properties={"format-version": "9"}),
        namespace(lake, "N 1"),
        namespace(lake, "n 1"),
        namespace(lake, "sales", "Below", properties={"ü": "x" * 3000}),
        namespace(lake, "sales", "below", "further"),
        namespace(lake, "missing", "below"),
        namespace(lake, "own", properties={"location": "file:///x"}),
        namespace(lake),
        namespace(lake, ""),
        namespace(lake, "a\x1fb"),
        namespace(lake, "a\x00b", "c"),
        with_key(namespace(lake, "n2"), third),
        with_key(namespace(lake, "n2"), third),
        with_key(namespace(lake, "n2"), fourth),
        table(lake, "t10", within="n2"),
        table(lake, "t11", within="n2"),
    ]


PROTECTED = {"by": "oidc~alice", "at": "2026-11-01T00:00:00+00:00", "reason": None}


def drop(path: str, **headers: str) -> Request:
    return Request(path, b"", {"user-agent": "an engine", **headers}, "DELETE")


def drops(lake: Lake) -> list[Request]:
    key, other, third = (str(uuid4()) for _ in range(3))
    inner = ("sales", "inner")
    return [
        drop(lake.table("T0")),
        drop(lake.table("t0")),
        drop(lake.table("t1", purgeRequested="true")),
        drop(lake.table("t2", purgeRequested="false")),
        drop(lake.table("t3", purgeRequested="True", force="False")),
        drop(lake.table("kept")),
        drop(lake.table("kept", force="true")),
        drop(lake.table("view")),
        drop(lake.view("view")),
        with_key(drop(lake.table("t4")), key),
        with_key(drop(lake.table("t4")), key),
        with_key(drop(lake.table("t5")), key),
        with_key(drop(lake.table("t5", purgeRequested="false")), other),
        with_key(drop(lake.table("t5")), other),
        drop(lake.table("t6", purgeRequested="maybe")),
        drop(lake.table("t6", unheard="of")),
        drop(lake.table("moved")),
        drop(lake.table("missing")),
        drop(lake.table("t7"), **{"x-assume-role": "nobody"}),
        drop(lake.namespace("sales")),
        drop(lake.namespace(inner)),
        drop(lake.namespace(inner)),
        drop(lake.namespace(("sales", "kept"))),
        drop(lake.namespace(("sales", "kept"), force="true")),
        drop(lake.namespace(("sales", "tree"), recursive="true")),
        with_key(drop(lake.namespace("empty", purgeRequested="true")), third),
        with_key(drop(lake.namespace("empty", purgeRequested="true")), third),
    ]


def properties(lake: Lake, name: str = "sales", **body: Any) -> Request:
    return Request(lake.namespace(name, "properties"), json.dumps(body).encode(), {"user-agent": "an engine"})


def updates(lake: Lake) -> list[Request]:
    key, other = str(uuid4()), str(uuid4())
    location = lake.client.get(lake.namespace("sales")).json()["properties"]["location"]
    return [
        properties(lake, updates={"a": "1", "ü": "x" * 3000}, removals=["b", "b", "c"]),
        properties(lake, updates={"a": "2"}, removals=["a"]),
        properties(lake),
        properties(lake, updates=None, removals=["a", "ü"]),
        properties(lake, updates={"location": location}),
        properties(lake, updates={"location": location + "/x"}),
        properties(lake, removals=["location"]),
        properties(lake, updates={"a": "\x00"}),
        properties(lake, updates={"a": 3}),
        with_key(properties(lake, updates={"d": "1"}, removals=["e"]), key),
        with_key(properties(lake, updates={"d": "1"}, removals=["e"]), key),
        with_key(properties(lake, updates={"d": "2"}), key),
        with_key(properties(lake, updates={"d": "2"}, removals=["d"]), other),
        with_key(properties(lake, updates={"d": "2"}, removals=["d"]), other),
        properties(lake, "missing", updates={"a": "1"}),
        properties(lake, updates={f"k{number}": "x" for number in range(400)}),
    ]


def plain(told: Any) -> str:
    """Text without what differs from time to time: ids are numbered by their first use."""
    text = MOMENT.sub("<moment>", json.dumps(told, default=str, sort_keys=True))
    numbers: dict[str, int] = {}
    return UUID.sub(lambda found: f"<{numbers.setdefault(found[0].replace('-', ''), len(numbers))}>", text)


def left_behind() -> Any:
    """What requests have written, and what they have left in memory to be written."""
    rows = {
        model.__name__: [
            {name: value for name, value in row.items() if name not in OWN}
            for row in model._default_manager.order_by("pk").values()
        ]
        for model in ROWS
    }
    decisions, _ = DECISIONS.take()
    allowed = sorted((key, group.count, group.request_id, group.user_agent) for key, group in decisions.items())
    refused = [
        (each.action, each.reason, each.request_id, each.outcome, each.asked, each.count) for each in PENDING.take()[0]
    ]
    counts = sorted((call.route, call.status, call.project_id, n) for call, n in COUNTS.take()[0].items())
    with connection.cursor() as cursor:
        for table, columns in BESIDE.items():
            cursor.execute(f"select {columns} from {table} order by 1, 2, 3")  # noqa: S608 of this file
            rows[table] = cursor.fetchall()
    return rows | {"allowed": allowed, "refused": refused, "counts": counts}


def forget() -> None:
    for model in ROWS:
        model._default_manager.all().delete()
    with connection.cursor() as cursor:
        for table in FORGOTTEN:
            cursor.execute(f"delete from {table}")  # noqa: S608 of this file
    left_behind()


def sent(lake: Lake, requests: list[Request]) -> list[Answer]:
    client = AsgiClient(lake.client.headers)  # one that may also ask for what is not in the document
    return [client.call(each.method, each.path, body=each.body, headers=each.headers) for each in requests]


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each request was answered by a hot route."""
    found: list[bool] = []
    (route,) = HOT_ROUTES

    async def noting(request: HotRequest) -> HotAnswer | None:
        answer = await route(request)
        found.append(answer is not None)
        return answer

    monkeypatch.setattr(asgi, "HOT_ROUTES", [noting])
    return found


def both_ways(
    lake: Lake, arranged: Callable[[Lake], list[Request]], answered: list[bool], monkeypatch: pytest.MonkeyPatch
) -> list[bool]:
    """Send the same requests to the same state, hot and then through Django; returns which were answered hot."""
    told: list[list[str]] = []
    hot: list[bool] = []
    for _ in range(2):
        requests = arranged(lake)
        forget()
        answered.clear()
        answers = sent(lake, requests)
        told.append([plain(each) for each in [*answers_told(answers), *left_behind().items()]])
        hot = hot or list(answered)
        monkeypatch.setattr(asgi, "HOT_ROUTES", [])
    for first, second in zip(*told, strict=True):
        assert first == second
    return hot


def answers_told(answers: list[Answer]) -> Iterator[Any]:
    for number, answer in enumerate(answers):
        headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
        body = answer.body
        if headers.get("content-encoding") == "gzip":
            body = zlib.decompress(body, 31)
        elif headers.get("content-encoding") == "zstd":
            body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
        yield number, answer.status, headers, body.decode()


def arranged_table(lake: Lake) -> list[Request]:
    start_anew(lake)
    assert lake.create_table("orders").status == 200
    assert lake.create_view("view").status == 200
    return commits(lake)


def arranged_place(lake: Lake) -> list[Request]:
    start_anew(lake)
    assert lake.create_view("view").status == 200
    for name in ("before", "before that"):  # now the caller's decisions and the free folders are cached
        assert lake.create_table(name).status == 200
        assert lake.create_namespace(name).status == 200
        assert lake.create_namespace("sales", name).status == 200
    return creations(lake)


def start_anew(lake: Lake) -> None:
    for name in lake.client.get(lake.path("namespaces")).json()["namespaces"]:
        assert lake.client.delete(lake.namespace(name, recursive="true", force="true")).status == 204
    assert lake.create_namespace("sales").status == 200


def arranged_drops(lake: Lake) -> list[Request]:
    start_anew(lake)
    for name in (*(f"t{number}" for number in range(8)), "kept", "moved"):
        assert lake.create_table(name).status == 200
    for path in (("sales", "inner"), ("sales", "kept"), ("sales", "tree"), ("sales", "tree", "below"), ("empty",)):
        assert lake.create_namespace(*path).status == 200
    assert lake.create_view("view").status == 200
    before = lake.load("moved")["metadata"]["location"]
    assert lake.commit("moved", {"action": "set-location", "location": f"{before}-elsewhere"}).status == 200
    Tabular.objects.filter(name="kept").update(protection=PROTECTED)
    Namespace.objects.filter(path=["sales", "kept"]).update(protection=PROTECTED)
    return drops(lake)


def arranged_properties(lake: Lake) -> list[Request]:
    start_anew(lake)
    assert lake.client.post(lake.namespace("sales", "properties"), {"updates": {"b": "1"}}).status == 200
    return updates(lake)


def test_hot_drops_are_those_of_django(lake: Lake, answered: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    hot = both_ways(lake, arranged_drops, answered, monkeypatch)
    assert [number for number, was_hot in enumerate(hot) if was_hot] == [0, 2, 3, 4, 6, 8, 9, 12, 20, 23, 25]


def test_hot_changes_of_properties_are_those_of_django(
    lake: Lake, answered: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not from a state of more than 2,000 bytes, which is not looked up on the event loop."""
    hot = both_ways(lake, arranged_properties, answered, monkeypatch)
    assert [number for number, was_hot in enumerate(hot) if was_hot] == [0, 4, 9, 15]


def test_hot_commits_are_those_of_django(lake: Lake, answered: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    hot = both_ways(lake, arranged_table, answered, monkeypatch)
    assert [number for number, was_hot in enumerate(hot) if was_hot] == [*range(10), 11, 26]


def test_hot_commits_to_large_tables_are_those_of_django(
    lake: Lake, answered: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their metadata is computed, and written into the answer where it is not sent as it is stored, by threads."""
    monkeypatch.setattr(chains, "ON_LOOP", 0)
    monkeypatch.setattr(write, "_LARGE", 0)
    hot = both_ways(lake, arranged_table, answered, monkeypatch)
    assert [number for number, was_hot in enumerate(hot) if was_hot] == [*range(10), 11, 26]


def test_hot_creations_are_those_of_django(lake: Lake, answered: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    hot = both_ways(lake, arranged_place, answered, monkeypatch)
    assert [number for number, was_hot in enumerate(hot) if was_hot] == [0, 2, 3, 8, 12, 17, 19, 27, 30, 31]


def test_what_a_table_lies_in_is_known_as_it_is_now(lake: Lake, answered: list[bool]) -> None:
    """Namespace and warehouse are cached from commit to commit, as long as their rows have the same version."""
    lake.create_table("orders")
    lake.commit("orders", set_properties(a="1"))
    upgrade = {"action": "upgrade-format-version", "format-version": 3}
    for allowed, status in (([1, 2], 400), ([1, 2, 3], 200)):
        Warehouse.objects.update(allowed_format_versions=allowed)
        assert lake.commit("orders", upgrade).status == status
    Namespace.objects.update(path=["moved"], path_key="moved", name_key="moved")
    assert lake.commit("orders", set_properties(a="2"), within="moved").status == 200
    assert OutboxEvent.objects.latest("sequence").data["namespace"] == ["moved"]
    assert lake.commit("orders", set_properties(a="2")).status == 404
    # each was answered without Django, but the one whose table is gone; the first decision is Django's, too
    assert answered[-4:] == [True, True, True, False]


def test_a_warm_commit_asks_for_its_table_once_and_not_by_django(
    lake: Lake, answered: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create_table("orders")
    for number in range(3):
        lake.commit("orders", set_properties(a=str(number)))
    statements: list[str] = []
    execute = psycopg.AsyncCursor.execute

    async def noting(cursor: Any, statement: Any, *arguments: Any, **options: Any) -> Any:
        statements.append(statement.decode().split()[0])
        return await execute(cursor, statement, *arguments, **options)

    def by_django(*_: object, **__: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.AsyncCursor, "execute", noting)
        patch.setattr(psycopg.Cursor, "execute", by_django)
        assert lake.commit("orders", set_properties(a="warm")).status == 200
    assert len(statements) <= 3, statements
    assert answered[-1]
