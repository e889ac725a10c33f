"""The contract of authorizers: which privileges a principal has, who granted them, where they come from, when they end."""

import pytest

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.allow_all import AllowAllAuthorizer
from lakewarden.authz.interface import Authorizer, ObjectRef, Principal
from lakewarden.authz.ledger import grants, members
from lakewarden.authz.model import GRANTABLE, Level, Privilege, effective
from lakewarden.context import PrincipalId, role_principal
from tests.contracts.world import (
    ADMIN,
    ALICE,
    ANALYSTS,
    ARCHIVE,
    BOB,
    EUROPE,
    EVERYONE,
    IMAGES,
    ORDERS,
    PROJECT,
    REPORT,
    ROLE,
    SALES,
    SERVER,
    STAFF,
    TAG,
    WAREHOUSE,
    give,
    held,
    take,
)

_P = Privilege
DEEPEST = 16
"""Levels of nested namespaces: the most that the catalog allows."""


def test_nobody_holds_anything_before_a_grant(authorizer: Authorizer) -> None:
    for chain in (SERVER, PROJECT, ROLE, TAG, WAREHOUSE, SALES, EUROPE, ORDERS, REPORT, IMAGES):
        assert held(authorizer, chain) == frozenset()


def test_a_right_reaches_what_lies_below_and_shows_what_lies_above(authorizer: Authorizer) -> None:
    give(EUROPE, ALICE, _P.SELECT)
    assert held(authorizer, ORDERS) == {_P.SELECT, _P.DESCRIBE, _P.SEE}
    for above in (SALES, WAREHOUSE, PROJECT):
        assert held(authorizer, above) == {_P.SEE}
    assert held(authorizer, ROLE) == held(authorizer, TAG) == {_P.DESCRIBE, _P.SEE}
    assert held(authorizer, ARCHIVE) == frozenset()
    assert held(authorizer, ORDERS, BOB) == frozenset()


@pytest.mark.parametrize(
    "chain", [SERVER, PROJECT, ROLE, TAG, WAREHOUSE, EUROPE, ORDERS, REPORT, IMAGES], ids=lambda c: c[-1].type
)
def test_each_privilege_implies_what_the_model_says(authorizer: Authorizer, chain: list[ObjectRef]) -> None:
    for number, privilege in enumerate(sorted(GRANTABLE[chain[-1].type])):
        somebody = PrincipalId(f"oidc~{number}")
        give(chain, somebody, privilege)
        above = [Level(ref.type) for ref in chain[:-1]]
        assert held(authorizer, chain, somebody) == effective([*above, Level(chain[-1].type, {privilege})]), privilege


def test_the_right_to_apply_a_tag_is_held_on_that_tag_only(authorizer: Authorizer) -> None:
    give(TAG, ALICE, _P.APPLY)
    other = [*PROJECT, ObjectRef(ObjectType.TAG_DEFINITION, "cost-center")]
    assert held(authorizer, TAG) == {_P.APPLY, _P.DESCRIBE, _P.SEE}
    assert held(authorizer, other) == {_P.DESCRIBE, _P.SEE}
    assert held(authorizer, PROJECT) == {_P.SEE}
    assert held(authorizer, WAREHOUSE) == held(authorizer, TAG, BOB) == frozenset()


def test_the_right_to_manage_tags_reaches_what_lies_below(authorizer: Authorizer) -> None:
    give(SALES, ALICE, _P.MANAGE_TAGS)
    give(PROJECT, BOB, _P.SECURITY_ADMIN)
    assert held(authorizer, ORDERS) == {_P.MANAGE_TAGS, _P.DESCRIBE, _P.SEE}
    assert held(authorizer, ARCHIVE) == frozenset()
    assert _P.MANAGE_TAGS in held(authorizer, ORDERS, BOB)
    assert {_P.APPLY, _P.MANAGE_GRANTS} <= held(authorizer, TAG, BOB)


def test_administrators_of_the_server_see_projects_and_no_data(authorizer: Authorizer) -> None:
    give(SERVER, ALICE, _P.ADMIN)
    assert held(authorizer, SERVER) == {_P.ADMIN}
    assert held(authorizer, PROJECT) == {_P.ADMIN, _P.SEE}
    assert held(authorizer, WAREHOUSE) == frozenset()


