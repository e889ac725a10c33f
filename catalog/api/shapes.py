"""Bodies of the Iceberg REST API, as far as the catalog reads or writes them here (the spec's schemas)."""

import msgspec

from lakewarden.paging import next_token


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


def identifiers_body(path: list[str], names: list[str], last: str | None) -> bytes:
    """A ListTablesResponse, as JSON; `last` is the key behind which the next page starts."""
    found = [{"namespace": path, "name": name} for name in names]
    token = next_token(last) if last is not None else None
    return msgspec.json.encode({"identifiers": found, "next-page-token": token})


def namespace_body(path: list[str], properties: dict[str, str]) -> bytes:
    """A GetNamespaceResponse, as JSON."""
    return msgspec.json.encode({"namespace": path, "properties": properties})


def namespaces_body(paths: list[list[str]], last: str | None) -> bytes:
    """A ListNamespacesResponse, as JSON; `last` is the key behind which the next page starts."""
    return msgspec.json.encode({"namespaces": paths, "next-page-token": next_token(last) if last is not None else None})
