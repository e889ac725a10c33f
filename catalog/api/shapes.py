"""Request bodies of the Iceberg REST API, as far as the catalog reads them (the spec's schemas of the same names)."""

import msgspec


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
