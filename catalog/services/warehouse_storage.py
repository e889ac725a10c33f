"""The storage of a warehouse: can be changed while the warehouse is empty, and validated at any time."""

from typing import Any, NoReturn

from catalog.models import Namespace
from catalog.services import locations
from catalog.services.deletion.drop_warehouse import ensure_nothing_pending
from lakewarden.authz.interface import Granted
from lakewarden.db_transaction import changing
from lakewarden.errors import BadRequest, WarehouseNotEmpty
from tenants.models import Warehouse
from tenants.services import left_locations, warehouse_states, warehouse_validation, warehouses
from tenants.services.validation_report import Report
from tenants.services.warehouse_states import Alteration
from tenants.services.warehouse_validation import StorageSpec


def update(granted: Granted[Warehouse], spec: StorageSpec) -> Warehouse:
    """Set the warehouse's storage to `spec`, after validating it.

    Raises as `warehouses.create_validated`; BadRequest for another base path if there are namespaces,
    WarehouseHasUnfinishedTasks while files at the current one wait for their removal.
    """
    plan = warehouse_validation.of_storage(granted, spec, is_movable=_is_movable(granted.target), dry=False)
    plan.report.ensure_valid()
    assert plan.storage is not None  # noqa: S101 a valid report has it
    profile = plan.storage.profile
    has_files = profile.location != granted.target.location and locations.may_hold_files(granted.target)

    def alteration(now: Warehouse) -> Alteration:
        if profile.location != now.location:
            _ensure_movable(now)
            if has_files:
                left_locations.leave(now)
        values = {"storage_profile": profile.dump(), "location": profile.location}
        return Alteration("updateWarehouseStorage", values, {"location": profile.location, "before": now.location})

    with changing():
        # locations, then rows: the same order everywhere, so that two changes never deadlock
        warehouses.lock_creations()
        warehouse_validation.ensure_exclusive(profile, but=granted.target.id)
        left_locations.take(profile, checked=plan.left)
        return warehouse_states.apply(granted, alteration)


def set_credential(granted: Granted[Warehouse]) -> NoReturn:
    """Raises BadRequest: no supported type of storage has a credential yet."""
    kind = granted.target.profile.type
    raise BadRequest(f"new-storage-credential: storage of the type {kind!r} has no credential: there is none to change")


def validate(granted: Granted[Warehouse], spec: StorageSpec) -> Report:
    """What `update` would check; nothing is changed."""
    return warehouse_validation.of_storage(granted, spec, is_movable=_is_movable(granted.target), dry=True).report


def validate_credential(granted: Granted[Warehouse], credential: dict[str, Any] | None) -> Report:
    """The present profile with another credential."""
    return validate(granted, StorageSpec(granted.target.storage_profile, credential))


def _is_movable(warehouse: Warehouse) -> bool:
    return not Namespace.everything.filter(warehouse=warehouse).exists()


def _ensure_movable(warehouse: Warehouse) -> None:
    """Checked again with the row locked, because a namespace may have been created meanwhile."""
    if not _is_movable(warehouse):
        raise WarehouseNotEmpty(f"The warehouse {warehouse.name!r} has namespaces now: its base-path cannot be changed")
    ensure_nothing_pending(warehouse)
