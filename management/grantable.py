"""The types of objects on which privileges can be granted, with their paths and how to authorize them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from catalog import access as catalog_access
from catalog.tabular_types import TABULAR_TYPES, TabularType
from lakewarden.authz.actions import (
    NamespaceAction,
    ObjectType,
    ProjectAction,
    RoleAction,
    ServerAction,
    TabularAction,
    TagAction,
    WarehouseAction,
)
from lakewarden.authz.interface import Granted
from lakewarden.context import RequestContext
from management.tabular_paths import IN_WAREHOUSE, id_name, path_of
from tenants import access

Parts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Grantable:
    """`seen` returns the object if the caller may see it, `read` if they may read all grants on it.

    Both raise the object's NoSuch… error if it is missing or hidden; `read` raises Forbidden if the caller only sees
    it.
    """

    type: ObjectType
    path: str
    seen: Callable[[RequestContext, Parts], Granted[object]]
    read: Callable[[RequestContext, Parts], Granted[object]]


def _project(action: ProjectAction) -> Callable[[RequestContext, Parts], Granted[object]]:
    return lambda context, _: access.project(context, access.project_id_of(context), action)


def _role(action: RoleAction) -> Callable[[RequestContext, Parts], Granted[object]]:
    return lambda context, parts: access.role(context, parts["role_id"], action, project_id=context.project_id)


def _tag_definition(action: TagAction) -> Callable[[RequestContext, Parts], Granted[object]]:
    return lambda context, parts: access.tag_definition(context, parts["tag_definition_id"], action)


def _warehouse(action: WarehouseAction) -> Callable[[RequestContext, Parts], Granted[object]]:
    return lambda context, parts: access.warehouse(context, parts["warehouse_id"], action)


def _namespace(action: NamespaceAction) -> Callable[[RequestContext, Parts], Granted[object]]:
    return lambda context, parts: catalog_access.namespace_in(
        context, parts["warehouse_id"], parts["namespace_id"], action
    )


def _tabular(kind: TabularType, action: TabularAction) -> Callable[[RequestContext, Parts], Granted[object]]:
    return lambda context, parts: catalog_access.tabular_in(
        context, parts["warehouse_id"], kind, parts[id_name(kind)], action
    )


def _server(context: RequestContext, _parts: Parts) -> Granted[object]:
    return access.server(context, ServerAction.READ_GRANTS)


GRANTABLES = (
    Grantable(ObjectType.SERVER, "server", lambda context, _: access.known_server(context), _server),
    Grantable(ObjectType.PROJECT, "project", _project(ProjectAction.GET_METADATA), _project(ProjectAction.READ_GRANTS)),
    Grantable(
        ObjectType.WAREHOUSE,
        "warehouse/<str:warehouse_id>",
        _warehouse(WarehouseAction.GET_METADATA),
        _warehouse(WarehouseAction.READ_GRANTS),
    ),
    Grantable(
        ObjectType.NAMESPACE,
        IN_WAREHOUSE + "namespace/<str:namespace_id>",
        _namespace(NamespaceAction.GET_METADATA),
        _namespace(NamespaceAction.READ_GRANTS),
    ),
    *(
        Grantable(
            kind.object_type,
            path_of(kind),
            _tabular(kind, kind.actions.INCLUDE_IN_LIST),
            _tabular(kind, kind.actions.READ_GRANTS),
        )
        for kind in TABULAR_TYPES.values()
    ),
)
PROJECT_BY_ID = Grantable(
    ObjectType.PROJECT,
    "project/<str:project_id>",
    lambda context, parts: access.project(context, parts["project_id"], ProjectAction.GET_METADATA),
    lambda context, parts: access.project(context, parts["project_id"], ProjectAction.READ_GRANTS),
)
"""A project by its id in the path, as in the permissions API."""

ROLE = Grantable(
    ObjectType.ROLE,
    "role/<str:role_id>",
    _role(RoleAction.READ_METADATA),
    _role(RoleAction.READ_ASSIGNMENTS),
)
"""Roles are not in GRANTABLES: their owners are only read and changed as assignments."""

TAG_DEFINITION = Grantable(
    ObjectType.TAG_DEFINITION,
    "tag-definition/<str:tag_definition_id>",
    _tag_definition(TagAction.READ),
    _tag_definition(TagAction.READ_GRANTS),
)
"""Tag definitions are not in GRANTABLES: the permissions API has another path for them."""

TAG = replace(TAG_DEFINITION, path="tag/<str:tag_definition_id>")
"""A tag definition as the permissions API names it."""

NAMESPACE_BY_ID = Grantable(
    ObjectType.NAMESPACE,
    "namespace/<str:namespace_id>",
    lambda context, parts: catalog_access.namespace_anywhere(
        context, parts["namespace_id"], NamespaceAction.GET_METADATA
    ),
    lambda context, parts: catalog_access.namespace_anywhere(
        context, parts["namespace_id"], NamespaceAction.READ_GRANTS
    ),
)
"""A namespace by its id alone, as in the permissions API."""
