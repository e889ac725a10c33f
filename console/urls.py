"""The console's URLs; `/` redirects to it."""

from importlib.resources import files
from typing import Final

from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import path
from django.views.generic import RedirectView
from whitenoise.middleware import WhiteNoiseMiddleware

from console.guard import guarded
from console.pages import (
    activity,
    audit,
    browse,
    data,
    manage,
    manage_namespace,
    new_warehouse,
    operate,
    people,
    restore,
    restore_metadata,
    rights,
    setup,
    signing_in,
    start,
    storage,
    tables,
    tasks,
    tree,
    user,
    views,
    warehouses,
    why,
)

app_name = "console"


def _no_file(request: HttpRequest) -> HttpResponseBase:
    raise Http404(f"There is no file {request.path}")


_FILES: Final = WhiteNoiseMiddleware(_no_file)
_FILES.add_files(str(files("django_htmx") / "static"), prefix="console/static/")


def _file(request: HttpRequest, **_: str) -> HttpResponseBase:
    found: HttpResponseBase = _FILES(request)
    return found


_TABULAR: Final = "console/warehouses/<uuid:warehouse_id>"
_MANAGED: Final = f"{_TABULAR}/<slug:kind>/<uuid:tabular_id>"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="console:home"), name="root"),
    path("console", start.home, name="home"),
    path("console/static/<path:name>", guarded(_file)),
    path("console/sign-in", signing_in.sign_in, name="sign-in"),
    path("console/callback", signing_in.callback, name="callback"),
    path("console/sign-out", signing_in.sign_out, name="sign-out"),
    path("console/welcome", setup.welcome, name="welcome"),
    path("console/welcome/bootstrap", setup.bootstrap, name="bootstrap"),
    path("console/projects", setup.listed, name="projects"),
    path("console/projects/new", setup.create, name="new-project"),
    path("console/new-warehouse", new_warehouse.new, name="new-warehouse"),
    path("console/new-warehouse/check", new_warehouse.check, name="check-warehouse"),
    path("console/new-warehouse/create", new_warehouse.create, name="create-warehouse"),
    path("console/choice", warehouses.choose, name="choose"),
    path("console/warehouses", warehouses.listed, name="warehouses"),
    path("console/warehouses/<uuid:warehouse_id>", browse.warehouse, name="warehouse"),
    path("console/warehouses/<uuid:warehouse_id>/search", browse.find, name="find"),
    path("console/tree", tree.tree, name="tree"),
    path("console/tree/warehouses/<uuid:warehouse_id>", tree.below_warehouse, name="tree-warehouse"),
    path("console/tree/namespaces/<uuid:namespace_id>", tree.below_namespace, name="tree-namespace"),
    path("console/search", tree.find, name="find-everywhere"),
    path("console/namespaces/<uuid:namespace_id>", browse.namespace, name="namespace"),
    path(f"{_TABULAR}/tables/<uuid:table_id>", tables.table, name="table"),
    path(f"{_TABULAR}/tables/<uuid:table_id>/metadata.json", tables.download, name="table-file"),
    path(f"{_TABULAR}/tables/<uuid:table_id>/rows", data.rows, name="rows"),
    path("console/audit", audit.audit, name="audit"),
    path("console/audit/export", audit.export, name="audit-export"),
    path("console/design", start.design, name="design"),
    path("console/status", operate.status, name="status"),
    path("console/events", operate.events, name="events"),
    path("console/events/letters", operate.letters, name="letters"),
    path(f"{_TABULAR}/activity", activity.activity, name="activity"),
    path(f"{_TABULAR}/rights/<slug:kind>/<uuid:object_id>", rights.rights, name="rights"),
    path(f"{_TABULAR}/rights/<slug:kind>/<uuid:object_id>/change", rights.change, name="change-rights"),
    path("console/namespaces/<uuid:namespace_id>/manage", manage_namespace.manage, name="manage-namespace"),
    path("console/namespaces/<uuid:namespace_id>/protection", manage_namespace.protect, name="protect-namespace"),
    path("console/namespaces/<uuid:namespace_id>/drop", manage_namespace.drop, name="drop-namespace"),
    path(f"{_TABULAR}/tables/<uuid:table_id>/restore", restore.preview, name="restore"),
    path(f"{_TABULAR}/tables/<uuid:table_id>/restore/now", restore.restore, name="restore-now"),
    path(f"{_TABULAR}/tables/<uuid:table_id>/metadata/restore", restore_metadata.preview, name="restore-metadata"),
    path(
        f"{_TABULAR}/tables/<uuid:table_id>/metadata/restore/now", restore_metadata.restore, name="restore-metadata-now"
    ),
    path(f"{_TABULAR}/storage", storage.storage, name="storage"),
    path(f"{_TABULAR}/storage/check", storage.check, name="check-storage"),
    path(f"{_TABULAR}/storage/change", storage.change, name="change-storage"),
    path(f"{_TABULAR}/tasks", tasks.listed, name="tasks"),
    path(f"{_TABULAR}/tasks/<uuid:task_id>", tasks.task, name="task"),
    path(f"{_TABULAR}/tasks/<uuid:task_id>/control", tasks.control_one, name="control-task"),
    path(f"{_TABULAR}/rights/<slug:kind>/<uuid:object_id>/why", why.why, name="why"),
    path("console/users", people.listed_users, name="users"),
    path("console/user", user.user, name="user"),
    path("console/user/description", user.describe, name="describe-user"),
    path("console/user/deletion", user.delete, name="delete-user"),
    path("console/roles", people.listed_roles, name="roles"),
    path("console/roles/new", people.create_role, name="new-role"),
    path("console/roles/<uuid:role_id>", people.role, name="role"),
    path("console/roles/<uuid:role_id>/members", people.change_members, name="role-members"),
    path("console/roles/<uuid:role_id>/delete", people.delete_role, name="delete-role"),
    path(f"{_MANAGED}/manage", manage.manage, name="manage"),
    path(f"{_MANAGED}/protection", manage.protect, name="protect"),
    path(f"{_MANAGED}/drop", manage.drop, name="drop"),
    path(f"{_TABULAR}/dropped", manage.deleted, name="deleted"),
    path(f"{_TABULAR}/undrop", manage.bring_back, name="undrop"),
    path(f"{_TABULAR}/views/<uuid:view_id>", views.view, name="view"),
    path(f"{_TABULAR}/generic-tables/<uuid:table_id>", views.generic_table, name="generic-table"),
]
