"""Signs requests of engines to a warehouse's store, each within one table's location."""

from typing import Final, NamedTuple
from uuid import UUID

from catalog.signing_access import ACTIONS, SigningPlace
from lakewarden import backends
from lakewarden.authz.actions import NamespaceAction
from lakewarden.context import Refused
from lakewarden.errors import BadRequest, Forbidden, Unavailable
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.interface import StorageError
from lakewarden.storage.request_signing import Reach, RequestSigner, SignedRequest
from tenants.models import Warehouse

_MOST_KEPT: Final = 10_000


class _Kept(NamedTuple):
    version: int
    reference: UUID | None
    signer: RequestSigner


_KEPT: Final[dict[UUID, _Kept]] = {}
"""By the warehouse's id, for the event loop, which cannot wait for a signer to be made."""


def signer_of(warehouse: Warehouse) -> RequestSigner:
    """Raises BadRequest if requests to the warehouse's storage are not signed, Unavailable if there are no keys."""
    try:
        signer = backends.request_signer(warehouse.profile, warehouse.storage_secret)
    except StorageError as error:
        raise _unavailable(error) from error
    if signer is None:
        raise BadRequest(
            f"Requests to the storage of the warehouse {warehouse.name!r} are not signed: it must be of the type s3, "
            "with remote-signing-enabled"
        )
    if len(_KEPT) >= _MOST_KEPT:
        _KEPT.clear()
    _KEPT[warehouse.id] = _Kept(warehouse.version, warehouse.storage_secret, signer)
    return signer


def find_last(warehouse_id: UUID) -> RequestSigner | None:
    """The signer that was used last, maybe of an earlier version of the warehouse: to look a table up, not to sign."""
    kept = _KEPT.get(warehouse_id)
    return kept and kept.signer


def find_ready(warehouse_id: UUID, *, version: int, reference: UUID | None) -> RequestSigner | None:
    """The signer of a warehouse that still has this version and secret, if it can sign without waiting."""
    kept = _KEPT.get(warehouse_id)
    if kept is None or kept[:2] != (version, reference) or not kept.signer.is_ready:
        return None
    return kept.signer


def sign(place: SigningPlace, signer: RequestSigner, reach: Reach) -> SignedRequest:
    """Raises Forbidden if the request reaches beyond the place, or does there what the caller may not do."""
    if not reach.is_inside(place.location):
        raise _refused(place, reach.level, f"The request reaches beyond the location {place.location} of the table")
    if reach.level is AccessLevel.WRITE and not place.may_write:
        raise _refused(place, reach.level, "Files of this table may only be read: it was dropped, or you may not write")
    try:
        return signer.sign(reach)
    except StorageError as error:
        raise _unavailable(error) from error


def _refused(place: SigningPlace, level: AccessLevel, sentence: str) -> Forbidden:
    """The error, which is noted for the audit."""
    trail, about = place.granted.context.trail, place.granted.ref
    action = ACTIONS[about.type.value][level] if about.type.value in ACTIONS else NamespaceAction.CREATE_TABLE
    trail.refused = Refused(action.value, about.type.value, about.public_id, trail.project_id, sentence)
    return Forbidden(sentence)


def _unavailable(error: StorageError) -> Unavailable:
    return Unavailable(f"The request cannot be signed now: {error}", retry_after_s=5)