def test_operators_do_everything_down_to_the_tables(authorizer: Authorizer) -> None:
    give(SERVER, ALICE, _P.OPERATOR)
    assert {_P.MODIFY, _P.MANAGE_GRANTS, _P.CREATE} <= held(authorizer, ORDERS)
    assert _P.PROJECT_ADMIN in held(authorizer, PROJECT)


def test_a_right_ends_when_it_is_taken(authorizer: Authorizer) -> None:
    give(ORDERS, ALICE, _P.WRITE, _P.PASS_GRANTS)
    assert take(ORDERS, ALICE, _P.WRITE, _P.SELECT) == 1
    assert held(authorizer, ORDERS) == {_P.PASS_GRANTS, _P.SEE}
    give(ORDERS, ALICE, _P.WRITE)
    assert _P.WRITE in held(authorizer, ORDERS)


def test_rights_of_nested_roles_count_and_end_with_the_membership(authorizer: Authorizer) -> None:
    give(WAREHOUSE, EVERYONE, _P.WRITE)
    members.add(EVERYONE, [STAFF], project_id="p", added_by=ADMIN)
    members.add(STAFF, [ANALYSTS], project_id="p", added_by=ADMIN)
    members.add(ANALYSTS, [ALICE], project_id="p", added_by=ADMIN)
    assert _P.WRITE in held(authorizer, ORDERS)
    assert _P.SEE in held(authorizer, PROJECT)
    assert members.remove(STAFF, [ANALYSTS]) == 1
    assert held(authorizer, ORDERS) == held(authorizer, PROJECT) == frozenset()


def test_roles_of_a_token_count_with_the_roles_they_are_in(authorizer: Authorizer) -> None:
    give(WAREHOUSE, EVERYONE, _P.WRITE)
    members.add(EVERYONE, [STAFF], project_id="p", added_by=ADMIN)
    assert _P.WRITE in held(authorizer, ORDERS, BOB, STAFF)
    assert held(authorizer, PROJECT, BOB, STAFF) == {_P.SEE}
    assert held(authorizer, ORDERS, BOB, ANALYSTS) == frozenset()


def test_a_token_may_have_more_roles_than_fit_in_one_question(authorizer: Authorizer) -> None:
    roles = [role_principal(f"group-{number}") for number in range(250)]
    give(ORDERS, roles[-1], _P.SELECT)
    give(SALES, roles[0], _P.CREATE)
    assert held(authorizer, ORDERS, BOB, *roles) >= {_P.SELECT, _P.CREATE}
    assert held(authorizer, WAREHOUSE, BOB, roles[-1], *roles[:120]) == {_P.SEE}


def test_the_principals_of_somebody_are_all_roles_that_he_has(authorizer: Authorizer) -> None:
    def principals(principal: PrincipalId, *roles: PrincipalId) -> set[PrincipalId]:
        return set(authorizer.principals(Principal(principal, roles)))

    members.add(EVERYONE, [STAFF, BOB], project_id="p", added_by=ADMIN)
    members.add(STAFF, [ANALYSTS, ALICE], project_id="p", added_by=ADMIN)
    assert principals(ALICE) == {ALICE, STAFF, EVERYONE}
    assert principals(BOB, ANALYSTS) == {BOB, ANALYSTS, STAFF, EVERYONE}
    assert principals(ANALYSTS) == {ANALYSTS, STAFF, EVERYONE}
    assert principals(ADMIN) == {ADMIN}
    many = [role_principal(f"group-{number}") for number in range(250)]
    members.add(EVERYONE, many[200:], project_id="p", added_by=ADMIN)
    assert principals(ADMIN, *many) == {ADMIN, EVERYONE, *many}
    members.remove(EVERYONE, [STAFF])
    assert principals(ALICE) == {ALICE, STAFF}


def test_an_assumed_role_has_its_own_rights_and_those_it_is_in(authorizer: Authorizer) -> None:
    give(SALES, STAFF, _P.SELECT)
    give(ORDERS, ANALYSTS, _P.OWNERSHIP)
    members.add(STAFF, [ANALYSTS], project_id="p", added_by=ADMIN)
    grants.set_managed(SALES, managed=True, set_by=ADMIN)
    assert _P.MANAGE_GRANTS not in held(authorizer, ORDERS, ANALYSTS)
    assert {_P.OWNERSHIP, _P.SELECT} <= held(authorizer, ORDERS, ANALYSTS)
    assert held(authorizer, SALES, STAFF) == {_P.SELECT, _P.DESCRIBE, _P.SEE}
    assert held(authorizer, PROJECT, ANALYSTS) == {_P.SEE}


