"""The authorization model as data: what privileges imply, what children inherit, what each action needs.

No I/O. All backends use it, and the reference of permissions is generated from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakewarden.authz.actions import (
    TABULAR_TYPES,
    Action,
    GenericTableAction,
    NamespaceAction,
    ObjectType,
    ProjectAction,
    RoleAction,
    ServerAction,
    TableAction,
    TagAction,
    UserAction,
    ViewAction,
    WarehouseAction,
)


class Privilege(StrEnum):
    ADMIN = "admin"
    OPERATOR = "operator"
    PROJECT_ADMIN = "project_admin"
    SECURITY_ADMIN = "security_admin"
    DATA_ADMIN = "data_admin"
    ROLE_CREATOR = "role_creator"
    TAG_CREATOR = "tag_creator"
    OWNERSHIP = "ownership"
    MANAGE_GRANTS = "manage_grants"
    MANAGE_TAGS = "manage_tags"
    APPLY = "apply"
    MODIFY = "modify"
    WRITE = "write"
    CREATE = "create"
    SELECT = "select"
    DESCRIBE = "describe"
    PASS_GRANTS = "pass_grants"  # noqa: S105 no password
    SEE = "see"  # never granted itself: follows from any privilege on the object or on something inside it


_P, _T = Privilege, ObjectType
_DATA = {
    _P.MODIFY: {_P.WRITE},
    _P.WRITE: {_P.SELECT},
    _P.SELECT: {_P.DESCRIBE},
    _P.CREATE: {_P.DESCRIBE},
    _P.MANAGE_GRANTS: {_P.DESCRIBE},
    _P.DESCRIBE: {_P.SEE},
}
_OWNED = {
    **_DATA,
    _P.OWNERSHIP: {_P.MANAGE_GRANTS, _P.MODIFY, _P.CREATE},
    _P.PASS_GRANTS: {_P.SEE},
    _P.MANAGE_TAGS: {_P.DESCRIBE},
}

IMPLIES: dict[ObjectType, Mapping[Privilege, set[Privilege]]] = {
    _T.SERVER: {},
    _T.PROJECT: {
        **_DATA,
        _P.PROJECT_ADMIN: {_P.SECURITY_ADMIN, _P.DATA_ADMIN, _P.MODIFY},
        _P.SECURITY_ADMIN: {_P.ROLE_CREATOR, _P.TAG_CREATOR, _P.MANAGE_GRANTS, _P.MANAGE_TAGS},
        _P.DATA_ADMIN: {_P.CREATE},
        _P.ROLE_CREATOR: {_P.SEE},
        _P.TAG_CREATOR: {_P.SEE},
        _P.MANAGE_TAGS: {_P.DESCRIBE},
        _P.ADMIN: {_P.SEE},
    },
    _T.ROLE: {_P.OWNERSHIP: {_P.MANAGE_GRANTS}, _P.MANAGE_GRANTS: {_P.DESCRIBE}, _P.DESCRIBE: {_P.SEE}},
    _T.TAG_DEFINITION: {
        _P.OWNERSHIP: {_P.MANAGE_GRANTS},
        _P.MANAGE_GRANTS: {_P.APPLY},
        _P.APPLY: {_P.DESCRIBE},
        _P.DESCRIBE: {_P.SEE},
    },
    _T.WAREHOUSE: _OWNED,
    _T.NAMESPACE: _OWNED,
    **dict.fromkeys(TABULAR_TYPES, _OWNED),
}
"""The privileges that another one directly implies on the same object."""

_SAME = {privilege: privilege for privilege in (_P.MODIFY, _P.WRITE, _P.CREATE, _P.SELECT, _P.DESCRIBE)}

_GOVERNED = {privilege: privilege for privilege in (_P.MANAGE_GRANTS, _P.MANAGE_TAGS)}

INHERITED: dict[ObjectType, Mapping[Privilege, Privilege]] = {
    # administrators of the server manage projects and see their roles and tags, but must not see warehouses and data
    _T.PROJECT: {_P.OPERATOR: _P.PROJECT_ADMIN, _P.ADMIN: _P.ADMIN},
    _T.ROLE: {_P.SECURITY_ADMIN: _P.MANAGE_GRANTS, _P.SEE: _P.DESCRIBE},
    _T.TAG_DEFINITION: {_P.SECURITY_ADMIN: _P.MANAGE_GRANTS, _P.SEE: _P.DESCRIBE},
    _T.WAREHOUSE: {
        **_SAME,
        _P.MANAGE_TAGS: _P.MANAGE_TAGS,
        _P.SECURITY_ADMIN: _P.MANAGE_GRANTS,
        _P.DATA_ADMIN: _P.MODIFY,
    },
    _T.NAMESPACE: {**_SAME, **_GOVERNED},
    **{kind: {**_SAME, **_GOVERNED} for kind in TABULAR_TYPES},
}
"""The privilege on a child of this type that a privilege on its parent gives."""

_BELOW_PROJECT = frozenset(
    {
        _P.OWNERSHIP,
        _P.PASS_GRANTS,
        _P.MANAGE_GRANTS,
        _P.MANAGE_TAGS,
        _P.MODIFY,
        _P.WRITE,
        _P.CREATE,
        _P.SELECT,
        _P.DESCRIBE,
    }
)

GRANTABLE: dict[ObjectType, frozenset[Privilege]] = {
    _T.SERVER: frozenset({_P.ADMIN, _P.OPERATOR}),
    _T.PROJECT: frozenset(
        {
            _P.PROJECT_ADMIN,
            _P.SECURITY_ADMIN,
            _P.DATA_ADMIN,
            _P.ROLE_CREATOR,
            _P.TAG_CREATOR,
            _P.MANAGE_TAGS,
            _P.MODIFY,
            _P.WRITE,
            _P.CREATE,
            _P.SELECT,
            _P.DESCRIBE,
        }
    ),
    _T.ROLE: frozenset({_P.OWNERSHIP}),
    _T.TAG_DEFINITION: frozenset({_P.OWNERSHIP, _P.APPLY}),
    _T.WAREHOUSE: _BELOW_PROJECT,
    _T.NAMESPACE: _BELOW_PROJECT,
    _T.TABLE: _BELOW_PROJECT - {_P.CREATE},
    _T.VIEW: _BELOW_PROJECT - {_P.CREATE, _P.WRITE},
    _T.GENERIC_TABLE: _BELOW_PROJECT - {_P.CREATE},
}


@dataclass(frozen=True, slots=True)
class Description:
    """A privilege's meaning, and its category: metadata, read, write, create, security or administration."""

    category: str
    text: str


