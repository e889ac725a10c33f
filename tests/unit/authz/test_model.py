"""The model as a table: who changes a right sees here what follows from it."""

from collections import defaultdict

import pytest

from lakewarden.authz.actions import (
    Action,
    NamespaceAction,
    ObjectType,
    ProjectAction,
    ServerAction,
    TableAction,
    ViewAction,
    WarehouseAction,
)
from lakewarden.authz.model import GRANTABLE, IMPLIES, REQUIRED, Privilege, closure, required

TYPE_OF: dict[type[Action], ObjectType] = {
    ServerAction: ObjectType.SERVER,
    ProjectAction: ObjectType.PROJECT,
    WarehouseAction: ObjectType.WAREHOUSE,
    NamespaceAction: ObjectType.NAMESPACE,
    TableAction: ObjectType.TABLE,
    ViewAction: ObjectType.VIEW,
}

ON_A_TABLE = {
    "admin": "commit drop get_metadata read_data rename write_data",
    "operator": "commit drop get_metadata read_data rename write_data",
    "project_admin": "commit drop get_metadata read_data rename write_data",
    "security_admin": "get_metadata",
    "data_admin": "commit drop get_metadata read_data rename write_data",
    "ownership": "commit drop get_metadata read_data rename write_data",
    "manage_grants": "get_metadata",
    "modify": "commit drop get_metadata read_data rename write_data",
    "write": "commit get_metadata read_data write_data",
    "create": "get_metadata",
    "select": "get_metadata read_data",
    "describe": "get_metadata",
}
ON_A_NAMESPACE = {
    "security_admin": "get_metadata list_namespaces list_tables list_views",
    "data_admin": "create_namespace create_table create_view delete get_metadata list_namespaces list_tables list_views update_properties",
    "ownership": "create_namespace create_table create_view delete get_metadata list_namespaces list_tables list_views update_properties",
    "modify": "delete get_metadata list_namespaces list_tables list_views update_properties",
    "create": "create_namespace create_table create_view get_metadata list_namespaces list_tables list_views",
    "describe": "get_metadata list_namespaces list_tables list_views",
}


def allowed(privilege: Privilege, on: ObjectType) -> str:
    held = closure([privilege], on=on)
    actions = (action for action in REQUIRED if TYPE_OF[type(action)] is on)
    return " ".join(sorted(action.value for action in actions if required(action) in held))


def test_what_each_privilege_allows_on_a_table() -> None:
    assert {each.value: allowed(each, ObjectType.TABLE) for each in Privilege} == ON_A_TABLE


@pytest.mark.parametrize(("privilege", "actions"), ON_A_NAMESPACE.items())
def test_what_a_privilege_allows_on_a_namespace(privilege: str, actions: str) -> None:
    assert allowed(Privilege(privilege), ObjectType.NAMESPACE) == actions


def test_every_action_needs_a_privilege_and_every_privilege_is_explained() -> None:
    assert set(REQUIRED) == {action for kind in TYPE_OF for action in kind}
    assert set(IMPLIES) == set(Privilege)


def test_every_privilege_lets_its_holder_see_the_object() -> None:
    for privilege in Privilege:
        assert Privilege.DESCRIBE in closure([privilege], on=ObjectType.TABLE)


def test_no_privilege_implies_itself() -> None:
    for privilege in Privilege:
        above = [other for other in IMPLIES[privilege] if privilege in closure([other], on=ObjectType.TABLE)]
        assert above == []


def test_a_data_admin_modifies_warehouses_but_not_the_project() -> None:
    on = {kind: Privilege.MODIFY in closure([Privilege.DATA_ADMIN], on=kind) for kind in ObjectType}
    assert on == defaultdict(lambda: True, on) | {ObjectType.SERVER: False, ObjectType.PROJECT: False}
    assert on[ObjectType.WAREHOUSE]


def test_nobody_grants_what_the_object_does_not_know() -> None:
    assert Privilege.ADMIN not in GRANTABLE[ObjectType.WAREHOUSE] | GRANTABLE[ObjectType.PROJECT]
    assert Privilege.OWNERSHIP not in GRANTABLE[ObjectType.PROJECT]


def test_holding_nothing_is_nothing() -> None:
    assert closure([], on=ObjectType.TABLE) == frozenset()