def test_below_managed_access_owners_do_not_grant(authorizer: Authorizer) -> None:
    give(ORDERS, ALICE, _P.OWNERSHIP)
    assert _P.MANAGE_GRANTS in held(authorizer, ORDERS)
    assert grants.set_managed(SALES, managed=True, set_by=ADMIN)
    assert not grants.set_managed(SALES, managed=True, set_by=ADMIN)
    assert _P.MANAGE_GRANTS not in held(authorizer, ORDERS)
    assert _P.MODIFY in held(authorizer, ORDERS)
    assert (grants.is_managed(SALES), grants.is_managed(ORDERS)) == ((True, False), (False, True))
    assert grants.on(SALES[-1]) == []
    assert grants.set_managed(SALES, managed=False, set_by=ADMIN)
    assert not grants.set_managed(SALES, managed=False, set_by=ADMIN)
    assert _P.MANAGE_GRANTS in held(authorizer, ORDERS)


def test_managed_access_leaves_owners_above_it_alone(authorizer: Authorizer) -> None:
    give(SALES, ALICE, _P.OWNERSHIP)
    give(WAREHOUSE, BOB, _P.OWNERSHIP)
    grants.set_managed(EUROPE, managed=True, set_by=ADMIN)
    assert _P.MANAGE_GRANTS in held(authorizer, ORDERS)
    grants.set_managed(WAREHOUSE, managed=True, set_by=ADMIN)
    assert _P.MANAGE_GRANTS not in held(authorizer, ORDERS)
    assert _P.MANAGE_GRANTS in held(authorizer, ORDERS, BOB)


def test_what_moves_is_seen_from_its_new_place_and_from_the_old_no_more(authorizer: Authorizer) -> None:
    give(SALES, BOB, _P.SELECT)
    give(ORDERS, ALICE, _P.SELECT)
    give(EUROPE, ALICE, _P.PASS_GRANTS)
    assert _P.SELECT in held(authorizer, ORDERS, BOB)
    grants.reparent(EUROPE[-1], before=SALES, after=ARCHIVE)
    assert held(authorizer, SALES) == frozenset()
    assert held(authorizer, ARCHIVE) == {_P.SEE}
    moved = [*ARCHIVE, EUROPE[-1]]
    assert held(authorizer, moved) == {_P.PASS_GRANTS, _P.SEE}
    assert _P.SELECT in held(authorizer, [*moved, ORDERS[-1]])
    assert held(authorizer, [*moved, ORDERS[-1]], BOB) == frozenset()
    grants.forget_object(EUROPE[-1])
    grants.forget_object(ORDERS[-1])
    assert held(authorizer, ARCHIVE) == held(authorizer, [*moved, ORDERS[-1]]) == frozenset()


def test_a_principal_that_is_gone_leaves_nothing(authorizer: Authorizer) -> None:
    give(ORDERS, ALICE, _P.SELECT)
    give(SERVER, ALICE, _P.ADMIN)
    members.add(ANALYSTS, [ALICE], project_id="p", added_by=ADMIN)
    give(SALES, ANALYSTS, _P.DESCRIBE)
    grants.forget_principal(ALICE)
    members.forget_principal(ALICE)
    for chain in (ORDERS, SALES, PROJECT, SERVER):
        assert held(authorizer, chain) == frozenset()
    assert members.all_above([ALICE]) == []


def test_a_role_that_is_gone_leaves_nothing(authorizer: Authorizer) -> None:
    give(ORDERS, STAFF, _P.SELECT)
    give([*PROJECT, ObjectRef(ObjectType.ROLE, "staff")], BOB, _P.OWNERSHIP)
    members.add(STAFF, [ANALYSTS, ALICE], project_id="p", added_by=ADMIN)
    members.add(EVERYONE, [STAFF], project_id="p", added_by=ADMIN)
    grants.forget_object(ObjectRef(ObjectType.ROLE, "staff"))
    grants.forget_principal(STAFF)
    members.forget_principal(STAFF)
    members.add(STAFF, [BOB], project_id="p", added_by=ADMIN)
    assert held(authorizer, ORDERS) == held(authorizer, ORDERS, BOB) == held(authorizer, ORDERS, STAFF) == frozenset()


