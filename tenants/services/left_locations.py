"""What warehouses leave behind is not taken over with a new one by whoever may create that (ADR 0016)."""

from collections.abc import Collection

from django.db.models import Q

from lakewarden import backends
from lakewarden.authz.model import Privilege
from lakewarden.context import RequestContext
from lakewarden.errors import AlreadyExists, BadRequest
from lakewarden.storage.interface import StorageError
from lakewarden.storage.places import around, is_at_or_in
from lakewarden.storage.profile import StorageProfile
from tenants import access
from tenants.access import project_chain
from tenants.models import LeftLocation, Warehouse


def leave(warehouse: Warehouse) -> None:
    """In the transaction in which the warehouse goes, or is given another location: its files stay where they are."""
    location, told = warehouse.profile.real_location, {"project_id": warehouse.project_id}
    LeftLocation.objects.update_or_create(location=location, defaults=told)


def check(context: RequestContext, profile: StorageProfile) -> frozenset[str]:
    """Which left locations a warehouse there may overlap: those without files, and those whose files are the caller's.

    Raises AlreadyExists when it may not overlap one of them, BadRequest when the storage cannot say.
    """
    found = _overlapping(profile)
    for each in found:
        if not (_may_take_over(context, each) or _is_empty(profile, each)):
            raise _refused(profile)
    return frozenset(each.location for each in found)


def take(profile: StorageProfile, *, checked: Collection[str]) -> None:
    """In the transaction of the change: what was `checked` is the warehouse's now. Raises AlreadyExists."""
    found = {each.location for each in _overlapping(profile)}
    if not found <= set(checked):
        raise _refused(profile)
    real = profile.real_location
    LeftLocation.objects.filter(location__in=[each for each in found if is_at_or_in(each, real)]).delete()


def _overlapping(profile: StorageProfile) -> list[LeftLocation]:
    real = profile.real_location
    return list(LeftLocation.objects.filter(Q(location__in=around(real)) | Q(location__startswith=real + "/")))


def _may_take_over(context: RequestContext, left: LeftLocation) -> bool:
    """Who makes the warehouse may register the tables whose files lie there, and grant rights on them."""
    held = access.privileges_elsewhere(context, project_chain(left.project_id))
    return {Privilege.MODIFY, Privilege.MANAGE_GRANTS} <= held


def _is_empty(profile: StorageProfile, left: LeftLocation) -> bool:
    """Whether no file lies in what is common to both places."""
    real = profile.real_location
    common = profile.location + left.location[len(real) :] if is_at_or_in(left.location, real) else profile.location
    try:
        return backends.storage(profile).is_empty(common)
    except StorageError as error:
        raise BadRequest(f"The storage cannot be used: {error}") from error


def _refused(profile: StorageProfile) -> AlreadyExists:
    return AlreadyExists(
        f"At {profile.location} are files that another warehouse has left. Remove them first, or have the warehouse "
        "created by somebody with the privileges modify and manage_grants on the project of that warehouse"
    )
