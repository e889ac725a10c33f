"""The routes of the management API, below `/management/v1` and, in the older short form, below `/management`."""

from django.urls import include, path

from management import (
    actions,
    audit,
    batch_checks,
    deleted_tabulars,
    endpoint_statistics,
    explanations,
    grants,
    namespaces,
    object_tags,
    openapi_document,
    permission_actions,
    permissions,
    projects,
    role_members,
    role_provisioning,
    roles,
    search,
    server,
    tabular_search,
    tabulars,
    tags,
    task_queues,
    tasks,
    users,
    warehouse_states,
    warehouse_statistics,
    warehouse_storage,
    warehouses,
)

routes = [
    *actions.routes,
    *audit.routes,
    *batch_checks.routes,
    *endpoint_statistics.routes,
    *openapi_document.routes,
    *server.routes,
    *users.routes,
    *role_provisioning.routes,  # before `role/<id>`
    *roles.routes,
    *role_members.routes,
    *search.routes,
    *projects.routes,
    *warehouses.routes,
    *warehouse_states.routes,
    *warehouse_storage.routes,
    *warehouse_statistics.routes,
    *grants.routes,
    *permission_actions.routes,
    *permissions.routes,
    *explanations.routes,
    *tags.routes,
    *object_tags.routes,
    *namespaces.routes,
    *tabulars.routes,
    *tabular_search.routes,
    *deleted_tabulars.routes,
    *tasks.routes,
    *task_queues.routes,
]
routes += projects.late_routes

urlpatterns = [path("v1/", include(routes)), *routes]
