"""Bodies of the Iceberg REST API (schemas of the specification), with the members that the catalog reads or writes."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from catalog.models.namespace import ListedNamespace
from catalog.models.tabular import ListedTabular
from lakewarden.http.request import ApiRequest
from lakewarden.paging import next_token

NOTHING: Mapping[str, Any] = MappingProxyType({})


class CreateNamespace(msgspec.Struct):
    namespace: list[str]
    properties: dict[str, str] | None = None


class UpdateProperties(msgspec.Struct):
    removals: list[str] | None = None
    updates: dict[str, str] | None = None


class Identifier(msgspec.Struct):
    namespace: list[str]
    name: str


class Rename(msgspec.Struct):
    source: Identifier
    destination: Identifier


class Register(msgspec.Struct, rename="kebab"):
    name: str
    metadata_location: str
    overwrite: bool = False


class RegisterView(msgspec.Struct, rename="kebab"):
    name: str
    metadata_location: str


class MetricsReport(msgspec.Struct, rename="kebab"):
    """A scan or commit report; its other members are stored as they were received."""

    report_type: str


class StorageCredential(msgspec.Struct):
    prefix: str
    config: dict[str, str]


class Credentials(msgspec.Struct, rename="kebab"):
    storage_credentials: list[StorageCredential]


class CatalogConfig(msgspec.Struct, rename="kebab"):
    defaults: dict[str, str]
    overrides: dict[str, str]
    endpoints: list[str]
    idempotency_key_lifetime: str


class NamespaceDetails(msgspec.Struct, rename="kebab"):
    namespace: list[str]
    properties: dict[str, str]
    namespace_uuid: UUID | UnsetType = UNSET


class NamespaceList(msgspec.Struct, rename="kebab"):
    namespaces: list[list[str]]
    next_page_token: str | None
    namespace_uuids: list[UUID] | UnsetType = UNSET
    protection_status: list[bool] | UnsetType = UNSET


class IdentifierList(msgspec.Struct, rename="kebab"):
    identifiers: list[Identifier]
    next_page_token: str | None
    table_uuids: list[UUID] | UnsetType = UNSET
    protection_status: list[bool] | UnsetType = UNSET


def identifiers_body(path: list[str], names: list[str], last: str | None, extra: Mapping[str, Any] = NOTHING) -> bytes:
    """The JSON of an IdentifierList; `last` is the last key of this page (None: no further
    page), `extra` more members.
    """
    found = [Identifier(path, name) for name in names]
    token = next_token(last) if last is not None else None
    return msgspec.json.encode(IdentifierList(found, token, **extra))


def namespace_body(path: list[str], properties: dict[str, str], identifier: UUID | UnsetType = UNSET) -> bytes:
    """The JSON of NamespaceDetails."""
    return msgspec.json.encode(NamespaceDetails(path, properties, identifier))


def namespaces_body(paths: list[list[str]], last: str | None, extra: Mapping[str, Any] = NOTHING) -> bytes:
    """The JSON of a NamespaceList; `last` is the last key of this page (None: no further page)."""
    token = next_token(last) if last is not None else None
    return msgspec.json.encode(NamespaceList(paths, token, **extra))


def asked_details(
    request: ApiRequest, listed: Sequence[ListedNamespace] | Sequence[ListedTabular], *, uuids: str
) -> dict[str, object]:
    """The members that `returnUuids` (named `uuids`) and `returnProtectionStatus` add to a
    list, in the list's order.
    """
    details: dict[str, object] = {}
    if request.flag("returnUuids"):
        details[uuids] = [each.id for each in listed]
    if request.flag("returnProtectionStatus"):
        details["protection_status"] = [each.is_protected for each in listed]
    return details
