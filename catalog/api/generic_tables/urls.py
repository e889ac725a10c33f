"""The route table of generic tables, served below `/generic` and below `/lakekeeper`, where other clients look."""

from typing import Final

from catalog.api.generic_tables.endpoints import (
    GenericTableCredentialsEndpoint,
    GenericTableEndpoint,
    GenericTablesEndpoint,
    RenameGenericTableEndpoint,
)
from catalog.api.route import Route

MOUNTS: Final = ("/generic", "/lakekeeper")
_TABLES = "/v1/{prefix}/namespaces/{namespace}/generic-tables"

ROUTES = (
    Route(_TABLES, GenericTablesEndpoint),
    Route(_TABLES + "/{table}", GenericTableEndpoint),
    Route(_TABLES + "/{table}/credentials", GenericTableCredentialsEndpoint),
    Route("/v1/{prefix}/generic-tables/rename", RenameGenericTableEndpoint),
)

urlpatterns = [route.pattern() for route in ROUTES]
