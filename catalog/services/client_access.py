"""What a load returns besides the metadata: settings with which the caller reaches the files they may use."""

from collections.abc import Mapping
from typing import Final

import msgspec

from catalog.models import Tabular
from lakewarden.authz.actions import TableAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import Unavailable
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientRoutes
from lakewarden.storage.interface import StorageError
from tenants.models import Warehouse
from tenants.services.warehouse_secrets import storage_of

NO_CONFIG: Final = b',"config":{}}'
"""For views, which have no files that engines read, and for storage that engines reach without further settings."""


def answer_suffix(granted: Granted[object], warehouse: Warehouse, location: str) -> bytes:
    """The part of the answer after the metadata of the table at `location`, for a caller with these privileges on it.

    Raises Unavailable when the storage cannot say.
    """
    reads, writes = granted.allows(TableAction.READ_DATA), granted.allows(TableAction.WRITE_DATA)
    config = client_config(warehouse, location, reads=reads, writes=writes)
    return _suffix(config) if config else NO_CONFIG


def client_config(warehouse: Warehouse, location: str, *, reads: bool, writes: bool) -> Mapping[str, str]:
    """How a client reaches the files at `location`; empty if clients need none, or the caller may not read them.

    Raises Unavailable when the storage cannot say.
    """
    if not (reads or writes) or not warehouse.profile.CLIENTS_NEED_CONFIG:
        return {}
    try:
        level = AccessLevel.WRITE if writes else AccessLevel.READ
        request = AccessRequest(location, level, frozenset(), ClientRoutes("", "", ""))
        return storage_of(warehouse).client_access(request).config
    except StorageError as error:
        raise Unavailable(f"The storage gives no access to {location} now: {error}", retry_after_s=5) from error


def suffix_for_all(tabular: Tabular) -> bytes | None:
    """The result of `answer_suffix` if it is the same for every caller; None if it depends on the caller."""
    is_view = tabular.kind == Tabular.Kind.VIEW
    return NO_CONFIG if is_view or not tabular.namespace.warehouse.profile.CLIENTS_NEED_CONFIG else None


def _suffix(config: Mapping[str, str]) -> bytes:
    return b',"config":' + msgspec.json.encode(config) + b"}"
