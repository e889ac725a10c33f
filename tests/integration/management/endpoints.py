"""The privileges that each route of the management API needs, as a table: the model gives the least that is enough and
the most that is not. A new route needs one line here.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

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
from lakewarden.authz.model import GRANTABLE, Level, Privilege, effective, is_allowed, may_grant

M = "/management/v1"
T = ObjectType
_ABOVE = (T.SERVER, T.PROJECT, T.WAREHOUSE, T.NAMESPACE)
PATHS: dict[ObjectType, tuple[ObjectType, ...]] = {
    **{kind: _ABOVE[: place + 1] for place, kind in enumerate(_ABOVE)},
    T.ROLE: (T.SERVER, T.PROJECT, T.ROLE),
    T.TAG_DEFINITION: (T.SERVER, T.PROJECT, T.TAG_DEFINITION),
    **{kind: (*_ABOVE, kind) for kind in TABULAR_TYPES},
}
Held = frozenset[Privilege]


@dataclass(frozen=True)
class Need:
    """Something that is asked of what the caller holds on one kind of object; `hidden`: a refusal is always a 404."""

    of: ObjectType
    met: Callable[[Held], bool]
    hidden: bool = False

    def refusal(self, held: Held) -> int | None:
        """The status for somebody who holds `held` on the object; None when it is enough."""
        if self.met(held):
            return None
        return 403 if (Privilege.SEE in held or self.of is T.SERVER) and not self.hidden else 404


@dataclass(frozen=True)
class Rule:
    """All of `needs`, in the order in which they are checked, by one privilege on an object of the kind `by`."""

    by: ObjectType
    needs: tuple[Need, ...]

    def refusal(self, privilege: Privilege) -> int | None:
        return next(filter(None, (need.refusal(self._held(privilege, need.of)) for need in self.needs)), None)

    def least(self) -> list[Privilege]:
        """Those that suffice and imply no other one that does."""
        enough = [each for each in sorted(GRANTABLE[self.by]) if self.refusal(each) is None]
        return [each for each in enough if not any(self._is_more(each, other) for other in enough)]

    def most(self) -> list[tuple[Privilege, int]]:
        """Those that do not suffice and are implied by no other such one, with the status."""
        told = {each: status for each in sorted(GRANTABLE[self.by]) if (status := self.refusal(each))}
        return [(each, told[each]) for each in told if not any(self._is_more(other, each) for other in told)]

    def _is_more(self, one: Privilege, other: Privilege) -> bool:
        return one != other and self._held(one, self.by) > self._held(other, self.by)

    def _held(self, privilege: Privilege, on: ObjectType) -> Held:
        return effective([Level(kind, {privilege} if kind is self.by else ()) for kind in PATHS[on]])


def may(action: Action, *, on: ObjectType | None = None) -> Need:
    kind = on or _KINDS[type(action)]
    return Need(kind, lambda held: is_allowed(action, held), hidden=isinstance(action, UserAction))


def granting(kind: ObjectType, privilege: Privilege) -> Need:
    return Need(kind, lambda held: may_grant(privilege, held, on=kind))


_KINDS: dict[type, ObjectType] = {
    ServerAction: T.SERVER,
    UserAction: T.SERVER,
    ProjectAction: T.PROJECT,
    RoleAction: T.ROLE,
    TagAction: T.TAG_DEFINITION,
    WarehouseAction: T.WAREHOUSE,
    NamespaceAction: T.NAMESPACE,
    TableAction: T.TABLE,
    ViewAction: T.VIEW,
    GenericTableAction: T.GENERIC_TABLE,
}

OPEN = (
    "GET /info",
    "GET /whoami",
    "POST /bootstrap",
    "GET /project-list",
    "GET /grants/grantable-privileges",
    "GET /server/actions",
    "GET /server/explanation",
    "GET /server/grants/grantable-privileges",
    "GET /permissions/server/access",
    "GET /permissions/server/authorizer-actions",
    "POST /action/batch-check",
    "POST /permissions/check",
)
"""For everybody with a valid token: about the caller, the server or no object; answers contain no hidden objects."""
PUBLIC = ("GET /openapi.json", "GET /openapi.yaml")
"""For everybody."""

_S, _P, _R, _W, _N, _T, _V = (
    ServerAction,
    ProjectAction,
    RoleAction,
    WarehouseAction,
    NamespaceAction,
    TableAction,
    ViewAction,
)
_ROLE = "/role/{role_id}"
_TAG = "/tag-definition/{tag_definition_id}"
_WAREHOUSE = "/warehouse/{warehouse_id}"
_NAMESPACE, _TABLE, _VIEW = (f"{_WAREHOUSE}/{kind}/{{{kind}_id}}" for kind in ("namespace", "table", "view"))
_GENERIC_TABLE = _WAREHOUSE + "/generic-table/{generic_table_id}"
_BY_ID = {T.NAMESPACE: ["/namespace/{namespace_id}"], T.PROJECT: ["/project/{project_id}"]}

ACTIONS: dict[str, Action] = {
    "GET /user": _S.LIST_USERS,
    "POST /user": _S.PROVISION_USERS,
    "GET /user/{user_id}": UserAction.READ,
    "PUT /user/{user_id}": UserAction.UPDATE,
    "DELETE /user/{user_id}": UserAction.DELETE,
    "GET /user/{user_id}/actions": UserAction.READ,
    "GET /user/{user_id}/roles": _P.LIST_ROLES,
    "GET /user/{user_id}/roles/transitive": _P.LIST_ROLES,
    "POST /search/user": _P.INCLUDE_IN_LIST,
    "POST /search/role": _P.SEARCH_ROLES,
    "POST /project": _S.CREATE_PROJECT,
    "GET /audit": _P.READ_AUDIT,
    "GET /server/audit": _S.READ_AUDIT,
    "GET /events": _P.GET_METADATA,
    "GET /server/events": _S.READ_AUDIT,
    "GET /server/metrics": _S.READ_EVENT_DELIVERY,
    "GET /server/event-sink": _S.READ_EVENT_DELIVERY,
    "POST /server/event-sink/{sink}/replay": _S.CONTROL_EVENT_DELIVERY,
    "GET /server/event-dead-letter": _S.READ_EVENT_DELIVERY,
    "GET /server/event-dead-letter/{letter_id}": _S.READ_EVENT_DELIVERY,
    "POST /server/event-dead-letter/send": _S.CONTROL_EVENT_DELIVERY,
    "POST /server/event-dead-letter/drop": _S.CONTROL_EVENT_DELIVERY,
    "GET /grants": _P.GET_METADATA,
    "GET /project/actions": _P.INCLUDE_IN_LIST,
    "POST /endpoint-statistics": _P.GET_ENDPOINT_STATISTICS,
    "POST /project/task/list": _P.GET_TASKS,
    "GET /project/task/by-id/{task_id}": _P.GET_TASKS,
    "POST /project/task/control": _P.CONTROL_TASKS,
    "GET /project/task-queue/{queue_name}/config": _P.GET_TASK_QUEUE_CONFIG,
    "POST /project/task-queue/{queue_name}/config": _P.MODIFY_TASK_QUEUE_CONFIG,
    "GET /role": _P.LIST_ROLES,
    "POST /role": _P.CREATE_ROLE,
    "POST /role/provision": _P.CREATE_ROLE,
    f"GET {_ROLE}": _R.READ,
    f"POST {_ROLE}": _R.UPDATE,
    f"DELETE {_ROLE}": _R.DELETE,
    f"GET {_ROLE}/metadata": _R.READ_METADATA,
    f"GET {_ROLE}/actions": _R.READ_METADATA,
    f"PUT {_ROLE}/source-system": _R.UPDATE_SOURCE_SYSTEM,
    f"GET {_ROLE}/members": _R.READ_ASSIGNMENTS,
    f"POST {_ROLE}/members": _R.MANAGE_ASSIGNMENTS,
    f"GET {_ROLE}/members/transitive": _R.READ_ASSIGNMENTS,
    f"DELETE {_ROLE}/members/{{kind}}/{{member_id}}": _R.MANAGE_ASSIGNMENTS,
    f"GET {_ROLE}/member-of": _R.READ_ASSIGNMENTS,
    f"GET {_ROLE}/member-of/transitive": _R.READ_ASSIGNMENTS,
    f"GET /permissions{_ROLE}/assignments": _R.READ_ASSIGNMENTS,
    f"POST /permissions{_ROLE}/assignments": _R.MANAGE_ASSIGNMENTS,
    "GET /tag-definition": _P.LIST_TAGS,
    "POST /tag-definition": _P.CREATE_TAG,
    f"GET {_TAG}": TagAction.READ,
    f"POST {_TAG}": TagAction.UPDATE,
    f"DELETE {_TAG}": TagAction.DELETE,
    f"GET {_TAG}/actions": TagAction.READ,
    f"GET {_TAG}/attachments": TagAction.READ_ATTACHMENTS,
    f"GET {_WAREHOUSE}/tags": _W.GET_METADATA,
    f"GET {_NAMESPACE}/tags": _N.GET_METADATA,
    f"GET {_TABLE}/tags": _T.GET_METADATA,
    f"GET {_TABLE}/column-tags": _T.GET_METADATA,
    f"GET {_TABLE}/column/{{column_name}}/tags": _T.GET_METADATA,
    f"GET {_VIEW}/tags": _V.GET_METADATA,
    f"GET {_GENERIC_TABLE}/tags": GenericTableAction.GET_METADATA,
    **{
        f"{method} {place}/contract": action
        for place, read, manage in (
            (_WAREHOUSE, _W.GET_METADATA, _W.SET_CONTRACT),
            (_NAMESPACE, _N.GET_METADATA, _N.SET_CONTRACT),
            (_TABLE, _T.GET_METADATA, _T.SET_CONTRACT),
            (_VIEW, _V.GET_METADATA, _V.SET_CONTRACT),
        )
        for method, action in (("GET", read), ("PUT", manage), ("DELETE", manage))
    },
    **{
        route: read
        for place, read in ((_NAMESPACE, _N.GET_METADATA), (_TABLE, _T.GET_METADATA), (_VIEW, _V.GET_METADATA))
        for route in (f"GET {place}/contract/effective", f"POST {place}/contract/check")
    },
    "GET /warehouse": _P.LIST_WAREHOUSES,
    "POST /warehouse": _P.CREATE_WAREHOUSE,
    "POST /warehouse-creation-validation": _P.CREATE_WAREHOUSE,
    f"GET {_WAREHOUSE}": _W.GET_METADATA,
    f"DELETE {_WAREHOUSE}": _W.DELETE,
    f"GET {_WAREHOUSE}/actions": _W.INCLUDE_IN_LIST,
    f"POST {_WAREHOUSE}/rename": _W.RENAME,
    f"POST {_WAREHOUSE}/activate": _W.ACTIVATE,
    f"POST {_WAREHOUSE}/deactivate": _W.DEACTIVATE,
    f"POST {_WAREHOUSE}/delete-profile": _W.MODIFY_SOFT_DELETION,
    f"POST {_WAREHOUSE}/format-version-policy": _W.SET_FORMAT_VERSION_POLICY,
    f"GET {_WAREHOUSE}/protection": _W.GET_METADATA,
    f"POST {_WAREHOUSE}/protection": _W.SET_PROTECTION,
    f"POST {_WAREHOUSE}/storage": _W.UPDATE_STORAGE,
    f"POST {_WAREHOUSE}/storage-credential": _W.UPDATE_STORAGE_CREDENTIAL,
    f"POST {_WAREHOUSE}/storage/validate-profile": _W.UPDATE_STORAGE,
    f"POST {_WAREHOUSE}/storage/validate-credential": _W.UPDATE_STORAGE_CREDENTIAL,
    f"POST {_WAREHOUSE}/storage/validate-access": _W.UPDATE_STORAGE,
    f"GET {_WAREHOUSE}/statistics": _W.GET_ENDPOINT_STATISTICS,
    f"GET {_WAREHOUSE}/maintenance": _W.GET_ALL_TASKS,
    f"GET {_WAREHOUSE}/deleted-tabulars": _W.USE,
    f"GET {_WAREHOUSE}/deleted-namespaces": _W.USE,
    f"POST {_WAREHOUSE}/search-tabular": _W.USE,
    f"POST {_WAREHOUSE}/task/list": _W.GET_ALL_TASKS,
    f"GET {_WAREHOUSE}/task/by-id/{{task_id}}": _W.GET_ALL_TASKS,
    f"POST {_WAREHOUSE}/task/control": _W.CONTROL_ALL_TASKS,
    f"GET {_WAREHOUSE}/task-queue/{{queue_name}}/config": _W.GET_TASK_QUEUE_CONFIG,
    f"POST {_WAREHOUSE}/task-queue/{{queue_name}}/config": _W.MODIFY_TASK_QUEUE_CONFIG,
    f"POST {_WAREHOUSE}/task-queue/{{queue_name}}/schedule": _W.CONTROL_ALL_TASKS,
    f"GET {_NAMESPACE}/actions": _N.INCLUDE_IN_LIST,
    f"GET {_NAMESPACE}/protection": _N.GET_METADATA,
    f"POST {_NAMESPACE}/protection": _N.SET_PROTECTION,
    f"GET {_TABLE}/protection": _T.GET_METADATA,
    f"POST {_TABLE}/protection": _T.SET_PROTECTION,
    f"GET {_VIEW}/protection": _V.GET_METADATA,
    f"POST {_VIEW}/protection": _V.SET_PROTECTION,
    f"GET {_GENERIC_TABLE}/protection": GenericTableAction.GET_METADATA,
    f"POST {_GENERIC_TABLE}/protection": GenericTableAction.SET_PROTECTION,
    "GET /warehouse/{warehouse}/table/{table}/metrics-reports": _T.READ_DATA,
}
"""Routes that one action decides."""

for _place in ("/project", "/default-project", "/project/{project_id}"):
    ACTIONS |= {
        f"GET {_place}": _P.GET_METADATA,
        f"DELETE {_place}": _P.DELETE,
        f"POST {_place}/rename": _P.RENAME,
    }

GRANTED_ON: Mapping[str, tuple[ObjectType, Action, Action]] = {
    "/server": (T.SERVER, _S.READ_GRANTS, _S.READ_GRANTS),
    "/project": (T.PROJECT, _P.GET_METADATA, _P.READ_GRANTS),
    _WAREHOUSE: (T.WAREHOUSE, _W.GET_METADATA, _W.READ_GRANTS),
    _NAMESPACE: (T.NAMESPACE, _N.GET_METADATA, _N.READ_GRANTS),
    _TABLE: (T.TABLE, _T.INCLUDE_IN_LIST, _T.READ_GRANTS),
    _VIEW: (T.VIEW, _V.INCLUDE_IN_LIST, _V.READ_GRANTS),
    _GENERIC_TABLE: (T.GENERIC_TABLE, GenericTableAction.INCLUDE_IN_LIST, GenericTableAction.READ_GRANTS),
    _TAG: (T.TAG_DEFINITION, TagAction.READ, TagAction.READ_GRANTS),
}
"""Kind, who sees it, and who reads its grants."""


_PASSED = {T.SERVER: Privilege.OPERATOR, T.TAG_DEFINITION: Privilege.APPLY}
"""What the cases grant; on other objects it is `describe`."""


def _of_grants() -> Iterator[tuple[str, Rule]]:
    for place, (kind, seen, read) in GRANTED_ON.items():
        passed = _PASSED.get(kind, Privilege.DESCRIBE)
        on_grants = {
            f"GET {place}/grants": may(read),
            f"POST {place}/grants": granting(kind, passed),
            f"GET {place}/grants/grantable-privileges": may(seen),
            f"GET {place}/explanation": may(seen),
            f"GET {place}/who-may": may(read),
        }
        for route, need in on_grants.items():
            if route not in OPEN:
                yield route, Rule(kind, (need,))
        if kind is T.TAG_DEFINITION:
            older = f"/permissions{place}".replace("tag-definition", "tag")
            yield f"GET {older}/assignments", Rule(kind, (may(read),))
            yield f"POST {older}/assignments", Rule(kind, (granting(kind, passed),))
            continue
        for older in (f"/permissions{place}", *(f"/permissions{path}" for path in _BY_ID.get(kind, ()))):
            yield f"GET {older}/assignments", Rule(kind, (may(read),))
            yield f"POST {older}/assignments", Rule(kind, (granting(kind, passed),))
            for name in ("access", *(["authorizer-actions"] if "{project_id}" not in older else [])):
                if f"GET {older}/{name}" not in OPEN:
                    yield f"GET {older}/{name}", Rule(kind, (may(seen),))
            if kind in {T.WAREHOUSE, T.NAMESPACE}:
                yield f"GET {older}", Rule(kind, (may(seen),))
                yield f"POST {older}/managed-access", Rule(kind, (may(read),))


_SEES = {kind: Need(kind, lambda held: Privilege.SEE in held) for kind in TABULAR_TYPES}
"""With any right on an object a caller may ask what they may do, but lists contain the object only with `describe`."""


def _rules() -> dict[str, Rule]:
    told = {route: Rule(_KINDS[type(action)], (may(action),)) for route, action in ACTIONS.items()}
    told |= dict(_of_grants())
    told |= {f"GET {_ROLE}/explanation": Rule(T.ROLE, (may(_R.READ_METADATA),))}
    told |= {
        f"GET /permissions{_ROLE}/{name}": Rule(T.ROLE, (may(_R.READ_METADATA),))
        for name in ("access", "authorizer-actions")
    }
    told |= {
        f"GET {place}/actions": Rule(kind, (_SEES[kind],))
        for place, kind in zip((_TABLE, _VIEW, _GENERIC_TABLE), TABULAR_TYPES, strict=True)
    }
    # more than one object decides
    told[f"GET {_ROLE}/who-may"] = Rule(T.PROJECT, (may(_R.UPDATE), may(_P.READ_GRANTS)))
    tagged: dict[str, Action] = {
        _WAREHOUSE: _W.MANAGE_TAGS,
        _NAMESPACE: _N.MANAGE_TAGS,
        _TABLE: _T.MANAGE_TAGS,
        _VIEW: _V.MANAGE_TAGS,
        _GENERIC_TABLE: GenericTableAction.MANAGE_TAGS,
        f"{_TABLE}/column/{{column_name}}": _T.MANAGE_TAGS,
    }
    for place, action in tagged.items():
        told[f"PUT {place}/tags/{{tag_name}}"] = Rule(T.PROJECT, (may(action), may(TagAction.APPLY)))
        told[f"DELETE {place}/tags/{{tag_name}}"] = Rule(T.PROJECT, (may(action), may(TagAction.REMOVE)))
    told[f"POST {_NAMESPACE}/move"] = Rule(T.WAREHOUSE, (may(_N.MOVE), may(_W.ACCEPT_MOVED_NAMESPACE)))
    told[f"POST {_WAREHOUSE}/deleted-tabulars/undrop"] = Rule(T.WAREHOUSE, (may(_T.UNDROP),))
    told[f"POST {_WAREHOUSE}/managed-by"] = Rule(T.SERVER, (may(_W.GET_METADATA), may(_S.CREATE_PROJECT)))
    return {_full(route): rule for route, rule in told.items()}


def _full(route: str) -> str:
    method, _, path = route.partition(" ")
    return f"{method} {M}{path}"


RULES = _rules()
UNRESTRICTED = [_full(route) for route in OPEN]
WITHOUT_TOKEN = [_full(route) for route in PUBLIC]
