"""Bodies of the Iceberg REST API, as far as the catalog reads or writes them here (the spec's schemas)."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from catalog.models.namespace import ListedNamespace
from catalog.models.tabular import ListedTabular
from lakewarden.http.request import ApiRequest
from lakewarden.paging import next_token

NOTHING: Mapping[str, object] = MappingProxyType({})


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
    """Scan and commit reports; what else they hold is kept as it came."""

    report_type: str


def identifiers_body(
    path: list[str], names: list[str], last: str | None, extra: Mapping[str, object] = NOTHING
) -> bytes:
    """A ListTablesResponse, as JSON; `last` is the key behind which the next page starts, `extra` goes along."""
    found = [{"namespace": path, "name": name} for name in names]
    token = next_token(last) if last is not None else None
    return msgspec.json.encode({"identifiers": found, "next-page-token": token, **extra})


def namespace_body(path: list[str], properties: dict[str, str], extra: Mapping[str, object] = NOTHING) -> bytes:
    """A GetNamespaceResponse, as JSON."""
    return msgspec.json.encode({"namespace": path, "properties": properties, **extra})


def namespaces_body(paths: list[list[str]], last: str | None, extra: Mapping[str, object] = NOTHING) -> bytes:
    """A ListNamespacesResponse, as JSON; `last` is the key behind which the next page starts."""
    token = next_token(last) if last is not None else None
    return msgspec.json.encode({"namespaces": paths, "next-page-token": token, **extra})


def asked_details(
    request: ApiRequest, listed: Sequence[ListedNamespace] | Sequence[ListedTabular], *, uuids: str
) -> dict[str, object]:
    """What `returnUuids` (under the name `uuids`) and `returnProtectionStatus` add to a list, in its order."""
    details: dict[str, object] = {}
    if request.flag("returnUuids"):
        details[uuids] = [each.id for each in listed]
    if request.flag("returnProtectionStatus"):
        details["protection-status"] = [each.is_protected for each in listed]
    return details
