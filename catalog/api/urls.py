"""Routes of the Iceberg REST API; the capability list of the config answer is read off them."""

from django.urls import include, path

from catalog.api import hot
from catalog.api.config import ConfigEndpoint
from catalog.api.credentials import TableCredentialsEndpoint
from catalog.api.multi_table_commit import TransactionEndpoint
from catalog.api.namespaces import NamespaceEndpoint, NamespacePropertiesEndpoint, NamespacesEndpoint
from catalog.api.openapi import document
from catalog.api.tables import (
    RegisterTableEndpoint,
    RenameTableEndpoint,
    TableEndpoint,
    TableMetricsEndpoint,
    TablesEndpoint,
)
from catalog.api.tokens import TokenEndpoint
from catalog.api.unregister import UnregisterTableEndpoint
from catalog.api.views import RegisterViewEndpoint, RenameViewEndpoint, ViewEndpoint, ViewsEndpoint
from lakewarden.http.endpoint import Endpoint

_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_TABLE = _NAMESPACE + "/tables/{table}"
_VIEW = _NAMESPACE + "/views/{view}"

ROUTES: dict[str, type[Endpoint]] = {
    "/v1/{prefix}/namespaces": NamespacesEndpoint,
    _NAMESPACE: NamespaceEndpoint,
    _NAMESPACE + "/properties": NamespacePropertiesEndpoint,
    _NAMESPACE + "/tables": TablesEndpoint,
    _TABLE: TableEndpoint,
    _TABLE + "/credentials": TableCredentialsEndpoint,
    _TABLE + "/metrics": TableMetricsEndpoint,
    _TABLE + "/unregister": UnregisterTableEndpoint,
    _NAMESPACE + "/register": RegisterTableEndpoint,
    "/v1/{prefix}/tables/rename": RenameTableEndpoint,
    _NAMESPACE + "/views": ViewsEndpoint,
    _VIEW: ViewEndpoint,
    _NAMESPACE + "/register-view": RegisterViewEndpoint,
    "/v1/{prefix}/views/rename": RenameViewEndpoint,
    "/v1/{prefix}/transactions/commit": TransactionEndpoint,
}
"""The spec's path templates."""

CAPABILITIES = [f"{method} {template}" for template, endpoint in ROUTES.items() for method in endpoint.allowed()]

urlpatterns = [
    path("v1/config", ConfigEndpoint.as_view(capabilities=CAPABILITIES)),
    path("v1/oauth/tokens", TokenEndpoint.as_view()),
    path("v1/", include(document.routes)),
    *(
        path(template.removeprefix("/").replace("{", "<str:").replace("}", ">"), endpoint.as_view())
        for template, endpoint in ROUTES.items()
    ),
]

HOT_ROUTES = [hot.tabular, hot.tables, hot.namespace, hot.namespaces, hot.config_route(CAPABILITIES)]
"""What is answered before Django is asked, where it can be."""
