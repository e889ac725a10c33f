"""The authorization model as data: which privilege implies which, and what each action needs.

Privileges are granted on an object and hold on everything below it. Pure; every backend and the reference page use it.
"""

from collections.abc import Iterable
from enum import StrEnum

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


class Privilege(StrEnum):
    ADMIN = "admin"
    OPERATOR = "operator"
    PROJECT_ADMIN = "project_admin"
    SECURITY_ADMIN = "security_admin"
    DATA_ADMIN = "data_admin"
    OWNERSHIP = "ownership"
    MANAGE_GRANTS = "manage_grants"
    MODIFY = "modify"
    WRITE = "write"
    CREATE = "create"
    SELECT = "select"
    DESCRIBE = "describe"


_P = Privilege

IMPLIES: dict[Privilege, frozenset[Privilege]] = {
    _P.ADMIN: frozenset({_P.OPERATOR}),
    _P.OPERATOR: frozenset({_P.PROJECT_ADMIN}),
    _P.PROJECT_ADMIN: frozenset({_P.SECURITY_ADMIN, _P.DATA_ADMIN, _P.MODIFY}),
    _P.SECURITY_ADMIN: frozenset({_P.MANAGE_GRANTS}),
    _P.DATA_ADMIN: frozenset({_P.CREATE}),
    _P.OWNERSHIP: frozenset({_P.MANAGE_GRANTS, _P.MODIFY, _P.CREATE}),
    _P.MANAGE_GRANTS: frozenset({_P.DESCRIBE}),
    _P.MODIFY: frozenset({_P.WRITE}),
    _P.WRITE: frozenset({_P.SELECT}),
    _P.CREATE: frozenset({_P.DESCRIBE}),
    _P.SELECT: frozenset({_P.DESCRIBE}),
    _P.DESCRIBE: frozenset(),
}
"""Direct implications. A data admin also holds `modify` on warehouses and all below, not on the project itself."""

GRANTABLE: dict[ObjectType, frozenset[Privilege]] = {
    ObjectType.SERVER: frozenset({_P.ADMIN, _P.OPERATOR}),
    ObjectType.PROJECT: frozenset(
        {
            _P.PROJECT_ADMIN,
            _P.SECURITY_ADMIN,
            _P.DATA_ADMIN,
            _P.MODIFY,
            _P.WRITE,
            _P.CREATE,
            _P.SELECT,
            _P.DESCRIBE,
        }
    ),
    ObjectType.WAREHOUSE: frozenset(
        {_P.OWNERSHIP, _P.MANAGE_GRANTS, _P.MODIFY, _P.WRITE, _P.CREATE, _P.SELECT, _P.DESCRIBE}
    ),
}

REQUIRED: dict[Action, Privilege] = {
    ServerAction.CREATE_PROJECT: _P.OPERATOR,
    ServerAction.LIST_USERS: _P.OPERATOR,
    ProjectAction.GET_METADATA: _P.DESCRIBE,
    ProjectAction.CREATE_WAREHOUSE: _P.CREATE,
    ProjectAction.LIST_WAREHOUSES: _P.DESCRIBE,
    WarehouseAction.GET_METADATA: _P.DESCRIBE,
    WarehouseAction.GET_CONFIG: _P.DESCRIBE,
    WarehouseAction.USE: _P.DESCRIBE,
    WarehouseAction.CREATE_NAMESPACE: _P.CREATE,
    WarehouseAction.LIST_NAMESPACES: _P.DESCRIBE,
    WarehouseAction.READ_GRANTS: _P.MANAGE_GRANTS,
    WarehouseAction.MANAGE_GRANTS: _P.MANAGE_GRANTS,
    NamespaceAction.GET_METADATA: _P.DESCRIBE,
    NamespaceAction.CREATE_NAMESPACE: _P.CREATE,
    NamespaceAction.CREATE_TABLE: _P.CREATE,
    NamespaceAction.CREATE_VIEW: _P.CREATE,
    NamespaceAction.UPDATE_PROPERTIES: _P.MODIFY,
    NamespaceAction.DELETE: _P.MODIFY,
    NamespaceAction.LIST_NAMESPACES: _P.DESCRIBE,
    NamespaceAction.LIST_TABLES: _P.DESCRIBE,
    NamespaceAction.LIST_VIEWS: _P.DESCRIBE,
    TableAction.GET_METADATA: _P.DESCRIBE,
    TableAction.READ_DATA: _P.SELECT,
    TableAction.WRITE_DATA: _P.WRITE,
    TableAction.COMMIT: _P.WRITE,
    TableAction.DROP: _P.MODIFY,
    TableAction.RENAME: _P.MODIFY,
    ViewAction.GET_METADATA: _P.DESCRIBE,
    ViewAction.COMMIT: _P.MODIFY,
    ViewAction.DROP: _P.MODIFY,
    ViewAction.RENAME: _P.MODIFY,
}


def required(action: Action) -> Privilege:
    return REQUIRED[action]


def closure(held: Iterable[Privilege], *, on: ObjectType) -> frozenset[Privilege]:
    """All privileges that `held` amounts to on an object of type `on`."""
    reached: set[Privilege] = set()
    waiting = list(held)
    while waiting:
        privilege = waiting.pop()
        if privilege in reached:
            continue
        reached.add(privilege)
        waiting.extend(IMPLIES[privilege])
        if privilege is Privilege.DATA_ADMIN and on not in {ObjectType.SERVER, ObjectType.PROJECT}:
            waiting.append(Privilege.MODIFY)
    return frozenset(reached)