DESCRIPTIONS: dict[Privilege, Description] = {
    _P.ADMIN: Description("administration", "Manages the server, its users and its projects, but sees no data."),
    _P.OPERATOR: Description("administration", "Does everything everywhere: for trusted automation."),
    _P.PROJECT_ADMIN: Description("administration", "Does everything in the project."),
    _P.SECURITY_ADMIN: Description("security", "Manages roles and grants in the project."),
    _P.DATA_ADMIN: Description("administration", "Manages all warehouses and data of the project, not its roles."),
    _P.ROLE_CREATOR: Description("security", "Creates roles."),
    _P.TAG_CREATOR: Description("security", "Creates tag definitions."),
    _P.OWNERSHIP: Description("security", "Does everything with the object, and grants rights on it."),
    _P.PASS_GRANTS: Description("security", "Grants to others the rights that the holder has on the object."),
    _P.MANAGE_GRANTS: Description("security", "Grants and revokes every right on the object and what is in it."),
    _P.MANAGE_TAGS: Description("security", "Sets and removes tags on the object and on what is in it."),
    _P.APPLY: Description("security", "Sets and removes this tag on objects on which the holder may manage tags."),
    _P.MODIFY: Description("write", "Changes, renames and drops the object and what is in it, and writes data."),
    _P.WRITE: Description("write", "Writes data: commits to tables, without altering or dropping anything else."),
    _P.CREATE: Description("create", "Creates objects in it."),
    _P.SELECT: Description("read", "Reads data."),
    _P.DESCRIBE: Description("metadata", "Sees the object, its metadata and what is in it."),
}

