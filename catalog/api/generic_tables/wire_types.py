"""Bodies of the API of generic tables; the creation's is `services.generic_tables.CreateGenericTable`."""

from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from catalog.api.wire_types import StorageCredential
from catalog.services.generic_tables import Loaded


class GenericTableData(msgspec.Struct, rename="kebab"):
    """`schema` and `statistics` are any JSON, exactly as it was given."""

    name: str
    format: str
    base_location: str
    protected: bool
    properties: dict[str, str]
    doc: str | UnsetType = UNSET
    schema: msgspec.Raw | UnsetType = UNSET
    statistics: msgspec.Raw | UnsetType = UNSET

    @classmethod
    def of(cls, loaded: Loaded) -> "GenericTableData":
        tabular, details = loaded.tabular, loaded.details
        return cls(
            name=tabular.name,
            format=details.format,
            base_location=tabular.location,
            protected=tabular.protection is not None,
            properties=details.properties,
            doc=UNSET if details.doc is None else details.doc,
            schema=_raw(details.schema),
            statistics=_raw(details.statistics),
        )


class LoadedGenericTable(msgspec.Struct, rename="kebab"):
    table: GenericTableData
    config: dict[str, str]
    storage_credentials: list[StorageCredential]


class ListedGenericTable(msgspec.Struct):
    namespace: list[str]
    name: str
    id: UUID
    format: str | UnsetType = UNSET


class GenericTableList(msgspec.Struct, rename="kebab"):
    identifiers: list[ListedGenericTable]
    next_page_token: str | None


def _raw(text: str | None) -> msgspec.Raw | UnsetType:
    return UNSET if text is None else msgspec.Raw(text.encode())
