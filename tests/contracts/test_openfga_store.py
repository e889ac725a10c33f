"""The store and its model: made by `migrate`, demanded by `serve`, filled and mended by `openfga reconcile`."""

import os
from itertools import pairwise

import pytest
from click.testing import CliRunner, Result
from django.db import transaction

from lakewarden import config, schema_version
from lakewarden.authz.actions import ObjectType
from lakewarden.authz.database import DatabaseAuthorizer
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.ledger import grants, members
from lakewarden.authz.ledger.models import Change, Grant, OpenFgaStore
from lakewarden.authz.model import Privilege
from lakewarden.authz.openfga import depth, language, reconcile, store
from lakewarden.authz.openfga.authorizer import OpenFgaAuthorizer
from lakewarden.authz.openfga.client import OpenFga
from lakewarden.authz.openfga.tuples import RelationTuple
from lakewarden.cli.commands import main
from lakewarden.config import OpenFgaConfig
from lakewarden.context import PrincipalId, role_principal
from lakewarden.doctor import openfga as doctor
from lakewarden.doctor.findings import State
from lakewarden.errors import Unavailable
from lakewarden.schema_version import DatabaseNotReady
from tests.contracts.openfga_decides import PATIENT, configured
from tests.contracts.world import (
    ADMIN,
    ALICE,
    BOB,
    EUROPE,
    EVERYONE,
    ORDERS,
    PROJECT,
    SALES,
    STAFF,
    WAREHOUSE,
    give,
    held,
)
from tests.servers import openfga as servers
from tests.servers.openfga import OpenFgaServer


@pytest.mark.usefixtures("database")
def test_a_chain_beyond_the_servers_limit_is_no_answer_and_the_doctor_says_so(server: OpenFgaServer) -> None:
    with configured(server) as settings:
        store.migrate(settings)
        assert [state for state, _ in findings()] == [State.OK]
    with servers.start(flags=PATIENT) as shallow, configured(shallow) as settings:
        store.migrate(settings)
        asked = client(settings)
        assert depth.follows(asked, levels=16, nested=7)
        asked.close()
        told = list(doctor.examine(config.current()))
        assert [found.state for found in told] == [State.OK, State.WARN]
        assert "OPENFGA_RESOLVE_NODE_LIMIT=32" in str(told[-1].fix)
        deep = [*WAREHOUSE, *(ObjectRef(ObjectType.NAMESPACE, f"level-{number}") for number in range(16))]
        roles = [role_principal(f"nested-{number}") for number in range(10)]
        for member, role in pairwise([ALICE, *roles]):
            members.add(role, [member], project_id="p", added_by=ADMIN)
        give(PROJECT, roles[-1], Privilege.PROJECT_ADMIN)
        authorizer = OpenFgaAuthorizer(settings)
        with pytest.raises(Unavailable) as caught:
            held(authorizer, [*deep, ORDERS[-1]])
        assert caught.value.status == 503
        authorizer.close()


def client(settings: OpenFgaConfig) -> OpenFga:
    return OpenFga(settings, store.migrated(settings))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def findings() -> list[tuple[State, str]]:
    return [(found.state, found.sentence) for found in doctor.examine(config.current())]


def fill_behind_its_back(number: int) -> None:
    """What a server with another backend does: rows in the ledger, and none in the log."""
    with transaction.atomic():
        for each in range(number):
            give([*EUROPE, ObjectRef(ObjectType.TABLE, f"t-{each}")], ALICE, Privilege.SELECT)
        give(ORDERS, PrincipalId("oidc~" + "ß" * 300), Privilege.SELECT)
        members.add(STAFF, [BOB], project_id="p", added_by=ADMIN)
        members.add(EVERYONE, [STAFF], project_id="p", added_by=ADMIN)
        grants.set_managed(SALES, managed=True, set_by=ADMIN)
        Change.objects.all().delete()


def test_migrate_makes_store_and_model_once(settings: OpenFgaConfig) -> None:
    with pytest.raises(DatabaseNotReady, match="model is not in it yet: run `lakewarden migrate` first"):
        schema_version.require_current()
    assert findings() == [(State.FAIL, "has no store for this installation")]
    first = run("migrate")
    assert (first.exit_code, "The authorization model was written to OpenFGA" in first.output) == (0, True), (
        first.output
    )
    row = OpenFgaStore.objects.get()
    again = run("migrate")
    assert again.output == "The database is up to date\n"
    assert run("migrate", "--check").exit_code == 0
    assert OpenFgaStore.objects.get().model_id == row.model_id
    schema_version.require_current()
    assert [state for state, _ in findings()] == [State.OK]


