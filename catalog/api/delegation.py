"""How a client wants to reach files (`X-Iceberg-Access-Delegation`), and where it asks for more."""

from dataclasses import replace
from typing import Final
from urllib.parse import quote
from uuid import UUID

from catalog.identifiers import SEPARATOR
from catalog.models import Namespace, Tabular
from catalog.services.client_access import Asked
from lakewarden.http.request import ApiRequest
from lakewarden.remembered import remembered
from lakewarden.storage.client_access import ClientRoutes, Delegation
from lakewarden.storage.s3.signer_settings import signer_path

HEADER: Final = "x-iceberg-access-delegation"
_KNOWN: Final = {each.value: each for each in Delegation}


def _parsed(header: str) -> frozenset[Delegation]:
    names = (each.strip().lower() for each in header.split(","))
    return frozenset(_KNOWN[each] for each in names if each in _KNOWN)


wanted_in: Final = remembered(_parsed, entries=1000, longest=200)
"""The mechanisms that a header lists; what is not known is ignored (spec, data-access)."""


CREDENTIALS: Final = frozenset({Delegation.VENDED_CREDENTIALS})
"""What a client wants who asks for credentials by themselves."""


def asked(request: ApiRequest, tabular: Tabular) -> Asked:
    """What the request says about the access to the table's files."""
    return asked_for(request, tabular.namespace, tabular.name, tabular.uuid)


def asked_for(request: ApiRequest, namespace: Namespace, name: str, uuid: UUID) -> Asked:
    """As `asked`, for a table that may only be staged; `uuid` is the id that callers know."""
    wanted = wanted_in(request.headers.get(HEADER, ""))
    return Asked(wanted, routes(request.base_uri, namespace, name, uuid))


def routes(base_uri: str, namespace: Namespace, name: str, uuid: UUID) -> ClientRoutes:
    return _routes(base_uri, namespace, f"tables/{quote(name, safe='')}", uuid)


def generic_routes(base_uri: str, tabular: Tabular) -> ClientRoutes:
    """Of a generic table, whose credentials lie beside the catalog."""
    table = f"generic-tables/{quote(tabular.name, safe='')}"
    found = _routes(base_uri, tabular.namespace, table, tabular.uuid)
    return replace(found, credentials=f"{base_uri}/generic/{found.credentials}")


def _routes(base_uri: str, namespace: Namespace, table: str, uuid: UUID) -> ClientRoutes:
    warehouse, path = namespace.warehouse_id, quote(SEPARATOR.join(namespace.path), safe="")
    credentials = f"v1/{warehouse}/namespaces/{path}/{table}/credentials"
    return ClientRoutes(f"{base_uri}/catalog", credentials, signer_path(warehouse, uuid))
