"""Protection of namespaces, and moving them: with what lies below, its rights and its paths."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from catalog.access import namespace_chain
from catalog.models import Namespace
from catalog.models.namespace import path_key
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.ledger.models import Grant
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId
from lakewarden.events.models import OutboxEvent
from tenants.models import Project, Warehouse
from tenants.services import projects
from tests.installation import ADMIN
from tests.integration.catalog.lake import Lake, identifier
from tests.servers.asgi_client import Answer, AsgiClient

MISSING = "0197f1c2-0000-7000-8000-000000000000"


@pytest.fixture
def lake(admin: AsgiClient, warehouse: Warehouse) -> Lake:
    """The warehouse as its owner sees it, with the namespaces `a`, `a.b`, `a.b.c`, `z` and the table `a.b.orders`."""
    found = Lake(admin, str(warehouse.id))
    for path in (["a"], ["a", "b"], ["a", "b", "c"], ["z"]):
        assert found.create_namespace(*path).status == 200
    assert found.create_table("orders", within=("a", "b")).status == 200
    return found


def of(*path: str) -> Namespace:
    return Namespace.objects.select_related("warehouse").get(path_key=path_key(path))


def route(namespace: Namespace | str, verb: str, warehouse: object = None) -> str:
    if isinstance(namespace, Namespace):
        warehouse, namespace = warehouse or namespace.warehouse_id, str(namespace.id)
    return f"/management/v1/warehouse/{warehouse}/namespace/{namespace}/{verb}"


def protect(caller: AsgiClient, namespace: Namespace, **body: Any) -> Answer:
    return caller.post(route(namespace, "protection"), {"protected": True} | body)


def move(caller: AsgiClient, namespace: Namespace, *destination: str) -> Answer:
    return caller.post(route(namespace, "move"), {"destination": list(destination)})


def give(name: str, privilege: str, *path: str) -> None:
    namespace = of(*path)
    ledger.give(namespace_chain(namespace), [(PrincipalId(f"oidc~{name}"), Privilege(privilege))], granted_by=ADMIN)
    projects.bump_epoch(namespace.warehouse.project_id)


def paths() -> list[str]:
    return [".".join(path) for path in Namespace.objects.order_by("path_key").values_list("path", flat=True)]


def assert_consistent() -> None:
    """Every path, key and lineage is that of the parent followed by its own."""
    rows = {row.id: row for row in Namespace.objects.all()}
    for row in rows.values():
        above = rows[row.parent_id] if row.parent_id else None
        assert row.path[:-1] == (above.path if above else [])
        assert row.lineage == [*(above.lineage if above else []), row.id]
        assert row.path_key == path_key(row.path)


# protection


def test_protection_is_told_with_who_when_and_why(lake: Lake, admin: AsgiClient) -> None:
    before = admin.get(route(of("z"), "protection"))
    assert (before.status, before.json()) == (200, {"protected": False})
    answer = protect(admin, of("z"), reason="kept for\nthe auditors")
    told = answer.json()
    assert answer.status == 200
    assert told["protected"] is True
    assert (told["protected-by"], told["reason"]) == ("oidc~admin", "kept for\nthe auditors")
    assert told["protected-at"] == told["updated-at"]
    assert admin.get(route(of("z"), "protection")).json() == told


def test_a_protected_namespace_is_not_dropped_until_that_is_lifted(lake: Lake, admin: AsgiClient) -> None:
    since = protect(admin, of("z"), reason="audit").json()["protected-at"]
    answer = admin.delete(lake.namespace("z"))
    assert answer.error() == (409, "ProtectedException")
    assert f"protected from deletion by oidc~admin since {since} (audit)" in answer.message()
    assert route(of("z"), "protection") in answer.message()
    lifted = admin.post(route(of("z"), "protection"), {"protected": False})
    assert set(lifted.json()) == {"protected", "updated-at", "updated_at"}
    assert admin.delete(lake.namespace("z")).status == 204


def test_a_change_of_protection_is_recorded_once(lake: Lake, admin: AsgiClient) -> None:
    first = protect(admin, of("z"), reason="audit").json()
    assert protect(admin, of("z")).json() == first
    assert protect(admin, of("z"), reason="audit").json() == first
    assert protect(admin, of("z"), reason="other").json()["reason"] == "other"
    recorded = AuditEntry.objects.filter(action="setNamespaceProtection")
    assert [each.details["reason"] for each in recorded.order_by("id")] == ["audit", "other"]
    assert recorded[0].details["namespace"] == ["z"]
    assert OutboxEvent.objects.filter(type="setNamespaceProtection").count() == 2


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "protected"),
        ({"protected": "perhaps"}, "protected"),
        ({"protected": True, "reason": "x" * 1001}, "at most 1000"),
        ({"protected": True, "reason": "a\u0000"}, "reason"),
        ({"protected": True, "reason": "a\u0007"}, "cannot be stored"),
        ({"protected": False, "reason": "why"}, "only allowed with a protection"),
        ({"protected": True, "until": "tomorrow"}, "unknown member 'until'"),
    ],
)
def test_a_wrong_protection_is_refused(lake: Lake, admin: AsgiClient, body: Any, reason: str) -> None:
    answer = admin.post(route(of("z"), "protection"), body)
    assert answer.status == 400
    assert reason in answer.message()
    assert of("z").protection is None


@pytest.mark.parametrize("verb", ["protection", "move"])
def test_what_is_not_there_or_elsewhere_is_missing(lake: Lake, admin: AsgiClient, verb: str) -> None:
    body = {"protected": True} if verb == "protection" else {"destination": ["x"]}
    warehouse = of("z").warehouse_id
    for path in (
        route(MISSING, verb, warehouse),
        route("z", verb, warehouse),
        route("%00", verb, warehouse),
        route(of("z"), verb, MISSING),
        route(of("z"), verb, "lake"),
    ):
        assert admin.post(path, body).error() == (404, "NoSuchNamespaceException"), path


def test_who_may_change_protection(lake: Lake, client: AsgiClient, stranger: AsgiClient, grant: Any) -> None:
    for name, privilege in (("reader", "select"), ("writer", "write"), ("maker", "create"), ("editor", "modify")):
        grant(name, privilege)
    target = route(of("z"), "protection")
    assert client.as_user("editor").post(target, {"protected": True}).status == 200
    for name in ("reader", "writer", "maker"):
        assert client.as_user(name).get(target).status == 200
        assert client.as_user(name).post(target, {"protected": False}).error() == (403, "ForbiddenException")
    hidden = stranger.post(target, {"protected": False})
    assert hidden.error() == (404, "NoSuchNamespaceException")
    assert hidden.message() == stranger.post(route(MISSING, "protection", "x"), {"protected": False}).message().replace(
        MISSING, str(of("z").id)
    )


def test_protecting_and_dropping_at_once_leaves_one_of_both_orders(lake: Lake, admin: AsgiClient) -> None:
    for _ in range(8):
        assert lake.create_namespace("racy").status == 200
        namespace = of("racy")
        with ThreadPoolExecutor(2) as pool:
            protecting = pool.submit(protect, admin, namespace)
            dropping = pool.submit(admin.delete, lake.namespace("racy"))
        outcome = (protecting.result().status, dropping.result().status)
        assert outcome in {(200, 409), (404, 204)}
        if outcome == (200, 409):
            admin.post(route(namespace, "protection"), {"protected": False})
            assert admin.delete(lake.namespace("racy")).status == 204


# moves


@pytest.mark.parametrize(
    ("source", "destination", "after"),
    [
        (("a",), ("q",), ["q", "q.b", "q.b.c", "z"]),
        (("a",), ("z", "a"), ["z", "z.a", "z.a.b", "z.a.b.c"]),
        (("a", "b"), ("b",), ["a", "b", "b.c", "z"]),
        (("a", "b"), ("z", "q"), ["a", "z", "z.q", "z.q.c"]),
        (("a", "b", "c"), ("a", "d"), ["a", "a.b", "a.d", "z"]),
        (("a",), ("A",), ["A", "A.b", "A.b.c", "z"]),
        (("a",), ("a1",), ["a1", "a1.b", "a1.b.c", "z"]),
    ],
)
def test_a_namespace_moves_with_all_that_lies_below(
    lake: Lake, admin: AsgiClient, source: tuple[str, ...], destination: tuple[str, ...], after: list[str]
) -> None:
    namespace = of(*source)
    answer = move(admin, namespace, *destination)
    assert answer.status == 200
    above = {"parent-namespace-id": str(of(*destination[:-1]).id)} if len(destination) > 1 else {}
    assert answer.json() == {"namespace-id": str(namespace.id), "namespace": list(destination), **above}
    assert paths() == after
    assert_consistent()


def test_the_catalog_sees_a_move_at_once(lake: Lake, admin: AsgiClient) -> None:
    for _ in range(3):  # warm
        before = lake.load("orders", within=("a", "b"))
        assert admin.get(lake.namespace(("a", "b", "c"))).status == 200
    assert move(admin, of("a", "b"), "z", "moved").status == 200
    assert admin.get(lake.table("orders", within=("a", "b"))).error() == (404, "NoSuchTableException")
    assert admin.get(lake.namespace(("a", "b", "c"))).status == 404
    assert admin.get(lake.namespace("a", "tables")).json()["identifiers"] == []
    for _ in range(3):
        assert lake.load("orders", within=("z", "moved")) == before  # where it is, and its location
    assert admin.get(lake.namespace(("z", "moved"), "tables")).json()["identifiers"] == [
        identifier("orders", ("z", "moved"))
    ]
    assert admin.get(lake.namespace(("z", "moved", "c"))).status == 200
    # the old path is free for others
    assert lake.create_namespace("a", "b").status == 200
    assert admin.get(lake.table("orders", within=("a", "b"))).status == 404


def test_what_was_inherited_ends_and_what_is_inherited_begins(
    lake: Lake, admin: AsgiClient, client: AsgiClient
) -> None:
    give("old", "select", "a")
    give("new", "select", "z")
    give("own", "select", "a", "b")
    old, new, own = (client.as_user(name) for name in ("old", "new", "own"))
    at_first, later = lake.table("orders", within=("a", "b")), lake.table("orders", within=("z", "b"))
    assert [caller.get(at_first).status for caller in (old, new, own)] == [200, 404, 200]
    assert own.get(route(of("a"), "protection")).status == 200
    before = Project.objects.get(id=of("a").warehouse.project_id).authz_epoch
    assert move(admin, of("a", "b"), "z", "b").status == 200
    assert Project.objects.get(id=of("a").warehouse.project_id).authz_epoch > before
    assert [caller.get(later).status for caller in (old, new, own)] == [404, 200, 200]
    # seeing upwards goes along: the new parent, and the old one no more
    assert own.get(route(of("z"), "protection")).status == 200
    assert own.get(route(of("a"), "protection")).status == 404
    of_own = Grant.objects.get(principal_id="oidc~own")
    assert of_own.ancestors[1:] == [str(of("a").warehouse_id), str(of("z").id)]


def test_a_move_is_recorded(lake: Lake, admin: AsgiClient) -> None:
    move(admin, of("a"), "z", "a")
    entry = AuditEntry.objects.get(action="moveNamespace")
    assert entry.details == {
        "namespace": ["z", "a"],
        "before": ["a"],
        "warehouse-id": lake.warehouse_id,
        "moved": 3,
    }
    assert OutboxEvent.objects.get(type="moveNamespace").object_id == str(of("z", "a").id)


def test_moving_to_where_it_is_changes_nothing(lake: Lake, admin: AsgiClient) -> None:
    assert move(admin, of("a", "b"), "a", "b").status == 200
    assert not AuditEntry.objects.filter(action="moveNamespace").exists()


@pytest.mark.parametrize(
    ("destination", "status", "reason"),
    [
        (["z"], 409, "Namespace already exists"),
        (["Z"], 409, "Namespace already exists"),
        (["none", "a"], 404, "Namespace does not exist: none"),
        (["a", "x"], 400, "into itself"),
        (["A", "b", "x"], 400, "into itself"),
        (["x" * 256], 400, "at most 255"),
        (["x\u0000"], 400, "destination"),
        (["x\u0007"], 400, "control character"),
        ([""], 400, "empty"),
        ([], 400, "destination"),
        ("x", 400, "destination"),
        (["x"] * 17, 400, "at most 16"),
    ],
)
def test_a_wrong_destination_is_refused(
    lake: Lake, admin: AsgiClient, destination: Any, status: int, reason: str
) -> None:
    answer = admin.post(route(of("a"), "move"), {"destination": destination})
    assert (answer.status, reason in answer.message()) == (status, True), answer.body
    assert paths() == ["a", "a.b", "a.b.c", "z"]


def test_the_deepest_below_must_have_room(lake: Lake, admin: AsgiClient) -> None:
    deep = ["z"]
    while len(deep) < 14:
        deep.append(f"l{len(deep)}")
        assert lake.create_namespace(*deep).status == 200
    answer = move(admin, of("a"), *deep, "a")
    assert (answer.status, "17 levels, at most 16" in answer.message()) == (400, True)
    assert move(admin, of("a", "b"), *deep, "b").status == 200
    assert_consistent()


def test_the_longest_path_below_must_have_room(lake: Lake, admin: AsgiClient) -> None:
    long = ["a", "b", *(letter * 250 for letter in "cdefghi")]
    for depth in range(3, len(long) + 1):
        assert lake.create_namespace(*long[:depth]).status == 200
    answer = move(admin, of("a"), "é" * 125)
    assert (answer.status, "bytes together" in answer.message()) == (400, True)
    assert move(admin, of("a"), "é" * 100).status == 200


def test_a_protected_namespace_moves_with_force_only(lake: Lake, admin: AsgiClient) -> None:
    protect(admin, of("a"))
    assert move(admin, of("a"), "q").error() == (409, "ProtectedException")
    assert move(admin, of("a"), "a").status == 200
    assert admin.post(route(of("a"), "move"), {"destination": ["q"], "force": True}).status == 200
    assert admin.get(route(of("q"), "protection")).json()["protected"] is True


def test_who_may_move(lake: Lake, client: AsgiClient, stranger: AsgiClient, grant: Any) -> None:
    namespace = of("a", "b")
    assert move(stranger, namespace, "b").error() == (404, "NoSuchNamespaceException")
    grant("editor", "modify")
    grant("editor", "create")
    editor, mover = client.as_user("editor"), client.as_user("mover")
    assert move(editor, namespace, "z", "b").error() == (403, "ForbiddenException")
    give("mover", "ownership", "a", "b")
    assert move(mover, namespace, "z", "b").error() == (404, "NoSuchNamespaceException")  # the caller does not see z
    give("mover", "create", "z")
    answer = move(mover, namespace, "z", "b")
    assert answer.error() == (403, "ForbiddenException")
    assert "accept_moved_namespace" in answer.message()
    assert move(mover, namespace, "b").status == 403  # the warehouse, which the caller sees because of what is in it
    give("mover", "manage_grants", "z")
    assert move(mover, namespace, "z", "b").status == 200


def test_creations_during_moves_end_under_the_right_path(lake: Lake, admin: AsgiClient) -> None:
    def create(number: int) -> int:
        here = ("a", "b") if number % 2 else ("z", "b")
        return lake.create_namespace(*here, f"n{number}").status

    def deeper(number: int) -> int:
        here = ("a", "b", "c") if number % 2 else ("z", "b", "c")
        return lake.create_namespace(*here, f"d{number}").status

    def table(number: int) -> int:
        return lake.create_table(f"t{number}", within=("a", "b") if number % 2 else ("z", "b")).status

    def there_and_back(number: int) -> int:
        return move(admin, moving, "z" if number % 2 else "a", "b").status

    moving = of("a", "b")
    with ThreadPoolExecutor(6) as pool:
        done = [pool.submit(verb, number) for number in range(24) for verb in (create, deeper, table, there_and_back)]
    statuses = [each.result() for each in done]
    assert set(statuses) <= {200, 404, 409}
    assert statuses[3::4].count(200) >= 2
    assert_consistent()
    created = [status for index, status in enumerate(statuses) if index % 4 < 2]
    assert Namespace.objects.filter(parent__isnull=False).count() == created.count(200) + 2
    where = {str(row.id): [str(each) for each in row.lineage] for row in Namespace.objects.all()}
    for row in Grant.objects.filter(object_type="namespace"):
        assert [*row.ancestors[2:], row.object_id] == where[row.object_id]
    for row in Grant.objects.filter(object_type="table"):
        assert row.ancestors[2:] == where[str(moving.id)]


def test_many_children_move_in_one_statement(lake: Lake, admin: AsgiClient) -> None:
    parent = of("a", "b")
    with connection.cursor() as cursor:
        cursor.execute(
            """insert into namespace (id, warehouse_id, parent_id, path, path_key, name_key, lineage, properties,
                                      version, created_at)
               select i, %(w)s, %(p)s, %(path)s::text[] || ('n' || k), %(key)s || chr(31) || 'n' || k, 'n' || k,
                      %(lineage)s::uuid[] || i, '{}', 0, now()
               from (select gen_random_uuid() as i, k from generate_series(1, 20000) k) s""",
            {
                "w": parent.warehouse_id,
                "p": parent.id,
                "path": parent.path,
                "key": parent.path_key,
                "lineage": parent.lineage,
            },
        )
    assert move(admin, of("a"), "z", "far").status == 200
    assert Namespace.objects.filter(path__0_3=["z", "far", "b"]).count() == 20_002
    assert_consistent()


def test_lists_tell_ids_and_protection_when_asked(lake: Lake, admin: AsgiClient) -> None:
    protect(admin, of("z"))
    listed = admin.get(lake.path("namespaces", returnUuids="true", returnProtectionStatus="true")).json()
    assert listed["namespaces"] == [["a"], ["z"]]
    assert listed["namespace-uuids"] == [str(of("a").id), str(of("z").id)]
    assert listed["protection-status"] == [False, True]
    below = admin.get(lake.path("namespaces", parent="a", returnUuids="true")).json()
    assert below["namespace-uuids"] == [str(of("a", "b").id)]
    for _ in range(2):  # the second by the hot path
        assert set(admin.get(lake.path("namespaces")).json()) == {"namespaces", "next-page-token"}
    one = admin.get(lake.namespace("z", returnUuid="true")).json()
    assert one["namespace-uuid"] == str(of("z").id)
    assert admin.get(lake.path("namespaces", returnUuids="maybe")).status == 400