def test_another_versions_model_is_refused_and_replaced(settings: OpenFgaConfig) -> None:
    store.migrate(settings)
    OpenFgaStore.objects.update(model_hash="another")
    with pytest.raises(DatabaseNotReady, match="another version's: run `lakewarden migrate` first"):
        schema_version.require_current()
    with pytest.raises(Unavailable, match="lakewarden migrate"):
        held(OpenFgaAuthorizer(settings), ORDERS)
    assert [state for state, _ in findings()] == [State.FAIL]
    assert store.migrate(settings) == ["The authorization model was written to OpenFGA"]
    assert OpenFgaStore.objects.get().model_hash == language.model_hash()
    schema_version.require_current()


def test_a_store_of_somebody_else_is_left_alone(settings: OpenFgaConfig, server: OpenFgaServer) -> None:
    identifier = server.create_store(settings.store)
    server.call("POST", f"/stores/{identifier}/authorization-models", language.authorization_model())
    refused = run("migrate")
    assert refused.exit_code == 1
    assert "LAKEWARDEN__OPENFGA__STORE to another name" in refused.output
    assert not OpenFgaStore.objects.exists()


def test_a_store_that_a_killed_migrate_left_is_taken(settings: OpenFgaConfig, server: OpenFgaServer) -> None:
    identifier = server.create_store(settings.store)
    store.migrate(settings)
    assert OpenFgaStore.objects.get().store_id == identifier


def test_a_store_that_is_gone_is_made_again_and_has_to_be_filled(
    openfga: OpenFgaAuthorizer, settings: OpenFgaConfig, server: OpenFgaServer
) -> None:
    give(ORDERS, ALICE, Privilege.SELECT)
    held(openfga, ORDERS)
    assert not openfga.is_lost()
    # OpenFGA goes on to answer for it
    server.call("DELETE", f"/stores/{OpenFgaStore.objects.get().store_id}")
    assert openfga.is_lost()
    assert findings() == [(State.FAIL, "no longer has this installation's store or model")]
    checked = run("migrate", "--check")
    assert checked.exit_code == 1
    assert "OpenFGA cannot be used: it no longer has this installation's store or model" in checked.output
    assert "does not have all rights of the database yet" in run("migrate").output
    with pytest.raises(DatabaseNotReady, match="run `lakewarden openfga reconcile` first"):
        schema_version.require_current()
    with pytest.raises(Unavailable, match="lakewarden openfga reconcile"):
        held(openfga, ORDERS)
    assert run("openfga", "reconcile").exit_code == 0
    assert Privilege.SELECT in held(openfga, ORDERS)
    assert not openfga.is_lost()


def test_reconcile_moves_in_from_the_database(settings: OpenFgaConfig) -> None:
    fill_behind_its_back(450)
    assert "run `lakewarden openfga reconcile` next" in store.migrate(settings)[-1]
    told = run("openfga", "reconcile", "--dry-run")
    assert "454 rights and memberships are in the database" in told.output
    assert "454 are missing in OpenFGA, 0 are there without" in told.output
    assert len([line for line in told.output.splitlines() if line.startswith("+ ")]) == reconcile.SHOWN
    with pytest.raises(DatabaseNotReady, match="reconcile"):
        schema_version.require_current()
    assert "454 were missing in OpenFGA" in run("openfga", "reconcile").output
    schema_version.require_current()
    again = reconcile.reconcile(settings, dry_run=True)
    assert (again.compared, again.missing, again.surplus, again.examples) == (454, 0, 0, [])
    authorizer, database = OpenFgaAuthorizer(settings), DatabaseAuthorizer()
    for somebody in (ALICE, BOB, PrincipalId("oidc~" + "ß" * 300)):
        for chain in (ORDERS, EUROPE, [*EUROPE, ObjectRef(ObjectType.TABLE, "t-449")]):
            assert held(authorizer, chain, somebody) == held(database, chain, somebody)
    authorizer.close()


def test_reconcile_removes_what_nobody_granted(openfga: OpenFgaAuthorizer, settings: OpenFgaConfig) -> None:
    give(ORDERS, ALICE, Privilege.SELECT)
    give(ORDERS, PrincipalId("oidc~" + "ß" * 300), Privilege.SELECT)
    foreign = [
        RelationTuple("user:oidc~mallory", "ownership_here", "warehouse:w"),
        RelationTuple("user:%sha256-0", "select_here", "table:orders"),
        RelationTuple("user:a%00b", "select_here", "table:orders"),
        RelationTuple("role:staff#assignee", "assignee", "role:everyone"),
        RelationTuple("server:server", "parent", "project:p"),
        RelationTuple("user:*", "managed_access", "namespace:sales"),
    ]
    client(settings).write(foreign, [])
    assert Privilege.OWNERSHIP in held(openfga, [*SALES[:3]], PrincipalId("oidc~mallory"))
    told = run("openfga", "reconcile", "--dry-run")
    assert "0 are missing in OpenFGA, 6 are there without being in the database" in told.output
    assert "- user:oidc~mallory ownership_here warehouse:w" in told.output
    done = reconcile.reconcile(settings, dry_run=False)
    assert (done.missing, done.surplus) == (0, 6)
    assert len(list(client(settings).tuples())) == 2
    assert held(openfga, [*SALES[:3]], PrincipalId("oidc~mallory")) == frozenset()


