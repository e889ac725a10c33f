"""The ledger and the authorizer that reads it: nested roles, managed access, what lies below, moved objects."""

import pytest

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.database import DatabaseAuthorizer
from lakewarden.authz.interface import ObjectRef, Subject
from lakewarden.authz.ledger import grants, members
from lakewarden.authz.ledger.members import role_principal
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId

pytestmark = pytest.mark.usefixtures("database")

ALICE, ADMIN = PrincipalId("oidc~alice"), PrincipalId("oidc~admin")
ANALYSTS, STAFF, EVERYONE = (role_principal(name) for name in ("analysts", "staff", "everyone"))
PROJECT = [ObjectRef(ObjectType.SERVER, "server"), ObjectRef(ObjectType.PROJECT, "p")]
WAREHOUSE = [*PROJECT, ObjectRef(ObjectType.WAREHOUSE, "w")]
SALES = [*WAREHOUSE, ObjectRef(ObjectType.NAMESPACE, "sales")]
EUROPE = [*SALES, ObjectRef(ObjectType.NAMESPACE, "europe")]
ORDERS = [*EUROPE, ObjectRef(ObjectType.TABLE, "orders")]
ARCHIVE = [*WAREHOUSE, ObjectRef(ObjectType.NAMESPACE, "archive")]
ROLE = [*PROJECT, ObjectRef(ObjectType.ROLE, "analysts")]


def give(chain: list[ObjectRef], principal: PrincipalId, *privileges: Privilege) -> None:
    grants.give(chain, [(principal, privilege) for privilege in privileges], granted_by=ADMIN)


def held(chain: list[ObjectRef], principal: PrincipalId = ALICE, *roles: PrincipalId) -> frozenset[Privilege]:
    return DatabaseAuthorizer().privileges(Subject(principal, roles), chain)


def test_a_right_reaches_what_lies_below_and_shows_what_lies_above() -> None:
    give(EUROPE, ALICE, Privilege.SELECT)
    assert Privilege.SELECT in held(ORDERS)
    for above in (SALES, WAREHOUSE, PROJECT, ROLE):
        assert Privilege.SEE in held(above)
        assert Privilege.SELECT not in held(above)
    assert held(ARCHIVE) == frozenset()


def test_rights_of_nested_roles_count_and_end_with_the_membership() -> None:
    give(WAREHOUSE, EVERYONE, Privilege.WRITE)
    members.add(EVERYONE, [STAFF], project_id="p", added_by=ADMIN)
    members.add(STAFF, [ANALYSTS], project_id="p", added_by=ADMIN)
    members.add(ANALYSTS, [ALICE], project_id="p", added_by=ADMIN)
    assert Privilege.WRITE in held(ORDERS)
    assert Privilege.WRITE in held(ORDERS, PrincipalId("oidc~bob"), STAFF)
    assert members.remove(STAFF, [ANALYSTS]) == 1
    assert held(ORDERS) == frozenset()


def test_below_managed_access_owners_do_not_grant() -> None:
    give(ORDERS, ALICE, Privilege.OWNERSHIP)
    assert Privilege.MANAGE_GRANTS in held(ORDERS)
    assert grants.set_managed(SALES, managed=True, set_by=ADMIN)
    assert not grants.set_managed(SALES, managed=True, set_by=ADMIN)
    assert Privilege.MANAGE_GRANTS not in held(ORDERS)
    assert Privilege.MODIFY in held(ORDERS)
    assert (grants.is_managed(SALES), grants.is_managed(ORDERS)) == ((True, False), (False, True))
    assert grants.on(SALES[-1]) == []
    assert grants.set_managed(SALES, managed=False, set_by=ADMIN)
    assert Privilege.MANAGE_GRANTS in held(ORDERS)


def test_what_moves_is_seen_from_its_new_place_and_from_the_old_no_more() -> None:
    give(ORDERS, ALICE, Privilege.SELECT)
    give(EUROPE, ALICE, Privilege.PASS_GRANTS)
    grants.reparent(EUROPE[-1], before=SALES, after=ARCHIVE)
    assert held(SALES) == frozenset()
    assert Privilege.SEE in held(ARCHIVE)
    moved = [*ARCHIVE, EUROPE[-1]]
    assert held(moved) == {Privilege.PASS_GRANTS, Privilege.SEE}
    assert Privilege.SELECT in held([*moved, ORDERS[-1]])
    grants.forget_object(EUROPE[-1])
    grants.forget_object(ORDERS[-1])
    assert held(ARCHIVE) == frozenset()


def test_a_principal_that_is_gone_leaves_nothing() -> None:
    give(ORDERS, ALICE, Privilege.SELECT)
    members.add(ANALYSTS, [ALICE], project_id="p", added_by=ADMIN)
    assert grants.forget_principal(ALICE) == {"p"}
    assert members.forget_principal(ALICE) == {"p"}
    assert held(ORDERS) == held(PROJECT) == frozenset()
    assert members.all_above([ALICE]) == []


def test_the_graph_of_roles_is_measured_both_ways() -> None:
    members.add(EVERYONE, [STAFF, ALICE], project_id="p", added_by=ADMIN)
    members.add(STAFF, [ANALYSTS], project_id="p", added_by=ADMIN)
    assert (members.height_above(ANALYSTS), members.depth_below(ANALYSTS)) == (3, 1)
    assert (members.height_above(EVERYONE), members.depth_below(EVERYONE)) == (1, 3)
    assert members.all_below(EVERYONE) == sorted([STAFF, ANALYSTS, ALICE])
    assert members.all_above([ANALYSTS]) == sorted([STAFF, EVERYONE])
    assert (members.of_role(EVERYONE, roles=True), members.of_role(EVERYONE, roles=False)) == ([STAFF], [ALICE])
    assert members.of_role(EVERYONE, after=ALICE) == [STAFF]
