"""The `/lakehouse/v1` API: the catalog's routes without a prefix, with this API's own error types and lists.

`/lakehouse/v1/…` uses the configured warehouse, else the one named `default` in the default project, else its only
one. `/lakehouse/w/{warehouse}/v1/…` names a warehouse, also as `<project>/<name>`. The endpoints are subclasses of the
catalog's, so all rules and rights are the same.
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
from lakewarden.http.endpoint import Endpoint
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_response
from lakewarden.idempotency.outcomes import LIFETIME_ISO
from lakewarden.paging import Page, next_token
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
"""Error types whose name differs from the catalog's."""
_FAILED = 400


class Facade(Endpoint):
    """A mixin for a catalog endpoint: determines the warehouse for `prefix`, and renames error types."""

    def finish(self, response: HttpResponse) -> None:
        if response.status_code >= _FAILED:
            response.content = _renamed(response.content)
        super().finish(response)

    def perform(self, call: ApiRequest, method: Callable[..., HttpResponse], path: dict[str, str]) -> HttpResponse:
        rest = {name: part for name, part in path.items() if name not in {"project", "warehouse"}}
        prefix = str(lakehouse.warehouse_id(call.context, path.get("warehouse"), project=path.get("project")))
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
    """Without `parent`, the list contains the namespaces of all levels."""

    def get(self, request: ApiRequest, *, prefix: str) -> HttpResponse:
        if request.query.get("parent"):
            return super().get(request, prefix=prefix)
        page = Page.parse(request.query)
        granted = access.warehouse(request.context, prefix, WarehouseAction.LIST_NAMESPACES)
        paths, last = lakehouse.all_namespaces(granted, page)
        return json_response({"namespaces": paths, "next-page-token": next_token(last) if last is not None else None})


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
