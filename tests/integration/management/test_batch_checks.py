"""`POST /action/batch-check` and `/permissions/check`: may somebody do this to that."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from catalog.models import Namespace, Tabular
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.actions import ACTIONS, ObjectType
from lakewarden.authz.decision_cache import HELD_PRIVILEGES
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.ids import new_id
from tenants import access
from tenants.models import Project, Role, Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import projects
from tests.installation import ADMIN, Grant
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer, AsgiClient

BATCH = "/management/v1/action/batch-check"
ONE = "/management/v1/permissions/check"


@pytest.fixture
def lake(engine: AsgiClient, warehouse: Warehouse) -> Lake:
    lake = Lake(engine, str(warehouse.id))
    assert lake.create_namespace("sales").status == 200
    assert lake.create_namespace("sales", "eu").status == 200
    assert lake.create_table("orders").status == 200
    assert lake.create_table("orders", within=("sales", "eu")).status == 200
    assert lake.create_view("report").status == 200
    return lake


def table(lake: Lake, action: Any = "read_data", **about: Any) -> dict[str, Any]:
    named = about or {"namespace": ["sales"], "table": "orders"}
    return {"table": {"action": action, "warehouse-id": lake.warehouse_id, **named}}


def batch(caller: AsgiClient, *operations: Any, **more: Any) -> Answer:
    checks = [each if "operation" in each else {"operation": each} for each in operations]
    return caller.post(BATCH, {"checks": checks, **more})


def allowed(answer: Answer) -> list[bool]:
    assert answer.status == 200, answer.body
    return [each["allowed"] for each in answer.json()["results"]]


@pytest.fixture
def reader(client: AsgiClient, lake: Lake, grant: Grant) -> AsgiClient:
    grant("reader", "select")
    return client.as_user("reader")


def test_each_kind_of_object_by_id_and_by_name(reader: AsgiClient, lake: Lake) -> None:
    within = {"warehouse-id": lake.warehouse_id}
    inner = Namespace.objects.get(path=["sales", "eu"]).id
    orders = Tabular.objects.get(name="orders", namespace_id=inner).uuid
    report = Tabular.objects.get(name="report").uuid
    may: list[dict[str, Any]] = [
        {"warehouse": {"action": "use", **within}},
        {"namespace": {"action": "list_tables", **within, "namespace-id": str(inner)}},
        {"namespace": {"action": "list_tables", **within, "namespace": ["Sales", "EU"]}},
        table(lake, **{"table-id": str(orders)}),
        table(lake, namespace=["sales", "eu"], table="ORDERS"),
        {"view": {"action": "select", **within, "view-id": str(report)}},
        {"view": {"action": "select", **within, "namespace": ["sales"], "view": "report"}},
        {"view": {"action": "select", **within, "namespace": ["sales"], "table": "report"}},
        {"view": {"action": "select", **within, "table-id": str(report)}},
    ]
    may_not: list[dict[str, Any]] = [
        {"server": {"action": "create_project"}},
        {"warehouse": {"action": "delete", **within}},
        {"namespace": {"action": "create_table", **within, "namespace-id": str(inner)}},
        table(lake, "write_data"),
        {"view": {"action": "drop", **within, "view-id": str(report)}},
    ]
    assert allowed(batch(reader, *may)) == [True] * len(may)
    assert allowed(batch(reader, *may_not)) == [False] * len(may_not)


def test_the_project_is_the_one_that_is_named_else_that_of_the_header(admin: AsgiClient, lake: Lake) -> None:
    Project.objects.create(id="blue", name="Blue", name_key="blue")
    ask = {"project": {"action": "create_warehouse"}}
    named = {"project": {"action": "create_warehouse", "project-id": DEFAULT_PROJECT_ID}}
    assert allowed(batch(admin, ask, named)) == [True, True]
    elsewhere = admin.post(
        BATCH, {"checks": [{"operation": ask}, {"operation": named}]}, headers={"x-project-id": "blue"}
    )
    assert allowed(elsewhere) == [False, True]


def test_answers_are_in_the_order_of_the_checks_and_carry_their_ids(reader: AsgiClient, lake: Lake) -> None:
    answer = batch(
        reader,
        {"id": "b", "operation": table(lake, "drop")},
        {"operation": table(lake)},
        {"id": "a", "operation": table(lake, {"action": "commit", "updates": ["set-properties"]})},
        {"id": "a", "operation": table(lake, {"action": "read_data"})},
    )
    assert answer.json() == {
        "results": [
            {"id": "b", "allowed": False},
            {"allowed": True},
            {"id": "a", "allowed": False},
            {"id": "a", "allowed": True},
        ]
    }


def test_nothing_asked_is_nothing_answered(reader: AsgiClient) -> None:
    assert batch(reader).json() == {"results": []}


def missing(lake: Lake) -> dict[str, dict[str, Any]]:
    other = str(uuid4())
    within = {"warehouse-id": lake.warehouse_id}
    orders = str(Tabular.objects.filter(name="orders").first().uuid)  # type: ignore[union-attr]
    return {
        "a project": {"project": {"action": "delete", "project-id": "gone"}},
        "no project id": {"project": {"action": "delete", "project-id": "a\u0000b"}},
        "a warehouse": {"warehouse": {"action": "use", "warehouse-id": other}},
        "a namespace": {"namespace": {"action": "delete", **within, "namespace-id": other}},
        "a path": {"namespace": {"action": "delete", **within, "namespace": ["sales", "us"]}},
        "a path with NUL": {"namespace": {"action": "delete", **within, "namespace": ["sa\u0000les"]}},
        "a table": table(lake, **{"table-id": other}),
        "a table by name": table(lake, namespace=["sales"], table="gone"),
        "a name with NUL": table(lake, namespace=["sales"], table="or\u0000ders"),
        "a table of a missing path": table(lake, namespace=["gone"], table="orders"),
        "a table in a missing warehouse": {
            "table": {"action": "drop", "warehouse-id": other, "namespace": ["sales"], "table": "orders"}
        },
        "a table of another warehouse": {"table": {"action": "drop", "warehouse-id": other, "table-id": orders}},
        "a view that is a table": {"view": {"action": "drop", **within, "namespace": ["sales"], "view": "orders"}},
    }


@pytest.mark.parametrize("case", range(13))
def test_what_is_missing_is_not_allowed_or_its_404(admin: AsgiClient, lake: Lake, case: int) -> None:
    operations = list(missing(lake).values())
    assert len(operations) == 13
    kind = next(iter(operations[case]))
    assert allowed(batch(admin, operations[case])) == [False]
    answer = batch(admin, table(lake), operations[case], **{"error-on-not-found": True})
    assert answer.error() == (404, f"NoSuch{kind.capitalize()}Exception")


def test_what_is_hidden_answers_like_what_is_missing(stranger: AsgiClient, lake: Lake) -> None:
    hidden = table(lake, "get_metadata")
    assert allowed(batch(stranger, hidden, {"warehouse": {"action": "use", "warehouse-id": lake.warehouse_id}})) == [
        False,
        False,
    ]
    told = batch(stranger, hidden, **{"error-on-not-found": True})
    gone = batch(stranger, table(lake, namespace=["sales"], table="sredro"), **{"error-on-not-found": True})
    assert told.error() == gone.error() == (404, "NoSuchTableException")
    assert told.message().replace("orders", "sredro") == gone.message()


def test_asking_about_somebody_else(admin: AsgiClient, reader: AsgiClient, lake: Lake, warehouse: Warehouse) -> None:
    identifier = new_id()
    role = Role.objects.create(
        id=identifier, project_id=DEFAULT_PROJECT_ID, name="r", name_key="r", source_id=str(identifier)
    )
    ledger.give(access.warehouse_chain(warehouse), [(role.principal, Privilege.WRITE)], granted_by=ADMIN)
    projects.bump_epoch(DEFAULT_PROJECT_ID)
    checks = [
        {"identity": who, "operation": table(lake, action)}
        for who in ({"user": "oidc~reader"}, {"role": str(role.id)}, {"user": "oidc~nobody"}, {"user": "oidc~admin"})
        for action in ("read_data", "write_data")
    ]
    # the administrator owns the warehouse, and writes in it
    assert allowed(batch(admin, *checks)) == [True, False, True, True, False, False, True, True]
    refused = batch(reader, table(lake), checks[-1])
    assert refused.error() == (403, "ForbiddenException")
    assert refused.message().startswith("checks[1]: Not allowed: asking what others may do on this table")


def test_asking_about_oneself_by_name_is_asking_about_oneself(reader: AsgiClient, lake: Lake) -> None:
    assert allowed(batch(reader, {"identity": {"user": "oidc~reader"}, "operation": table(lake)})) == [True]


def test_a_role_of_another_project_is_missing(admin: AsgiClient, lake: Lake) -> None:
    Project.objects.create(id="blue", name="Blue", name_key="blue")
    identifier = new_id()
    Role.objects.create(id=identifier, project_id="blue", name="r", name_key="r", source_id=str(identifier))
    for role in (str(identifier), str(uuid4())):
        check = {"identity": {"role": role}, "operation": table(lake)}
        assert allowed(batch(admin, check)) == [False]
        strict = batch(admin, check, **{"error-on-not-found": True})
        assert (strict.error(), strict.message()) == (
            (404, "NoSuchRoleException"),
            f"Role does not exist: {role}",
        )


def test_others_cannot_be_asked_about_on_what_is_hidden(stranger: AsgiClient, lake: Lake) -> None:
    check = {"identity": {"user": "oidc~admin"}, "operation": table(lake)}
    assert allowed(batch(stranger, check)) == [False]
    assert batch(stranger, check, **{"error-on-not-found": True}).error() == (404, "NoSuchTableException")


W = {"warehouse-id": str(uuid4())}
BAD_CHECKS: dict[str, tuple[Any, str]] = {
    "no operation": ({}, "checks[0].operation: an object with one member"),
    "empty operation": ({"operation": {}}, "an object with one member is expected, one of server, project"),
    "two operations": ({"operation": {"server": {}, "project": {}}}, "one member"),
    "operation is a list": ({"operation": ["server"]}, "one member"),
    "unknown kind": ({"operation": {"materialized-view": {}}}, "'materialized-view' is not known: one of server"),
    "kind is no object": ({"operation": {"server": "create_project"}}, "checks[0].operation.server: an object"),
    "no action": (
        {"operation": {"server": {}}},
        "None is not a valid action on a server: one of control_event_delivery",
    ),
    "unknown action": ({"operation": {"server": {"action": "fly"}}}, "'fly' is not a valid action on a server"),
    "another kind's action": (
        {"operation": {"table": {"action": "use", **W}}},
        "'use' is not a valid action on a table",
    ),
    "action is a number": ({"operation": {"server": {"action": 1}}}, "1 is not a valid action"),
    "action without a name": ({"operation": {"server": {"action": {"name": "x"}}}}, "None is not a valid action"),
    "unknown member": ({"operation": {"server": {"action": "list_users", "id": 1}}}, "unknown member 'id'"),
    "unknown check member": ({"operation": {}, "who": 1}, "checks[0]: unknown member 'who'"),
    "id is a number": ({"id": 1, "operation": {}}, "checks[0].id: 1 is not a string"),
    "no warehouse": ({"operation": {"warehouse": {"action": "use"}}}, "warehouse-id is missing"),
    "warehouse is no id": (
        {"operation": {"warehouse": {"action": "use", "warehouse-id": "lake"}}},
        "checks[0].operation.warehouse.warehouse-id: 'lake' is not a valid id: a UUID is expected",
    ),
    "warehouse is a number": (
        {"operation": {"warehouse": {"action": "use", "warehouse-id": 1}}},
        "1 must be a non-empty string",
    ),
    "neither id nor path": (
        {"operation": {"namespace": {"action": "delete", **W}}},
        "either namespace-id or namespace",
    ),
    "id and path": (
        {"operation": {"namespace": {"action": "delete", **W, "namespace-id": str(uuid4()), "namespace": ["a"]}}},
        "either namespace-id or namespace",
    ),
    "empty path": ({"operation": {"namespace": {"action": "delete", **W, "namespace": []}}}, "[] is not a valid path"),
    "path is text": (
        {"operation": {"namespace": {"action": "delete", **W, "namespace": "a.b"}}},
        "'a.b' is not a valid path",
    ),
    "path of numbers": (
        {"operation": {"namespace": {"action": "delete", **W, "namespace": [1]}}},
        "[1] is not a valid path",
    ),
    "table without path": ({"operation": {"table": {"action": "drop", **W, "table": "t"}}}, "either table-id or"),
    "path without table": ({"operation": {"table": {"action": "drop", **W, "namespace": ["a"]}}}, "either table-id or"),
    "table and view": (
        {"operation": {"view": {"action": "drop", **W, "namespace": ["a"], "table": "t", "view": "v"}}},
        "several objects are named",
    ),
    "empty name": (
        {"operation": {"table": {"action": "drop", **W, "namespace": ["a"], "table": ""}}},
        "must be a non-empty string",
    ),
    "identity is text": ({"identity": "oidc~a", "operation": {}}, "checks[0].identity: {"),
    "identity of both": ({"identity": {"user": "oidc~a", "role": str(uuid4())}, "operation": {}}, "identity: {"),
    "identity of neither": ({"identity": {"group": "a"}, "operation": {}}, "identity: {"),
    "user is no id": ({"identity": {"user": "alice"}, "operation": {}}, "'alice' is not a valid user id"),
    "user with NUL": ({"identity": {"user": "oidc~a\u0000"}, "operation": {}}, "is not a valid user id"),
    "user is a number": ({"identity": {"user": 1}, "operation": {}}, "is not a valid user id"),
    "role is no id": ({"identity": {"role": "readers"}, "operation": {}}, "'readers' is not a valid role id"),
}


@pytest.mark.parametrize("case", BAD_CHECKS)
def test_a_check_that_cannot_be_understood_is_refused(admin: AsgiClient, case: str) -> None:
    check, reason = BAD_CHECKS[case]
    answer = admin.post(BATCH, {"checks": [check]})
    assert answer.error() == (400, "BadRequestException")
    assert reason in answer.message()
    assert len(answer.message()) < 1000


@pytest.mark.parametrize(
    "body",
    [{}, {"checks": "all"}, {"checks": [1]}, {"checks": [], "strict": True}, {"checks": [], "error-on-not-found": 7}],
)
def test_a_body_that_is_no_batch_is_refused(admin: AsgiClient, body: Any) -> None:
    assert admin.post(BATCH, body).error() == (400, "BadRequestException")


def test_names_that_are_half_a_character_are_refused(admin: AsgiClient, lake: Lake) -> None:
    body = b'{"checks": [{"operation": {"project": {"action": "delete", "project-id": "\\ud800"}}}]}'
    assert admin.call("POST", BATCH, body=body).error() == (400, "BadRequestException")


def test_more_than_a_thousand_checks_are_refused(admin: AsgiClient, lake: Lake) -> None:
    assert len(allowed(batch(admin, *[table(lake)] * 1000))) == 1000
    answer = batch(admin, *[table(lake)] * 1001)
    assert answer.error() == (400, "BadRequestException")
    assert answer.message() == "1001 checks in one request: at most 1000 are allowed"


@pytest.mark.parametrize("kind", ["server", "table"])
def test_an_unknown_action_is_told_the_known_ones(admin: AsgiClient, kind: str) -> None:
    answer = batch(admin, {kind: {"action": "fly", **({} if kind == "server" else W)}})
    assert all(action.value in answer.message() for action in ACTIONS[ObjectType(kind)])


def test_the_older_form_for_one_check(admin: AsgiClient, reader: AsgiClient, lake: Lake) -> None:
    assert reader.post(ONE, {"operation": table(lake)}).json() == {"allowed": True}
    assert reader.post(ONE, {"operation": table(lake, "drop")}).json() == {"allowed": False}
    assert reader.post(ONE, {"operation": table(lake, **{"table-id": str(uuid4())})}).json() == {"allowed": False}
    about = {"identity": {"user": "oidc~reader"}, "operation": table(lake)}
    assert admin.post(ONE, about).json() == {"allowed": True}
    refused = reader.post(ONE, about | {"identity": {"user": "oidc~admin"}})
    assert refused.error() == (403, "ForbiddenException")
    assert refused.message().startswith("Not allowed: asking what others may do on this table")
    assert admin.post(ONE, {"operation": {"server": {"action": "fly"}}}).status == 400
    assert admin.post(ONE, {}).status == 400


def test_questions_change_nothing(admin: AsgiClient, lake: Lake) -> None:
    before = AuditEntry.objects.filter(outcome="done").count()
    batch(admin, table(lake), {"identity": {"user": "oidc~x"}, "operation": table(lake)})
    assert AuditEntry.objects.filter(outcome="done").count() == before


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Answer]], int]:
    """Counts what the whole server asks the database while something is called."""
    asked: list[object] = []
    execute = psycopg.Cursor.execute

    def counted(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(query)
        return execute(self, query, *arguments, **options)

    def count(call: Callable[[], Answer]) -> int:
        before = len(asked)
        assert call().status == 200
        return len(asked) - before

    monkeypatch.setattr(psycopg.Cursor, "execute", counted)
    return count


def test_queries_grow_neither_with_checks_nor_once_known_with_objects(
    client: AsgiClient, lake: Lake, grant: Grant, queries: Callable[[Callable[[], Answer]], int]
) -> None:
    for number in range(10):
        assert lake.create_table(f"t{number}").status == 200
    grant("reader", "select")
    reader = client.as_user("reader")

    def checks(count: int, *, tables: int = 10) -> Answer:
        return batch(reader, *(table(lake, namespace=["sales"], table=f"t{n % tables}") for n in range(count)))

    cold = queries(lambda: checks(100))
    warm = queries(lambda: checks(100))
    # the namespace and its tables; at first also a decision for each table, of one query or two
    assert warm == 2
    assert cold <= warm + 2 * 10
    HELD_PRIVILEGES.clear()
    assert queries(lambda: checks(1000)) == cold
    assert queries(lambda: checks(1000)) == warm
    assert queries(lambda: checks(1, tables=1)) == warm


def test_queries_about_somebody_else_are_one_for_each_object(
    admin: AsgiClient, lake: Lake, queries: Callable[[Callable[[], Answer]], int]
) -> None:
    check = {"identity": {"user": "oidc~reader"}, "operation": table(lake)}
    batch(admin, check)
    # the namespace, the table, whether the user is deleted, and their privileges
    assert queries(lambda: batch(admin, check)) == queries(lambda: batch(admin, *[check] * 100)) == 4
