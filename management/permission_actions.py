"""The older lists of rights, in the names of the permissions API: `/permissions/…/access` and `…/authorizer-actions`.

Clients of this API know exactly these names, so actions and privileges that have none here are only listed by
`…/actions` and `…/grants/grantable-privileges`.
"""

from typing import cast

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ACTIONS, ObjectType
from lakewarden.authz.model import GRANTABLE, Privilege, is_allowed, may_grant
from management import identities
from management.actions import SOMEBODY
from management.api import ManagementView
from management.base_serializers import Shape
from management.grantable import GRANTABLES, NAMESPACE_BY_ID, PROJECT_BY_ID, ROLE, Grantable
from permissions import others
from tenants import access
from tenants.models import Role

_ON_DATA = tuple(
    f"grant_{name}" for name in ("pass_grants", "manage_grants", "manage_tags", "describe", "select", "modify")
)
_TASKS = ("get_tasks", "control_tasks", "set_protection")

AUTHORIZER_ACTIONS: dict[ObjectType, tuple[str, ...]] = {
    ObjectType.SERVER: ("read_assignments", "grant_admin"),
    ObjectType.PROJECT: (
        "read_assignments",
        *(f"grant_{name}" for name in ("role_creator", "tag_creator", "create", "describe", "modify", "select")),
        *(f"grant_{name}" for name in ("project_admin", "security_admin", "data_admin")),
    ),
    ObjectType.ROLE: ("assume", "can_grant_assignee", "can_change_ownership", "read_assignments"),
    ObjectType.WAREHOUSE: ("read_assignments", "grant_create", *_ON_DATA, "change_ownership"),
    ObjectType.NAMESPACE: ("read_assignments", "grant_create", *_ON_DATA),
    ObjectType.TABLE: ("read_assignments", *_ON_DATA, "change_ownership"),
    ObjectType.VIEW: ("read_assignments", *_ON_DATA, "change_ownership"),
    ObjectType.GENERIC_TABLE: ("read_assignments", *_ON_DATA, "change_ownership"),
}
"""Names of `…/authorizer-actions`; `…/access` has them, too."""

_CATALOG_ACTIONS: dict[ObjectType, tuple[str, ...]] = {
    ObjectType.SERVER: ("create_project", "update_users", "delete_users", "list_users", "provision_users"),
    ObjectType.PROJECT: (
        *("create_warehouse", "delete", "rename", "list_warehouses", "create_role", "list_roles", "search_roles"),
        "get_endpoint_statistics",
    ),
    ObjectType.ROLE: ("delete", "update", "read"),
    ObjectType.WAREHOUSE: (
        *("create_namespace", "accept_moved_namespace", "delete", "modify_storage", "modify_storage_credential"),
        *("get_config", "get_metadata", "list_namespaces", "include_in_list", "deactivate", "activate", "rename"),
        *("list_deleted_tabulars", "get_all_tasks", "control_all_tasks", "set_protection"),
        *("set_format_version_policy", "get_endpoint_statistics"),
    ),
    ObjectType.NAMESPACE: (
        *("create_table", "create_view", "create_generic_table", "create_namespace", "delete", "move"),
        *("accept_moved_namespace", "update_properties", "get_metadata", "set_protection"),
    ),
    ObjectType.TABLE: ("drop", "write_data", "read_data", "get_metadata", "commit", "rename", *_TASKS),
    ObjectType.VIEW: ("drop", "commit", "get_metadata", "select", "rename", *_TASKS),
    ObjectType.GENERIC_TABLE: (
        *("drop", "undrop", "write_data", "read_data", "get_metadata", "rename", "include_in_list"),
        *_TASKS,
    ),
}

_OUR_NAMES = {
    "modify_storage": "update_storage",
    "modify_storage_credential": "update_storage_credential",
    "can_grant_assignee": "manage_role_assignments",
}
_READS_GRANTS = {"read_grants", "read_role_assignments"}


class AccessShape(Shape):
    allowed_actions = serializers.ListField(child=serializers.CharField())


class Access(ManagementView):
    kind = cast("Grantable", None)

    @extend_schema(responses={200: AccessShape}, parameters=SOMEBODY, deprecated=True)
    def get(self, _request: Request, **parts: str) -> Response:
        """List the names of the actions that the caller may perform on the object, and of the privileges to grant.

        `principalUser` or `principalRole` asks about another principal. `…/actions` has all actions.
        """
        kind = self.kind.type
        return _answer(self, parts, (*_CATALOG_ACTIONS[kind], *AUTHORIZER_ACTIONS[kind]))


class AuthorizerActions(ManagementView):
    kind = cast("Grantable", None)

    @extend_schema(responses={200: AccessShape}, parameters=SOMEBODY)
    def get(self, _request: Request, **parts: str) -> Response:
        """List the privileges that the caller may grant on the object, and whether they may read its grants.

        `principalUser` or `principalRole` asks about another principal.
        """
        return _answer(self, parts, AUTHORIZER_ACTIONS[self.kind.type])


def _answer(view: Access | AuthorizerActions, parts: dict[str, str], names: tuple[str, ...]) -> Response:
    identity = identities.of_query(view.call.query)
    granted = view.kind.seen(view.context, parts)
    held = others.held_on(granted, identity)
    allowed = {name for name in names if _is_allowed(name, held, view.kind.type)}
    if isinstance(granted.target, Role) and access.may_assume(others.principal_on(granted, identity), granted.target):
        allowed.add("assume")
    return Response(AccessShape.of({"allowed_actions": sorted(allowed)}))


def _is_allowed(name: str, held: frozenset[Privilege], kind: ObjectType) -> bool:
    """Whether the privileges `held` allow what this name stands for; False if it does not exist on this server."""
    if name in {"change_ownership", "can_change_ownership"}:
        return may_grant(Privilege.OWNERSHIP, held, on=kind)
    if name.startswith("grant_"):
        return any(f"grant_{each}" == name and may_grant(each, held, on=kind) for each in GRANTABLE[kind])
    ours = _READS_GRANTS if name == "read_assignments" else {_OUR_NAMES.get(name, name)}
    return any(action.value in ours and is_allowed(action, held) for action in ACTIONS[kind])


routes = [
    path(f"permissions/{kind.path}/{name}", view.as_view(kind=kind))
    for kind in (*GRANTABLES, NAMESPACE_BY_ID, ROLE)
    for name, view in (("access", Access), ("authorizer-actions", AuthorizerActions))
]
routes.append(path(f"permissions/{PROJECT_BY_ID.path}/access", Access.as_view(kind=PROJECT_BY_ID)))
