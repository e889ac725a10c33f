"""The ledger itself: the graph of roles, and the log of changes that only an outside authorizer has."""

import pytest
from django.db import transaction

from lakewarden.authz.ledger import grants, members
from lakewarden.authz.ledger.models import Change
from lakewarden.authz.model import Privilege
from tests.contracts.world import ADMIN, ALICE, ANALYSTS, BOB, EVERYONE, ORDERS, SALES, STAFF, give, take

logged = pytest.mark.usefixtures("settings")


def log() -> list[str]:
    return [str(each) for each in Change.objects.order_by("sequence")]


@pytest.mark.usefixtures("database")
def test_the_graph_of_roles_is_measured_both_ways() -> None:
    members.add(EVERYONE, [STAFF, ALICE], project_id="p", added_by=ADMIN)
    members.add(STAFF, [ANALYSTS], project_id="p", added_by=ADMIN)
    assert (members.height_above(ANALYSTS), members.depth_below(ANALYSTS)) == (3, 1)
    assert (members.height_above(EVERYONE), members.depth_below(EVERYONE)) == (1, 3)
    assert members.all_below(EVERYONE) == sorted([STAFF, ANALYSTS, ALICE])
    assert members.all_above([ANALYSTS]) == sorted([STAFF, EVERYONE])
    assert (members.of_role(EVERYONE, roles=True), members.of_role(EVERYONE, roles=False)) == ([STAFF], [ALICE])
    assert members.of_role(EVERYONE, after=ALICE) == [STAFF]


@pytest.mark.usefixtures("database")
def test_nothing_is_logged_where_the_database_decides() -> None:
    give(ORDERS, ALICE, Privilege.SELECT)
    members.add(STAFF, [ALICE], project_id="p", added_by=ADMIN)
    grants.forget_project("p")
    assert log() == []


@logged
def test_only_what_changed_is_logged_and_in_order() -> None:
    give(ORDERS, ALICE, Privilege.SELECT)
    give(ORDERS, ALICE, Privilege.SELECT, Privilege.WRITE)
    take(ORDERS, ALICE, Privilege.SELECT, Privilege.MODIFY)
    members.add(STAFF, [ALICE], project_id="p", added_by=ADMIN)
    members.add(STAFF, [ALICE, ANALYSTS], project_id="p", added_by=ADMIN)
    members.remove(STAFF, [ALICE, BOB])
    grants.set_managed(SALES, managed=True, set_by=ADMIN)
    grants.reparent(SALES[-1], before=SALES[:3], after=SALES[:3])
    grants.set_managed(SALES, managed=False, set_by=ADMIN)
    assert log() == [
        "write oidc~alice select on table orders",
        "write oidc~alice write on table orders",
        "delete oidc~alice select on table orders",
        "write oidc~alice assignee on role staff",
        "write role:analysts assignee on role staff",
        "delete oidc~alice assignee on role staff",
        "write * managed_access on namespace sales",
        "delete * managed_access on namespace sales",
    ]


@logged
def test_what_is_forgotten_is_logged_row_by_row() -> None:
    give(ORDERS, ALICE, Privilege.SELECT)
    give(ORDERS, STAFF, Privilege.SELECT)
    members.add(STAFF, [ALICE, BOB], project_id="p", added_by=ADMIN)
    Change.objects.all().delete()
    grants.forget_object(ORDERS[-1])
    members.forget_principal(STAFF)
    assert sorted(log()) == [
        "delete oidc~alice assignee on role staff",
        "delete oidc~alice select on table orders",
        "delete oidc~bob assignee on role staff",
        "delete role:staff select on table orders",
    ]


@logged
def test_what_is_rolled_back_is_not_logged() -> None:
    with transaction.atomic():
        give(ORDERS, ALICE, Privilege.SELECT)
        transaction.set_rollback(True)
    assert log() == []
    assert grants.on(ORDERS[-1]) == []