_ADMINISTRATION = frozenset({_P.ADMIN, _P.OPERATOR})
_ROLE_CONTROL = frozenset({_P.OWNERSHIP, _P.MANAGE_GRANTS})
_NEEDS: dict[Privilege, tuple[Action, ...]] = {
    _P.SEE: (
        ProjectAction.GET_METADATA,
        ProjectAction.INCLUDE_IN_LIST,
        ProjectAction.LIST_WAREHOUSES,
        ProjectAction.LIST_ROLES,
        ProjectAction.SEARCH_ROLES,
        ProjectAction.LIST_TAGS,
        RoleAction.READ_METADATA,
        WarehouseAction.GET_METADATA,
        WarehouseAction.GET_CONFIG,
        WarehouseAction.INCLUDE_IN_LIST,
        WarehouseAction.USE,
        WarehouseAction.LIST_NAMESPACES,
        NamespaceAction.GET_METADATA,
        NamespaceAction.INCLUDE_IN_LIST,
        NamespaceAction.LIST_NAMESPACES,
        NamespaceAction.LIST_TABLES,
        NamespaceAction.LIST_VIEWS,
        NamespaceAction.LIST_GENERIC_TABLES,
    ),
    _P.DESCRIBE: (
        ProjectAction.GET_ENDPOINT_STATISTICS,
        ProjectAction.GET_TASK_QUEUE_CONFIG,
        ProjectAction.GET_TASKS,
        RoleAction.READ,
        RoleAction.READ_ASSIGNMENTS,
        TagAction.READ,
        WarehouseAction.LIST_EVERYTHING,
        WarehouseAction.LIST_DELETED_TABULARS,
        WarehouseAction.GET_ENDPOINT_STATISTICS,
        WarehouseAction.GET_TASK_QUEUE_CONFIG,
        WarehouseAction.GET_ALL_TASKS,
        NamespaceAction.LIST_EVERYTHING,
        TableAction.GET_METADATA,
        TableAction.INCLUDE_IN_LIST,
        TableAction.GET_TASKS,
        ViewAction.GET_METADATA,
        ViewAction.INCLUDE_IN_LIST,
        ViewAction.GET_TASKS,
        GenericTableAction.GET_METADATA,
        GenericTableAction.INCLUDE_IN_LIST,
        GenericTableAction.GET_TASKS,
    ),
    _P.SELECT: (TableAction.READ_DATA, ViewAction.SELECT, GenericTableAction.READ_DATA),
    _P.WRITE: (TableAction.WRITE_DATA, TableAction.COMMIT, GenericTableAction.WRITE_DATA),
    _P.CREATE: (
        ProjectAction.CREATE_WAREHOUSE,
        WarehouseAction.CREATE_NAMESPACE,
        NamespaceAction.CREATE_NAMESPACE,
        NamespaceAction.CREATE_TABLE,
        NamespaceAction.CREATE_VIEW,
        NamespaceAction.CREATE_GENERIC_TABLE,
    ),
    _P.MODIFY: (
        ProjectAction.MODIFY_TASK_QUEUE_CONFIG,
        ProjectAction.CONTROL_TASKS,
        WarehouseAction.RENAME,
        WarehouseAction.DELETE,
        WarehouseAction.ACTIVATE,
        WarehouseAction.DEACTIVATE,
        WarehouseAction.UPDATE_STORAGE,
        WarehouseAction.UPDATE_STORAGE_CREDENTIAL,
        WarehouseAction.SET_PROTECTION,
        WarehouseAction.SET_FORMAT_VERSION_POLICY,
        WarehouseAction.MODIFY_SOFT_DELETION,
        WarehouseAction.MODIFY_TASK_QUEUE_CONFIG,
        WarehouseAction.CONTROL_ALL_TASKS,
        NamespaceAction.UPDATE_PROPERTIES,
        NamespaceAction.SET_PROTECTION,
        NamespaceAction.DELETE,
        NamespaceAction.UNDROP,
        TableAction.DROP,
        TableAction.UNDROP,
        TableAction.RENAME,
        TableAction.SET_PROTECTION,
        TableAction.CONTROL_TASKS,
        ViewAction.COMMIT,
        ViewAction.DROP,
        ViewAction.UNDROP,
        ViewAction.RENAME,
        ViewAction.SET_PROTECTION,
        ViewAction.CONTROL_TASKS,
        GenericTableAction.DROP,
        GenericTableAction.UNDROP,
        GenericTableAction.RENAME,
        GenericTableAction.SET_PROTECTION,
        GenericTableAction.CONTROL_TASKS,
    ),
    _P.ROLE_CREATOR: (ProjectAction.CREATE_ROLE,),
    _P.TAG_CREATOR: (ProjectAction.CREATE_TAG,),
    _P.MANAGE_TAGS: (
        WarehouseAction.MANAGE_TAGS,
        NamespaceAction.MANAGE_TAGS,
        TableAction.MANAGE_TAGS,
        ViewAction.MANAGE_TAGS,
        GenericTableAction.MANAGE_TAGS,
    ),
    _P.APPLY: (TagAction.APPLY, TagAction.REMOVE),
    _P.MANAGE_GRANTS: (
        ProjectAction.READ_GRANTS,
        TagAction.UPDATE,
        TagAction.DELETE,
        TagAction.READ_ATTACHMENTS,
        TagAction.READ_GRANTS,
        WarehouseAction.READ_GRANTS,
        NamespaceAction.READ_GRANTS,
        TableAction.READ_GRANTS,
        ViewAction.READ_GRANTS,
        GenericTableAction.READ_GRANTS,
    ),
}