def test_reconcile_writes_what_was_lost(openfga: OpenFgaAuthorizer, settings: OpenFgaConfig) -> None:
    give(ORDERS, ALICE, Privilege.SELECT)
    give(ORDERS, BOB, Privilege.SELECT)
    client(settings).write([], [RelationTuple("user:oidc~alice", "select_here", "table:orders")])
    assert held(openfga, ORDERS) == frozenset()
    done = reconcile.reconcile(settings, dry_run=False)
    assert (done.missing, done.surplus, done.examples) == (1, 0, ["+ user:oidc~alice select_here table:orders"])
    assert Privilege.SELECT in held(openfga, ORDERS)


def test_reconcile_applies_what_waits_in_the_log_first(settings: OpenFgaConfig) -> None:
    store.migrate(settings)
    give(ORDERS, ALICE, Privilege.SELECT)
    told = reconcile.reconcile(settings, dry_run=True)
    assert (told.pending, told.missing) == (1, 1)
    done = reconcile.reconcile(settings, dry_run=False)
    assert (done.pending, done.missing, done.surplus) == (1, 0, 0)


def test_a_difference_that_has_ended_meanwhile_is_left_alone(
    openfga: OpenFgaAuthorizer, settings: OpenFgaConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(ORDERS, ALICE, Privilege.SELECT)
    compare = reconcile._compare

    def then_change(*arguments: object) -> None:
        compare(*arguments)  # type: ignore[arg-type]
        Grant.objects.filter(principal_id=BOB).delete()
        give(ORDERS, PrincipalId("oidc~new"), Privilege.SELECT)

    fill_behind_its_back(3)
    give(ORDERS, BOB, Privilege.SELECT)
    client(settings).write([], [RelationTuple("user:oidc~bob", "select_here", "table:orders")])
    monkeypatch.setattr(reconcile, "_compare", then_change)
    done = reconcile.reconcile(settings, dry_run=False)
    assert (done.missing, done.surplus) == (7, 0)
    assert held(openfga, ORDERS, BOB) == frozenset()
    assert Privilege.SELECT in held(openfga, ORDERS, PrincipalId("oidc~new"))


def test_another_backend_leaves_a_store_that_has_to_be_reconciled(settings: OpenFgaConfig) -> None:
    store.migrate(settings)
    schema_version.require_current()
    os.environ["LAKEWARDEN__AUTHORIZATION__BACKEND"] = "database"
    config.current.cache_clear()
    schema_version.require_current()
    assert run("openfga", "reconcile").exit_code == 1
    assert findings() == []
    os.environ["LAKEWARDEN__AUTHORIZATION__BACKEND"] = "openfga"
    config.current.cache_clear()
    with pytest.raises(DatabaseNotReady, match="run `lakewarden openfga reconcile` first"):
        schema_version.require_current()
    assert findings() == [(State.FAIL, "does not have all rights of the database")]


def test_the_doctor_tells_why_it_cannot_be_asked(settings: OpenFgaConfig) -> None:
    store.migrate(settings)
    os.environ["LAKEWARDEN__OPENFGA__API_TOKEN"] = "wrong"
    config.current.cache_clear()
    [(state, sentence)] = findings()
    assert (state, "401" in sentence) == (State.FAIL, True), sentence
    os.environ["LAKEWARDEN__OPENFGA__API_URL"] = "http://127.0.0.1:9"
    config.current.cache_clear()
    [(state, sentence)] = findings()
    assert (state, "not reachable" in sentence) == (State.FAIL, True), sentence


def test_the_doctor_tells_of_changes_left_behind(settings: OpenFgaConfig) -> None:
    store.migrate(settings)
    Change.objects.bulk_create(
        Change(operation="write", principal_id=ALICE, relation="select", object_type="table", object_id=str(each))
        for each in range(1500)
    )
    assert [state for state, _ in findings()] == [State.OK, State.WARN]
    authorizer = OpenFgaAuthorizer(settings)
    assert held(authorizer, ORDERS) == frozenset()
    assert [state for state, _ in findings()] == [State.OK]
    authorizer.close()
