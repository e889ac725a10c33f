"""Protects the files that deleted or relocated warehouses left behind: creating a warehouse at the same location
does not give access to them (ADR 0016). And the other way round: a warehouse is not created where engines still have
access to all of it (ADR 0043).
"""

import time
from collections.abc import Collection
from datetime import UTC

from django.db.models import Q
from django.db.models.functions import Now

from lakewarden import backends, config
from lakewarden.authz.model import Privilege
from lakewarden.context import RequestContext
from lakewarden.errors import AlreadyExists, BadRequest
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import StorageError
from lakewarden.storage.places import around, is_at_or_in
from lakewarden.storage.profile import StorageProfile
from tenants import access
from tenants.access import project_chain
from tenants.models import LeftLocation, ReachableLocation, Warehouse
from tenants.services import storage_trial


def leave(warehouse: Warehouse) -> None:
    """Record the warehouse's location; call it in the transaction that deletes or relocates the warehouse."""
    location, values = warehouse.profile.real_location, {"project_id": warehouse.project_id}
    LeftLocation.objects.update_or_create(location=location, defaults=values)


def check(context: RequestContext, profile: StorageProfile, credential: StorageCredential | None) -> frozenset[str]:
    """The left locations that a warehouse with this profile may overlap: empty ones, and those the caller has rights
    to.

    Raises AlreadyExists if it may not overlap one of them, or is inside of the location of a table that was there, for
    which engines may still have credentials; BadRequest if the storage cannot be read.
    """
    _ensure_unreachable(profile)
    found = _overlapping(profile)
    until = time.monotonic() + config.current().storage.validation_timeout_s
    for each in found:
        if not (_may_take_over(context, each) or _is_empty(profile, credential, each, until=until)):
            raise _refused(profile)
    return frozenset(each.location for each in found)


def take(profile: StorageProfile, *, checked: Collection[str]) -> None:
    """Remove the records that lie inside the new warehouse; call it in the transaction that creates or relocates it.

    `checked` is what `check` returned. Raises AlreadyExists if a location was left there since.
    """
    _ensure_unreachable(profile)
    found = {each.location for each in _overlapping(profile)}
    if not found <= set(checked):
        raise _refused(profile)
    real = profile.real_location
    LeftLocation.objects.filter(location__in=[each for each in found if is_at_or_in(each, real)]).delete()


def forget_unreachable() -> int:
    """Remove the records of places that engines cannot reach any more; returns how many."""
    return ReachableLocation.objects.filter(until__lte=Now()).delete()[0]


def _ensure_unreachable(profile: StorageProfile) -> None:
    """Of places inside the warehouse, the locations of new objects are checked."""
    if found := ReachableLocation.objects.around(profile.location):
        until = found.until.astimezone(UTC).isoformat(timespec="seconds")
        raise AlreadyExists(
            f"The location {profile.location} belonged to a table of another warehouse. Engines may still have "
            f"credentials for it until {until}: choose another location, or wait until then"
        )


def _overlapping(profile: StorageProfile) -> list[LeftLocation]:
    real = profile.real_location
    return list(LeftLocation.objects.filter(Q(location__in=around(real)) | Q(location__startswith=real + "/")))


def _may_take_over(context: RequestContext, left: LeftLocation) -> bool:
    """Whoever creates the warehouse can register the tables whose files lie there and grant rights on them.

    So the caller must hold the privileges that would have allowed the same in the old warehouse's project.
    """
    held = access.privileges_elsewhere(context, project_chain(left.project_id))
    return {Privilege.MODIFY, Privilege.MANAGE_GRANTS} <= held


def _is_empty(
    profile: StorageProfile, credential: StorageCredential | None, left: LeftLocation, *, until: float
) -> bool:
    """Whether there is no file in the part that both locations share."""
    real = profile.real_location
    common = profile.location + left.location[len(real) :] if is_at_or_in(left.location, real) else profile.location
    try:
        return storage_trial.within(
            until - time.monotonic(), lambda: backends.storage(profile, credential).is_empty(common)
        )
    except StorageError as error:
        raise BadRequest(f"The storage cannot be used: {error}") from error


def _refused(profile: StorageProfile) -> AlreadyExists:
    return AlreadyExists(
        f"At {profile.location} are files that another warehouse has left. Remove them first, or have the warehouse "
        "created by somebody with the privileges modify and manage_grants on the project of that warehouse"
    )
