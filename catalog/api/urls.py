"""The route table of the Iceberg REST API; URL patterns, hot routes and capabilities are derived from it."""

from django.urls import include, path

from catalog.api.config import ConfigEndpoint
from catalog.api.credentials import TableCredentialsEndpoint
from catalog.api.hot import commits, creations, drops, lists, namespaces, properties, signing, tabulars
from catalog.api.hot.config import reads_config
from catalog.api.hot.dispatch import dispatch
from catalog.api.multi_table_commit import TransactionEndpoint
from catalog.api.namespaces import NamespaceEndpoint, NamespacePropertiesEndpoint, NamespacesEndpoint
from catalog.api.openapi import document
from catalog.api.route import Route
from catalog.api.signing import TableIdSignEndpoint, TableSignEndpoint, WarehouseSignEndpoint
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
from lakewarden.storage.s3.signer_settings import TABLE_SIGNER

_MOUNT = "/catalog"
_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_TABLE = _NAMESPACE + "/tables/{table}"
_VIEW = _NAMESPACE + "/views/{view}"

WAREHOUSE_ROUTES = (
    Route("/v1/{prefix}/namespaces", NamespacesEndpoint, hot=[lists.NAMESPACES, creations.NAMESPACE]),
    Route(_NAMESPACE, NamespaceEndpoint, hot=[namespaces.NAMESPACE, drops.NAMESPACE]),
    Route(_NAMESPACE + "/properties", NamespacePropertiesEndpoint, hot=[properties.PROPERTIES]),
    Route(_NAMESPACE + "/tables", TablesEndpoint, hot=[lists.TABLES, creations.TABLE]),
    Route(_TABLE, TableEndpoint, hot=[tabulars.TABLE, commits.COMMIT, drops.TABLE]),
    Route(_TABLE + "/credentials", TableCredentialsEndpoint),
    Route(_TABLE + "/metrics", TableMetricsEndpoint),
    Route(_TABLE + "/unregister", UnregisterTableEndpoint),
    Route(_NAMESPACE + "/register", RegisterTableEndpoint),
    Route("/v1/{prefix}/tables/rename", RenameTableEndpoint),
    Route(_NAMESPACE + "/views", ViewsEndpoint),
    Route(_VIEW, ViewEndpoint, hot=[tabulars.VIEW, drops.VIEW]),
    Route(_NAMESPACE + "/register-view", RegisterViewEndpoint),
    Route("/v1/{prefix}/views/rename", RenameViewEndpoint),
    Route("/v1/{prefix}/transactions/commit", TransactionEndpoint),
)
"""The routes inside a warehouse."""

SIGN_ROUTE = Route(_TABLE + "/sign", TableSignEndpoint, hot=[signing.BY_NAME])
SIGNER_ROUTES = (
    Route(f"/{TABLE_SIGNER}", TableIdSignEndpoint, hot=[signing.BY_ID]),
    Route("/v1/{prefix}/v1/aws/s3/sign", WarehouseSignEndpoint, hot=[signing.BY_LOCATION]),
    Route("/{prefix}/v1/aws/s3/sign", WarehouseSignEndpoint, hot=[signing.BY_LOCATION]),
)
"""The routes of signers that the specification does not name: engines learn them from a table's config."""

CAPABILITIES = [capability for route in WAREHOUSE_ROUTES for capability in route.capabilities]
SIGNING_CAPABILITIES = [capability for route in (SIGN_ROUTE, *SIGNER_ROUTES) for capability in route.capabilities]

ROUTES = (
    Route(
        "/v1/config",
        ConfigEndpoint,
        hot=[reads_config(CAPABILITIES, SIGN_ROUTE.capabilities)],
        settings={"capabilities": CAPABILITIES, "signing": SIGN_ROUTE.capabilities},
    ),
    Route("/v1/oauth/tokens", TokenEndpoint),
    *WAREHOUSE_ROUTES,
    SIGN_ROUTE,
    *SIGNER_ROUTES,
)

urlpatterns = [path("v1/", include(document.routes)), *(route.pattern() for route in ROUTES)]

HOT_ROUTES = [dispatch({_MOUNT + route.template: route.hot for route in ROUTES if route.hot})]
"""Handlers that are tried before the request goes to Django."""
