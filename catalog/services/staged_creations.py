"""Staged creations: their location is reserved for a limited time, for the commit that completes them only."""

import logging
from uuid import UUID

from catalog.models import Namespace, occupied_locations
from catalog.services import locations
from catalog.services.location_claims import Claim
from lakewarden import config
from lakewarden.authz.interface import Granted
from lakewarden.db_transaction import changing
from lakewarden.errors import Conflict, LakewardenError, NoSuchNamespace
from lakewarden.storage.interface import StorageError
from tenants.models import Warehouse

logger = logging.getLogger(__name__)

_AT_ONCE = 1000


def reserve(namespace: Granted[Namespace], claim: Claim, uuid: UUID) -> None:
    """Raises as `Claim.check`, and Conflict when the caller already has `catalog.max_staged` in the namespace."""
    claim.check()
    if claim.folder is not None:  # nobody else can know a generated location
        _insert(namespace, claim, uuid)
        return
    with changing():
        claim.take(uuid)
        _insert(namespace, claim, uuid)


def uuid_at(namespace: Granted[Namespace], location: str) -> UUID | None:
    """That of the creation which the caller has staged in the namespace, at this very place."""
    return occupied_locations.staged_at(
        namespace.target.warehouse_id, location, namespace_id=namespace.target.id, by=namespace.context.caller.id
    )


def end_expired() -> int:
    """Remove expired reservations, so that they no longer block others; returns how many.

    A location with files stays reserved, like that of a table that left the catalog while its files stayed.
    """
    ended = 0
    for each in occupied_locations.expired(limit=_AT_ONCE):
        try:
            warehouse = Warehouse.objects.get(id=each.warehouse)
            is_empty = locations.is_empty(warehouse, each.location)
            if is_empty:
                locations.remove_folders(warehouse, each.location)
        except (LakewardenError, StorageError) as error:
            # one store that fails must not keep the reservations of others
            logger.warning("It is not known whether files remain at %s: %s", each.location, error)
            is_empty = False
        occupied_locations.end_staged(each.warehouse, each.location, is_empty=is_empty)
        ended += 1
    return ended


def _insert(namespace: Granted[Namespace], claim: Claim, uuid: UUID) -> None:
    limits = config.current().catalog
    is_reserved = occupied_locations.stage(
        namespace.target.warehouse_id,
        claim.location,
        uuid=uuid,
        namespace_id=namespace.target.id,
        by=claim.by,
        lifetime_s=limits.staged_lifetime_s,
        most=limits.max_staged,
        access=namespace.target.warehouse.last_access,
    )
    if is_reserved is None:
        raise NoSuchNamespace(f"Namespace does not exist: {namespace.target}")
    if not is_reserved:
        raise Conflict(
            f"You have staged {limits.max_staged} creations in the namespace {namespace.target}, the most that may "
            f"be open at once (catalog.max_staged): commit them, or wait until they expire after "
            f"{limits.staged_lifetime_s} seconds"
        )