Needs = tuple[frozenset[Privilege], ...]
"""At least one privilege of each set must be held."""

REQUIRED: dict[Action, Needs] = {
    **{action: (frozenset({privilege}),) for privilege, actions in _NEEDS.items() for action in actions},
    **dict.fromkeys((*ServerAction, *UserAction), (_ADMINISTRATION,)),
    ServerAction.CONTROL_EVENT_DELIVERY: (frozenset({_P.OPERATOR}),),
    **dict.fromkeys(
        (RoleAction.UPDATE, RoleAction.DELETE, RoleAction.MANAGE_ASSIGNMENTS, RoleAction.UPDATE_SOURCE_SYSTEM),
        (_ROLE_CONTROL,),
    ),
    ProjectAction.RENAME: (frozenset({_P.MODIFY, _P.ADMIN}),),
    ProjectAction.DELETE: (frozenset({_P.PROJECT_ADMIN, _P.ADMIN}),),
    ProjectAction.READ_GRANTS: (frozenset({_P.MANAGE_GRANTS, _P.ADMIN}),),
    ProjectAction.READ_AUDIT: (frozenset({_P.SECURITY_ADMIN, _P.ADMIN}),),
    WarehouseAction.ACCEPT_MOVED_NAMESPACE: (frozenset({_P.MANAGE_GRANTS}), frozenset({_P.CREATE})),
    NamespaceAction.ACCEPT_MOVED_NAMESPACE: (frozenset({_P.MANAGE_GRANTS}), frozenset({_P.CREATE})),
    # `modify` alone must not be enough to override a protection, or to delete permanently what could be restored
    **dict.fromkeys(
        (
            WarehouseAction.FORCE_DROP,
            NamespaceAction.FORCE_DROP,
            TableAction.FORCE_DROP,
            ViewAction.FORCE_DROP,
            GenericTableAction.FORCE_DROP,
        ),
        (frozenset({_P.OWNERSHIP, _P.MANAGE_GRANTS}), frozenset({_P.MODIFY})),
    ),
    # whoever may change a schema must not thereby be able to lift what the schema promises
    **dict.fromkeys(
        (
            WarehouseAction.SET_CONTRACT,
            NamespaceAction.SET_CONTRACT,
            TableAction.SET_CONTRACT,
            ViewAction.SET_CONTRACT,
        ),
        (frozenset({_P.OWNERSHIP, _P.MANAGE_GRANTS}), frozenset({_P.MODIFY})),
    ),
    # it also removes everything inside: an owner of the namespace does not own that, so ownership is not enough here
    NamespaceAction.FORCE_DROP_ALL: (frozenset({_P.MANAGE_GRANTS}), frozenset({_P.MODIFY})),
    NamespaceAction.MOVE: (frozenset({_P.MANAGE_GRANTS}), frozenset({_P.MODIFY})),
}


