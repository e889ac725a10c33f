"""The storage of a warehouse: its profile and its credential, changed without a gap and validated at any time.

Requests that run while a credential is changed end with the one that they began with; the next ones, on whichever
replica, find the reference to the new one in the warehouse's row.
"""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from catalog.models import Namespace
from catalog.services import locations
from catalog.services.deletion.drop_warehouse import ensure_nothing_pending
from lakewarden.authz.interface import Granted
from lakewarden.db_transaction import changing
from lakewarden.errors import BadRequest, Conflict, WarehouseNotEmpty
from lakewarden.storage.profile import StorageProfile
from tenants.models import Warehouse
from tenants.services import left_locations, warehouse_secrets, warehouse_states, warehouse_validation, warehouses
from tenants.services.validation_report import Report
from tenants.services.warehouse_secrets import Kept
from tenants.services.warehouse_states import Alteration
from tenants.services.warehouse_validation import ParsedStorage, Plan, StorageSpec


def update(granted: Granted[Warehouse], profile: Mapping[str, Any], credential: Mapping[str, Any] | None) -> Warehouse:
    """Set the warehouse's storage profile, and its credential unless None is given, after validating both.

    Raises as `warehouses.create_validated`; BadRequest for another place if there are namespaces,
    WarehouseHasUnfinishedTasks while files at the current one wait for their removal, Conflict when another request
    changed the storage meanwhile.
    """
    plan, storage = _validated(granted, StorageSpec(profile, credential, kept=granted.target.storage_secret))
    new = storage.profile
    has_files = new.location != granted.target.location and locations.may_hold_files(granted.target)

    def alteration(now: Warehouse, kept: Kept) -> Alteration:
        if new.location != now.location:
            _ensure_movable(now)
            if has_files:
                left_locations.leave(now)
        values, told = _credential(now, storage, kept)
        values |= {"storage_profile": new.dump(), "location": new.location}
        if values["storage_profile"] != now.storage_profile:
            values["access_ends_at"] = now.last_access.end(timezone.now())
        payload = {"location": new.location, "before": now.location, **told}
        return Alteration("updateWarehouseStorage", values, payload)

    with warehouse_secrets.kept(None if storage.kept else storage.credential) as kept, changing():
        # locations, then rows: the same order everywhere, so that two changes never deadlock
        warehouses.lock_creations()
        warehouse_validation.ensure_exclusive(new, but=granted.target.id)
        left_locations.take(new, checked=plan.left)
        return warehouse_states.apply(granted, lambda now: alteration(now, kept))


def set_credential(granted: Granted[Warehouse], credential: Mapping[str, Any] | None) -> Warehouse:
    """Set the warehouse's credential (None: remove it), after validating it with the present profile.

    Raises as `update`; BadRequest when storage of this type has no credential.
    """
    before = granted.target.profile
    if not before.CREDENTIALS:
        raise BadRequest(
            f"new-storage-credential: storage of the type {before.type!r} has no credential: there is none to change"
        )
    _, storage = _validated(granted, _with(before, credential))

    def alteration(now: Warehouse, kept: Kept) -> Alteration:
        if now.profile != before:
            raise Conflict("The storage profile was changed in the meantime, nothing was changed: try again")
        values, told = _credential(now, storage, kept)
        return Alteration("updateWarehouseStorageCredential", values, told)

    with warehouse_secrets.kept(storage.credential) as kept, changing():
        return warehouse_states.apply(granted, lambda now: alteration(now, kept))


def validate(granted: Granted[Warehouse], profile: Mapping[str, Any], credential: Mapping[str, Any] | None) -> Report:
    """What `update` would check; nothing is changed."""
    return _plan(granted, StorageSpec(profile, credential, kept=granted.target.storage_secret), dry=True).report


def validate_credential(granted: Granted[Warehouse], credential: Mapping[str, Any] | None) -> Report:
    """What `set_credential` would check."""
    return _plan(granted, _with(granted.target.profile, credential), dry=True).report


def validate_access(granted: Granted[Warehouse]) -> Report:
    """Whether the storage can be used as it is set now."""
    return validate(granted, granted.target.storage_profile, None)


def _with(profile: StorageProfile, credential: Mapping[str, Any] | None) -> StorageSpec:
    return StorageSpec(profile.dump(), credential)


def _plan(granted: Granted[Warehouse], spec: StorageSpec, *, dry: bool) -> Plan:
    return warehouse_validation.of_storage(granted, spec, is_movable=_is_movable(granted.target), dry=dry)


def _validated(granted: Granted[Warehouse], spec: StorageSpec) -> tuple[Plan, ParsedStorage]:
    plan = _plan(granted, spec, dry=False)
    plan.report.ensure_valid()
    assert plan.storage is not None  # noqa: S101 a valid report has it
    return plan, plan.storage


def _credential(now: Warehouse, storage: ParsedStorage, kept: Kept) -> tuple[dict[str, Any], dict[str, Any]]:
    """The row's new values, and what events tell of them; the secret that is replaced is deleted after the commit."""
    if storage.kept is not None:
        if storage.kept != now.storage_secret:
            raise Conflict("The storage credential was changed in the meantime, nothing was changed: try again")
        return {}, {}
    warehouse_secrets.release(now.storage_secret)
    kind = storage.credential.KIND if storage.credential else ""
    values = {"storage_secret": kept.reference, "storage_credential_type": kind}
    return values, {"credential-type": kind or None} if now.storage_secret or kind else {}


def _is_movable(warehouse: Warehouse) -> bool:
    return not Namespace.everything.filter(warehouse=warehouse).exists()


def _ensure_movable(warehouse: Warehouse) -> None:
    """Checked again with the row locked, because a namespace may have been created meanwhile."""
    if not _is_movable(warehouse):
        raise WarehouseNotEmpty(f"The warehouse {warehouse.name!r} has namespaces now: its place cannot be changed")
    ensure_nothing_pending(warehouse)