def test_a_project_that_is_gone_leaves_nothing(authorizer: Authorizer) -> None:
    other = [*SERVER, ObjectRef(ObjectType.PROJECT, "q")]
    give(PROJECT, ALICE, _P.PROJECT_ADMIN)
    give(ORDERS, BOB, _P.SELECT)
    give(other, ALICE, _P.DESCRIBE)
    members.add(STAFF, [BOB], project_id="p", added_by=ADMIN)
    grants.forget_project("p")
    members.forget_project("p")
    assert held(authorizer, PROJECT) == held(authorizer, ORDERS, BOB) == frozenset()
    assert members.all_above([BOB]) == []
    assert _P.DESCRIBE in held(authorizer, other)


def test_ids_of_any_characters_are_told_apart(authorizer: Authorizer) -> None:
    names = [
        "a b",
        "a%20b",
        "a+b",
        "a:b",
        "a#b",
        "a@b",
        "*",
        "é😀",
        "role:staff",
        "x\ty",
        "~",
        ".",
        "ß" * 250,
        "ß" * 251,
    ]
    for number, name in enumerate(names):
        table = [*EUROPE, ObjectRef(ObjectType.TABLE, f"{name[:20]}-{number}")]
        give(table, PrincipalId(f"oidc~{name}"), _P.SELECT)
        for other in names:
            expected = {_P.SELECT, _P.DESCRIBE, _P.SEE} if other == name else set()
            assert held(authorizer, table, PrincipalId(f"oidc~{other}")) == expected, (name, other)


@pytest.mark.parametrize("principal", ["", "*", "role:"])
def test_names_of_nobody_hold_nothing(authorizer: Authorizer, principal: str) -> None:
    give(ORDERS, ALICE, _P.SELECT)
    assert held(authorizer, ORDERS, PrincipalId(principal)) == frozenset()


def test_the_deepest_chain_passes_rights_on(authorizer: Authorizer) -> None:
    chain = [*WAREHOUSE, *(ObjectRef(ObjectType.NAMESPACE, f"level-{number}") for number in range(DEEPEST))]
    table = [*chain, ObjectRef(ObjectType.TABLE, "deep")]
    give(SERVER, ADMIN, _P.OPERATOR)
    give(WAREHOUSE, ALICE, _P.OWNERSHIP)
    give(chain[:4], BOB, _P.OWNERSHIP)
    grants.set_managed(chain, managed=True, set_by=ADMIN)
    assert {_P.MODIFY, _P.MANAGE_GRANTS} <= held(authorizer, table, ADMIN)
    assert {_P.MODIFY, _P.CREATE, _P.MANAGE_GRANTS} <= held(authorizer, table)
    assert _P.MANAGE_GRANTS in held(authorizer, table, BOB)
    assert held(authorizer, table, PrincipalId("oidc~carol")) == frozenset()
    assert held(authorizer, chain[:4], PrincipalId("oidc~carol"), STAFF) == frozenset()
    give(table, STAFF, _P.DESCRIBE)
    assert held(authorizer, chain[:4], PrincipalId("oidc~carol"), STAFF) == {_P.SEE}


def test_many_objects_side_by_side_cost_their_parents_nothing(authorizer: Authorizer) -> None:
    for number in range(150):
        namespace = [*WAREHOUSE, ObjectRef(ObjectType.NAMESPACE, f"n{number}")]
        give(namespace, ALICE if number == 149 else BOB, _P.SELECT)
    assert held(authorizer, WAREHOUSE) == {_P.SEE}
    assert held(authorizer, [*WAREHOUSE, ObjectRef(ObjectType.NAMESPACE, "n149")]) == {_P.SELECT, _P.DESCRIBE, _P.SEE}
    assert held(authorizer, [*WAREHOUSE, ObjectRef(ObjectType.NAMESPACE, "n1")]) == frozenset()


def test_projects_do_not_share_rights(authorizer: Authorizer) -> None:
    give(PROJECT, ALICE, _P.PROJECT_ADMIN)
    other = [*SERVER, ObjectRef(ObjectType.PROJECT, "q")]
    assert held(authorizer, other) == frozenset()
    assert held(authorizer, [*other, ObjectRef(ObjectType.WAREHOUSE, "w2")]) == frozenset()


def test_allow_all_lets_everybody_do_everything() -> None:
    authorizer = AllowAllAuthorizer()
    for chain in (SERVER, PROJECT, ORDERS):
        assert held(authorizer, chain) == frozenset(Privilege)
    assert set(authorizer.principals(Principal(ALICE, (STAFF,)))) == {ALICE, STAFF}