def is_allowed(action: Action, held: frozenset[Privilege]) -> bool:
    """Whether the privileges `held` on the object allow the action."""
    return True not in map(held.isdisjoint, REQUIRED[action])


def wording(action: Action) -> str:
    """The privileges that the action needs, for a message, such as `manage_grants and modify`."""
    return " and ".join(" or ".join(sorted(alternatives)) for alternatives in REQUIRED[action])


@dataclass(frozen=True, slots=True)
class Level:
    """One object of a chain: the privileges granted on it, and whether managed access is set on it."""

    type: ObjectType
    granted: Iterable[Privilege] = ()
    managed: bool = False


def effective(levels: Iterable[Level]) -> frozenset[Privilege]:
    """All privileges on the last object of a chain (outermost first), including implied and inherited ones.

    Below a warehouse or namespace with managed access, ownership does not include granting; only `manage_grants` does.
    """
    held: frozenset[Privilege] = frozenset()
    managed = False
    for level in levels:
        managed = managed or level.managed
        passed = INHERITED.get(level.type, {})
        inherited = {passed[privilege] for privilege in held if privilege in passed}
        held = _closure({*level.granted, *inherited}, implications(level.type, managed=managed))
    return held


_MANAGED = {**_OWNED, _P.OWNERSHIP: {_P.MODIFY, _P.CREATE}}


def implications(kind: ObjectType, *, managed: bool) -> Mapping[Privilege, set[Privilege]]:
    """The implications on an object of this type; `managed`: it, or an object above it, has managed access."""
    return _MANAGED if managed and kind in {_T.NAMESPACE, *TABULAR_TYPES} else IMPLIES[kind]


def _closure(held: set[Privilege], implied: Mapping[Privilege, set[Privilege]]) -> frozenset[Privilege]:
    reached: set[Privilege] = set()
    waiting = list(held)
    while waiting:
        privilege = waiting.pop()
        if privilege not in reached:
            reached.add(privilege)
            waiting.extend(implied.get(privilege, ()))
    return frozenset(reached)


_ONLY_MANAGED = frozenset({_P.OWNERSHIP, _P.PASS_GRANTS, _P.MANAGE_GRANTS})


def may_grant(privilege: Privilege, held: frozenset[Privilege], *, on: ObjectType) -> bool:
    """Whether the privileges `held` on an object allow granting and revoking this privilege on it."""
    if on is _T.SERVER:
        return not held.isdisjoint(_ADMINISTRATION)
    if privilege is _P.PROJECT_ADMIN:
        return not held.isdisjoint({_P.PROJECT_ADMIN, _P.ADMIN})
    if on is _T.PROJECT:
        return not held.isdisjoint({_P.SECURITY_ADMIN, _P.ADMIN})
    passes = _P.PASS_GRANTS in held and privilege in held and privilege not in _ONLY_MANAGED
    return _P.MANAGE_GRANTS in held or passes
