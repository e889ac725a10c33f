"""The model as a table: `matrix.txt` shows all consequences of a changed right."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakewarden.authz.actions import ACTIONS, TABULAR_TYPES, Action, ObjectType, UserAction
from lakewarden.authz.model import GRANTABLE, IMPLIES, REQUIRED, Level, Privilege, effective, is_allowed, may_grant

MATRIX = Path(__file__).with_name("matrix.txt")

PATHS = {
    ObjectType.SERVER: (ObjectType.SERVER,),
    ObjectType.PROJECT: (ObjectType.SERVER, ObjectType.PROJECT),
    ObjectType.ROLE: (ObjectType.SERVER, ObjectType.PROJECT, ObjectType.ROLE),
    ObjectType.TAG_DEFINITION: (ObjectType.SERVER, ObjectType.PROJECT, ObjectType.TAG_DEFINITION),
    ObjectType.WAREHOUSE: (ObjectType.SERVER, ObjectType.PROJECT, ObjectType.WAREHOUSE),
    ObjectType.NAMESPACE: (ObjectType.SERVER, ObjectType.PROJECT, ObjectType.WAREHOUSE, ObjectType.NAMESPACE),
    **{
        kind: (ObjectType.SERVER, ObjectType.PROJECT, ObjectType.WAREHOUSE, ObjectType.NAMESPACE, kind)
        for kind in TABULAR_TYPES
    },
}


def held(privilege: Privilege, *, granted_on: ObjectType, on: ObjectType) -> frozenset[Privilege]:
    return effective([Level(kind, {privilege} if kind is granted_on else ()) for kind in PATHS[on]])


def lines() -> Iterator[str]:
    """`<privilege> on <object> may, on <object or what is below>: <actions>`."""
    for granted_on, grantable in GRANTABLE.items():
        for privilege in sorted(grantable):
            for on, path in PATHS.items():
                if granted_on in path:
                    found = held(privilege, granted_on=granted_on, on=on)
                    allowed = sorted(action.value for action in ACTIONS[on] if is_allowed(action, found))
                    yield f"{privilege} on {granted_on} | {on}: {' '.join(allowed) or '-'}"
                    if on is granted_on:
                        grants = sorted(each for each in GRANTABLE[on] if may_grant(each, found, on=on))
                        yield f"{privilege} on {granted_on} | grants: {' '.join(grants) or '-'}"


def test_the_matrix_of_privileges_and_actions_is_as_agreed() -> None:
    """On purpose changed? Then write what `lines()` gives to matrix.txt, and read the difference."""
    assert list(lines()) == MATRIX.read_text().splitlines()


def test_every_action_needs_a_privilege_and_every_kind_of_object_has_implications() -> None:
    every: set[Action] = {action for kind in ACTIONS.values() for action in kind} | set(UserAction)
    assert set(REQUIRED) == every
    assert set(IMPLIES) == set(ObjectType) == set(PATHS)


@pytest.mark.parametrize("kind", ObjectType)
def test_every_privilege_lets_its_holder_see_the_object(kind: ObjectType) -> None:
    if kind is not ObjectType.SERVER:
        for privilege in GRANTABLE[kind]:
            assert Privilege.SEE in held(privilege, granted_on=kind, on=kind)


def test_no_privilege_implies_itself() -> None:
    for kind, implied in IMPLIES.items():
        for privilege, direct in implied.items():
            assert all(privilege not in effective([Level(kind, {other})]) for other in direct)


def test_a_data_admin_modifies_warehouses_but_not_the_project() -> None:
    on = {
        kind: Privilege.MODIFY in held(Privilege.DATA_ADMIN, granted_on=ObjectType.PROJECT, on=kind) for kind in PATHS
    }
    below = {ObjectType.WAREHOUSE, ObjectType.NAMESPACE, *TABULAR_TYPES}
    assert {kind for kind, modifies in on.items() if modifies} == below


def test_an_administrator_of_the_server_sees_projects_roles_and_tags_but_no_data() -> None:
    on = {kind: held(Privilege.ADMIN, granted_on=ObjectType.SERVER, on=kind) for kind in PATHS}
    visible = {kind for kind, privileges in on.items() if Privilege.SEE in privileges}
    assert visible == {ObjectType.PROJECT, ObjectType.ROLE, ObjectType.TAG_DEFINITION}


def test_an_owner_of_a_table_does_not_manage_its_tags_but_a_security_administrator_does() -> None:
    owner = held(Privilege.OWNERSHIP, granted_on=ObjectType.TABLE, on=ObjectType.TABLE)
    security = held(Privilege.SECURITY_ADMIN, granted_on=ObjectType.PROJECT, on=ObjectType.TABLE)
    assert (Privilege.MANAGE_TAGS in owner, Privilege.MANAGE_TAGS in security) == (False, True)


def test_ownership_of_a_warehouse_is_not_ownership_of_what_others_make_in_it() -> None:
    assert Privilege.OWNERSHIP not in held(Privilege.OWNERSHIP, granted_on=ObjectType.WAREHOUSE, on=ObjectType.TABLE)


def test_holding_nothing_is_nothing() -> None:
    assert effective([Level(kind) for kind in PATHS[ObjectType.TABLE]]) == frozenset()


def test_where_access_is_managed_owners_do_not_grant() -> None:
    path = PATHS[ObjectType.TABLE]
    for flagged in (ObjectType.WAREHOUSE, ObjectType.NAMESPACE):
        owner = [Level(k, {Privilege.OWNERSHIP} if k is ObjectType.TABLE else (), managed=k is flagged) for k in path]
        assert Privilege.MODIFY in effective(owner)
        assert Privilege.MANAGE_GRANTS not in effective(owner)
        above = [
            Level(k, {Privilege.OWNERSHIP} if k is ObjectType.WAREHOUSE else (), managed=k is flagged) for k in path
        ]
        assert Privilege.MANAGE_GRANTS in effective(above)


def test_who_may_pass_grants_passes_what_he_holds_and_no_more() -> None:
    select = effective([Level(ObjectType.TABLE, {Privilege.SELECT, Privilege.PASS_GRANTS})])
    passed = {each for each in GRANTABLE[ObjectType.TABLE] if may_grant(each, select, on=ObjectType.TABLE)}
    assert passed == {Privilege.SELECT, Privilege.DESCRIBE}
