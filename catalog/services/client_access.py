"""What a load returns besides the metadata: the means by which the caller reaches the files they may use."""

import hashlib
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from catalog.access import tabular_chain
from catalog.models import Tabular
from lakewarden.authz.actions import TableAction
from lakewarden.authz.model import Privilege, is_allowed
from lakewarden.context import RequestContext
from lakewarden.errors import Unavailable
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientAccess, ClientRoutes, Delegation
from lakewarden.storage.interface import StorageError
from tenants.access import privileges_elsewhere
from tenants.models import Warehouse
from tenants.services.warehouse_secrets import storage_of

logger = logging.getLogger(__name__)

NO_CONFIG: Final = b',"config":{}}'
"""For views, which have no files that engines read, and for storage that engines reach without further settings."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The mechanisms that a client named, and the routes by which it can ask for more."""

    wanted: frozenset[Delegation]
    routes: ClientRoutes


@dataclass(frozen=True, slots=True)
class Addition:
    """`suffix` follows the document; `mark` differs where the means of access do, and is empty if there are none.

    Callers with the same rights may receive it until `fresh_until` (seconds since the epoch).
    """

    suffix: bytes
    mark: str = ""
    fresh_until: float = math.inf


NOTHING: Final = Addition(NO_CONFIG)
_MARK_BYTES: Final = 8
_WITHOUT_MEANS: Final = frozenset({Delegation.CLIENT_MANAGED})


def level_held(held: frozenset[Privilege]) -> AccessLevel | None:
    """What the holder of these privileges may do with the files of a table of any type; None: nothing."""
    if is_allowed(TableAction.WRITE_DATA, held):
        return AccessLevel.WRITE
    return AccessLevel.READ if is_allowed(TableAction.READ_DATA, held) else None


def addition(warehouse: Warehouse, location: str, level: AccessLevel | None, asked: Asked) -> Addition:
    """The part of the answer after the metadata of the table at `location`. Raises as `client_access`."""
    access = client_access(warehouse, location, level, asked)
    config = properties(access)
    if not config:
        return NOTHING
    members: dict[str, object] = {"config": config}  # with the credentials, for clients that look only there
    if access.credentials:  # an engine that finds an entry without a secret in it sends requests without a signature
        members = {"storage-credentials": [{"prefix": location, "config": config}], **members}
    suffix = b"," + msgspec.json.encode(members)[1:]
    fresh_until = math.inf
    if access.expires_at is not None:
        fresh_until = access.fresh_until.timestamp() if access.fresh_until else 0
    return Addition(suffix, f".{hashlib.blake2b(suffix, digest_size=_MARK_BYTES).hexdigest()}", fresh_until)


def addition_to_new(warehouse: Warehouse, location: str, asked: Asked) -> Addition:
    """As `addition`, for a table that the caller, who will own it, is about to create or to stage."""
    with _not_created():
        return addition(warehouse, location, AccessLevel.WRITE, asked)


def access_to_new(warehouse: Warehouse, location: str, asked: Asked) -> ClientAccess:
    """As `client_access`, for a table as in `addition_to_new`."""
    with _not_created():
        return client_access(warehouse, location, AccessLevel.WRITE, asked)


@contextmanager
def _not_created() -> Iterator[None]:
    try:
        yield
    except Unavailable as error:
        raise Unavailable(f"The table was not created. {error}", retry_after_s=error.retry_after_s) from error


def addition_to_registered(context: RequestContext, tabular: Tabular, asked: Asked) -> Addition:
    """As `addition`, for a table that the caller has registered: one that comes back may still be another's.

    It was registered, and the answer must not be an error: if the storage gives no access now, it says only where the
    files are, and the caller asks again.
    """
    warehouse = tabular.namespace.warehouse
    if not warehouse.profile.CLIENTS_NEED_CONFIG:
        return NOTHING
    level = level_held(privileges_elsewhere(context, tabular_chain(tabular)))
    for wanted in (asked.wanted, _WITHOUT_MEANS):
        try:
            return addition(warehouse, tabular.location, level, Asked(wanted, asked.routes))
        except Unavailable as error:
            logger.warning("%s was registered, and is answered without credentials: %s", tabular, error)
    return NOTHING


def client_access(warehouse: Warehouse, location: str, level: AccessLevel | None, asked: Asked) -> ClientAccess:
    """How a client reaches the files at `location`; empty if clients need nothing, or the caller may not read them.

    Raises Unavailable when the storage cannot say.
    """
    if level is None or not warehouse.profile.CLIENTS_NEED_CONFIG:
        return ClientAccess()
    try:
        return storage_of(warehouse).client_access(AccessRequest(location, level, asked.wanted, asked.routes))
    except StorageError as error:
        raise Unavailable(f"The storage gives no access to {location} now: {error}", retry_after_s=5) from error


def properties(access: ClientAccess) -> dict[str, str]:
    return {**access.config, **access.credentials}


def suffix_for_all(tabular: Tabular) -> bytes | None:
    """What follows the document if it is the same for every caller; None if it depends on the caller."""
    is_view = tabular.kind == Tabular.Kind.VIEW
    return NO_CONFIG if is_view or not tabular.namespace.warehouse.profile.CLIENTS_NEED_CONFIG else None
