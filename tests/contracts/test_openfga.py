"""What only the OpenFGA backend has: its log of changes, its outages, its long lists, many threads."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.db import connection, transaction

from lakewarden.authz import authorize
from lakewarden.authz.actions import ObjectType
from lakewarden.authz.decision_cache import HELD_PRIVILEGES, Epoch
from lakewarden.authz.interface import ObjectRef, Principal
from lakewarden.authz.ledger import grants, members
from lakewarden.authz.ledger.models import Change
from lakewarden.authz.model import Privilege
from lakewarden.authz.openfga import store
from lakewarden.authz.openfga.authorizer import OpenFgaAuthorizer
from lakewarden.authz.openfga.client import OpenFga
from lakewarden.config import OpenFgaConfig
from lakewarden.context import Caller, PrincipalId, RequestContext, role_principal
from lakewarden.errors import Unavailable
from tests.contracts.openfga_decides import PATIENT, configured
from tests.contracts.world import (
    ADMIN,
    ALICE,
    ANALYSTS,
    BOB,
    ORDERS,
    PROJECT,
    SALES,
    STAFF,
    WAREHOUSE,
    give,
    held,
    take,
)
from tests.servers import openfga as servers
from tests.servers import postgres
from tests.servers.openfga import OpenFgaServer

DEEPEST = 16


@pytest.fixture
def mortal(database: None) -> Iterator[tuple[OpenFgaServer, OpenFgaAuthorizer]]:
    """A server on Postgres, which keeps its data when it is restarted, and a client of it."""
    with (
        postgres.shared() as databases,
        servers.start(databases.create_database("openfga_mortal"), flags=PATIENT) as server,
    ):
        with configured(server) as settings:
            store.migrate(settings)
            authorizer = OpenFgaAuthorizer(settings)
            yield server, authorizer
            authorizer.close()
        server.stop()
        databases.drop_database("openfga_mortal")


def test_an_outage_is_no_answer_and_ends_by_itself(mortal: tuple[OpenFgaServer, OpenFgaAuthorizer]) -> None:
    server, authorizer = mortal
    context = RequestContext(caller=Caller(ALICE), request_id="r", user_agent="pytest")

    def known(number: int) -> frozenset[Privilege]:
        epoch = Epoch("p", number)
        return authorize.held(authorizer, context, principal=lambda: Principal(ALICE), chain=ORDERS, epoch=epoch)

    HELD_PRIVILEGES.clear()
    give(ORDERS, ALICE, Privilege.SELECT)
    assert Privilege.SELECT in known(1)
    server.stop()
    with pytest.raises(Unavailable, match="not reachable"):
        known(2)
    give(ORDERS, ALICE, Privilege.MODIFY)  # it is committed, and waits in the log
    assert Change.objects.count() == 1
    assert Privilege.SELECT in known(1)
    with pytest.raises(Unavailable) as caught:
        known(3)
    assert (caught.value.status, caught.value.retry_after_s) == (503, 1)
    server.start()
    assert Privilege.MODIFY in known(3)
    assert not Change.objects.exists()
    HELD_PRIVILEGES.clear()


def test_the_deepest_chain_fits_the_limits_of_a_server_on_postgres(
    mortal: tuple[OpenFgaServer, OpenFgaAuthorizer],
) -> None:
    _, authorizer = mortal
    chain = [*WAREHOUSE, *(ObjectRef(ObjectType.NAMESPACE, f"level-{number}") for number in range(DEEPEST))]
    table = [*chain, ObjectRef(ObjectType.TABLE, "deep")]
    members.add(STAFF, [ANALYSTS], project_id="p", added_by=ADMIN)
    members.add(ANALYSTS, [BOB], project_id="p", added_by=ADMIN)
    give(PROJECT, STAFF, Privilege.PROJECT_ADMIN)
    give(chain[:4], ALICE, Privilege.OWNERSHIP)
    grants.set_managed(chain[:10], managed=True, set_by=ADMIN)
    assert {Privilege.MODIFY, Privilege.MANAGE_GRANTS} <= held(authorizer, table, BOB)
    assert {Privilege.MODIFY, Privilege.MANAGE_GRANTS} <= held(authorizer, table, ALICE)
    assert held(authorizer, table, PrincipalId("oidc~nobody")) == frozenset()


def test_more_roles_are_found_than_the_plain_list_gives(openfga: OpenFgaAuthorizer) -> None:
    roles = [role_principal(f"r-{number}") for number in range(1500)]
    with transaction.atomic():
        for role in roles:
            members.add(role, [ALICE], project_id="p", added_by=ADMIN)
    assert not Change.objects.exists()
    assert set(openfga.principals(Principal(ALICE))) == {ALICE, *roles}
    assert set(openfga.principals(Principal(BOB, (roles[0],)))) == {BOB, roles[0]}


def test_a_change_is_applied_with_its_commit(openfga: OpenFgaAuthorizer) -> None:
    with transaction.atomic():
        give(ORDERS, ALICE, Privilege.SELECT)
        take(ORDERS, ALICE, Privilege.SELECT)
        give(ORDERS, ALICE, Privilege.SELECT)
        give(ORDERS, BOB, Privilege.SELECT)
        take(ORDERS, BOB, Privilege.SELECT)
        # no follower is called for a change that may still be rolled back
        assert held(openfga, ORDERS) == frozenset()
        assert Change.objects.count() == 5
    assert not Change.objects.exists()
    assert Privilege.SELECT in held(openfga, ORDERS)
    assert held(openfga, ORDERS, BOB) == frozenset()


def test_a_change_that_is_rolled_back_never_reaches_it(openfga: OpenFgaAuthorizer) -> None:
    with transaction.atomic():
        give(ORDERS, ALICE, Privilege.SELECT)
        held(openfga, ORDERS)
        transaction.set_rollback(True)
    assert held(openfga, ORDERS) == frozenset()


def test_what_is_applied_again_comes_to_the_same(openfga: OpenFgaAuthorizer) -> None:
    give(ORDERS, ALICE, Privilege.SELECT)
    # as if the server had been killed between the write and its end
    Change.objects.bulk_create(
        Change(
            operation=operation,
            principal_id=ALICE,
            relation="select",
            object_type="table",
            object_id="orders",
        )
        for operation in ("write", "delete", "write", "delete", "write")
    )
    assert Privilege.SELECT in held(openfga, ORDERS)
    assert not Change.objects.exists()


def test_what_the_model_has_no_place_for_stops_nobody(openfga: OpenFgaAuthorizer) -> None:
    unknown = {"operation": "write", "principal_id": ALICE, "object_id": "orders"}
    Change.objects.create(**unknown, relation="assignee", object_type="table")
    Change.objects.create(**unknown, relation="fly", object_type="table")
    Change.objects.create(**unknown, relation="select", object_type="teapot")
    Change.objects.create(**{**unknown, "principal_id": "*"}, relation="select", object_type="table")
    give(SALES, ALICE, Privilege.SELECT)
    assert Privilege.SELECT in held(openfga, ORDERS)
    assert held(openfga, ORDERS, BOB) == frozenset()
    assert not Change.objects.exists()


def test_many_threads_change_and_ask_and_see_their_own_changes(openfga: OpenFgaAuthorizer) -> None:
    wrong: list[str] = []

    def one(number: int) -> None:
        somebody = PrincipalId(f"oidc~{number}")
        try:
            for _ in range(5):
                give(ORDERS, somebody, Privilege.SELECT)
                if Privilege.SELECT not in held(openfga, ORDERS, somebody):
                    wrong.append(f"{number} did not see a grant")
                take(ORDERS, somebody, Privilege.SELECT)
                if held(openfga, ORDERS, somebody):
                    wrong.append(f"{number} did not see that it was taken")
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(one, number) for number in range(6)]:
            done.result()
    assert wrong == []
    assert not Change.objects.exists()


def test_two_processes_apply_in_turn(openfga: OpenFgaAuthorizer, settings: OpenFgaConfig) -> None:
    other = OpenFgaAuthorizer(settings)  # with a connection of its own, as another process has
    stop = threading.Event()

    def busy() -> None:
        try:
            while not stop.is_set():
                other.settle()
        finally:
            connection.close()

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(30):
            give(ORDERS, ALICE, Privilege.SELECT)
            assert Privilege.SELECT in held(openfga, ORDERS)
            take(ORDERS, ALICE, Privilege.SELECT)
            assert held(openfga, ORDERS) == frozenset()
    finally:
        stop.set()
        thread.join()
        other.close()


class _Answers(BaseHTTPRequestHandler):
    """Answers every request with `status` and `body`, after `wait_s` unless nobody waits for it any more."""

    status, body, wait_s = 200, b"{}", 0.0
    given_up: threading.Event

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.wait_s and self.given_up.wait(self.wait_s):
            return
        self.send_response(self.status)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def stub() -> Iterator[tuple[type[_Answers], OpenFga]]:
    """What an OpenFGA, or something in front of it, may answer; and a client of it."""

    class Answers(_Answers):
        given_up = threading.Event()

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        client = OpenFga(OpenFgaConfig(api_url=f"http://127.0.0.1:{listening.server_port}", timeout_s=1))
        client._client.configuration.store_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
        yield Answers, client
        client.close()
        Answers.given_up.set()
        listening.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b'{"result": {"select": {"error": {"input_error": "validation_error", "message": "x"}}}}'),
        (200, b'{"result": {"select": {}}}'),
        (200, b'{"result": {"select": {"allowed": true, "error": {"message": "x"}}}}'),
        (200, b'{"result": {"select": {"allowed": null}}}'),
        (200, b'{"result": {"other": {"allowed": true}}}'),
        (200, b'{"result": {}}'),
        (200, b"{}"),
        (200, b"[]"),
        (200, b"<html>a proxy's page</html>"),
        (302, b""),
        (400, b'{"code": "authorization_model_resolution_too_complex", "message": "x"}'),
        (401, b'{"code": "bearer_token_missing", "message": "x"}'),
        (404, b'{"code": "store_id_not_found", "message": "x"}'),
        (404, b"not found"),
        (413, b"too large"),
        (418, b""),
        (429, b'{"code": "rate_limit_exceeded", "message": "x"}'),
        (500, b"\xff\xfe"),
        (503, b"<html>away</html>"),
    ],
)
def test_an_answer_that_is_none_is_unavailable(stub: tuple[type[_Answers], OpenFga], status: int, body: bytes) -> None:
    answers, client = stub
    answers.status, answers.body = status, body
    with pytest.raises(Unavailable, match="OpenFGA cannot be asked about rights"):
        client.held("user:a", ["select"], "table:t", context=[])
    with pytest.raises(Unavailable):
        list(client.objects("user:a", "see_here", "table", context=[]))


def test_a_server_that_hangs_is_unavailable_in_time(stub: tuple[type[_Answers], OpenFga]) -> None:
    answers, client = stub
    answers.wait_s = 30.0
    began = time.monotonic()
    with pytest.raises(Unavailable, match="not reachable"):
        client.held("user:a", ["select"], "table:t", context=[])
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "body",
    [
        b'{"result": {"object": "table:a"}}\n{"error": {"code": 4, "message": "deadline exceeded"}}\n',
        b'{"result": {"object": "table:a"}}\n{"result": {"obj',
        b'{"result": {"object": "table:a"}}\nnonsense\n',
    ],
)
def test_a_list_that_breaks_off_is_unavailable(stub: tuple[type[_Answers], OpenFga], body: bytes) -> None:
    answers, client = stub
    answers.body = body
    with pytest.raises(Unavailable):
        list(client.objects("user:a", "see_here", "table", context=[]))
    answers.body = b'{"result": {"object": "table:a"}}\n'
    assert list(client.objects("user:a", "see_here", "table", context=[])) == ["table:a"]


def test_a_list_that_took_too_long_to_be_whole_is_unavailable(stub: tuple[type[_Answers], OpenFga]) -> None:
    answers, client = stub
    answers.body, answers.wait_s = b'{"result": {"object": "table:a"}}\n', 0.9
    with pytest.raises(Unavailable, match="may not be complete"):
        list(client.objects("user:a", "see_here", "table", context=[]))
