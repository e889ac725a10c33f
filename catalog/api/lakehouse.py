"""The `/lakehouse/v1` facade: the catalog's routes without a prefix, with the error types and lists of that API.

`/lakehouse/v1/…` is the configured warehouse, else the default project's named `default`, or its only one;
`/lakehouse/w/{warehouse}/v1/…` names a warehouse (`<project>/<name>` too). Every rule, right and row is the catalog's:
the endpoints are its classes.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.urls import include, path

from catalog import access
from catalog.api import urls
from catalog.api.namespaces import NamespacesEndpoint
from catalog.api.route import django_path
from catalog.api.tokens import TokenEndpoint
from catalog.services import lakehouse
from lakewarden.authz.actions import WarehouseAction
from lakewarden.context import RequestContext
from lakewarden.errors import NoSuchWarehouse
from lakewarden.http.endpoint import Endpoint
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_response
from lakewarden.idempotency.outcomes import LIFETIME_ISO
from lakewarden.paging import Page, next_token
from tenants import access as tenants_access
from tenants.models import User
from tenants.services import users

PAGE_SIZE = "100"
ERROR_TYPES = {
    "NoSuchNamespaceException": "NoSuchNamespaceError",
    "NoSuchTableException": "NoSuchTableError",
    "AlreadyExistsException": "AlreadyExistsError",
    "NamespaceNotEmptyException": "NamespaceNotEmptyError",
    "InternalServerError": "InternalError",
}
"""The catalog's error types, as this API writes them; others are the same in both."""
_FAILED = 400


class Facade(Endpoint):
    """Goes before a catalog endpoint: finds the warehouse for its `prefix`, and renames its errors."""

    def finish(self, response: HttpResponse) -> None:
        if response.status_code >= _FAILED:
            response.content = _renamed(response.content)
        super().finish(response)

    def perform(self, call: ApiRequest, method: Callable[..., HttpResponse], path: dict[str, str]) -> HttpResponse:
        rest = {name: part for name, part in path.items() if name not in {"project", "warehouse"}}
        prefix = _warehouse_id(call.context, path)
        if "pageToken" in call.query and "pageSize" not in call.query:
            call = replace(call, query={**call.query, "pageSize": PAGE_SIZE})
        return super().perform(call, method, {"prefix": prefix, **rest})


class ConfigEndpoint(Facade):
    def perform(self, call: ApiRequest, method: Callable[..., HttpResponse], path: dict[str, str]) -> HttpResponse:
        users.provision(call.context, seen_by=User.UpdatedWith.CONFIG_CALL)
        return super().perform(call, method, path)

    def get(self, request: ApiRequest, *, prefix: str) -> HttpResponse:
        warehouse = access.warehouse(request.context, prefix, WarehouseAction.GET_CONFIG).target
        return json_response(
            {
                "overrides": {},
                "defaults": {
                    "warehouse": warehouse.location,
                    "catalog-impl": "org.apache.iceberg.rest.RESTCatalog",
                },
                "endpoints": urls.CAPABILITIES,
                "idempotency-key-lifetime": LIFETIME_ISO,
            }
        )


class AllNamespacesEndpoint(NamespacesEndpoint):
    """Without a `parent` the list holds all levels."""

    def get(self, request: ApiRequest, *, prefix: str) -> HttpResponse:
        if request.query.get("parent"):
            return super().get(request, prefix=prefix)
        page = Page.parse(request.query)
        granted = access.warehouse(request.context, prefix, WarehouseAction.LIST_NAMESPACES)
        paths, last = lakehouse.all_namespaces(granted, page)
        return json_response({"namespaces": paths, "next-page-token": next_token(last) if last is not None else None})


def _warehouse_id(context: RequestContext, path: dict[str, str]) -> str:
    """The warehouse that a URL means. Raises NoSuchWarehouse when it is missing or hidden, or there is a choice."""
    if "warehouse" not in path:
        return _only_warehouse_id(context)
    project, separator, name = path["warehouse"].rpartition("/")
    if "project" in path:
        project, name = path["project"], path["warehouse"]
    elif not separator:
        project = tenants_access.project_id_of(context)
    granted = tenants_access.warehouse_named(context, name, WarehouseAction.USE, project_id=project)
    return str(granted.target.id)


def _only_warehouse_id(context: RequestContext) -> str:
    found = lakehouse.find_warehouse_id()
    missing = NoSuchWarehouse(
        "A default warehouse does not exist (LAKEWARDEN__LAKEHOUSE__WAREHOUSE names it; otherwise it "
        "is the only one of the default project): name a warehouse, for example /lakehouse/w/<warehouse>/v1"
    )
    if found is None:
        raise missing
    try:
        access.warehouse(context, str(found), WarehouseAction.USE)
    except NoSuchWarehouse:
        raise missing from None  # one that is hidden is answered like none
    return str(found)


def _renamed(content: bytes) -> bytes:
    answer: dict[str, Any] = json.loads(content)
    error = answer["error"]
    error["type"] = ERROR_TYPES.get(error["type"], error["type"])
    return json_response(answer).content


def _behind_facade(endpoint: type[Endpoint]) -> type[Endpoint]:
    if endpoint is NamespacesEndpoint:
        endpoint = AllNamespacesEndpoint
    return type(f"Lakehouse{endpoint.__name__}", (Facade, endpoint), {})


_routes = [
    path("v1/config", ConfigEndpoint.as_view()),
    path("v1/oauth/tokens", TokenEndpoint.as_view()),
    *(
        django_path(route.template.replace("{prefix}/", ""), _behind_facade(route.endpoint).as_view())
        for route in urls.WAREHOUSE_ROUTES
    ),
]

urlpatterns = [
    *_routes,
    path("w/<str:warehouse>/", include(_routes)),
    path("w/<str:project>/<str:warehouse>/", include(_routes)),
]
