"""Changes of a warehouse's name, status, delete profile, policies and protection. Each function is idempotent.

A call that changes no value writes no row, no audit entry and no event.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import IntegrityError
from django.utils import timezone

from lakewarden.authz.interface import Granted
from lakewarden.db_transaction import changing
from lakewarden.errors import AlreadyExists, BadRequest, Forbidden, NoSuchWarehouse, Protected
from lakewarden.events.change_recording import Change, record
from lakewarden.names import match_key
from tenants.access import is_server_administrator
from tenants.models import Warehouse
from tenants.models.format_policy import FormatVersionPolicy
from tenants.services import projects
from tenants.services.warehouse_validation import check_managed_by, check_spec_mutable, check_warehouse_name

MAX_REASON = 1000
_ACCESS: Final = frozenset({"storage_profile", "storage_secret"})
"""Fields whose change ends the decisions, too, and with them the access to files that hot reads remember."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """New values of fields, the event's name and its payload; `voids_decisions` invalidates cached decisions."""

    event: str
    values: Mapping[str, Any]
    payload: Mapping[str, Any]
    voids_decisions: bool = False


def rename(granted: Granted[Warehouse], name: str) -> Warehouse:
    """Rename the warehouse. Raises InvalidArgument for an invalid name, AlreadyExists if the project has it already."""
    check_warehouse_name(name)
    values = {"name": name, "name_key": match_key(name)}
    try:
        return apply(granted, lambda now: Alteration("renameWarehouse", values, {"name": name, "before": now.name}))
    except IntegrityError as error:
        raise AlreadyExists(f"A warehouse with the name {name!r} exists already in this project") from error


def set_status(granted: Granted[Warehouse], status: Warehouse.Status) -> Warehouse:
    """Activate or deactivate the warehouse for the catalog API; cached decisions are invalidated."""
    event = "activateWarehouse" if status is Warehouse.Status.ACTIVE else "deactivateWarehouse"
    return apply(granted, lambda _: Alteration(event, {"status": status.value}, {}, voids_decisions=True))


def set_delete_profile(granted: Granted[Warehouse], profile: Mapping[str, Any]) -> Warehouse:
    """Set what later drops do."""
    return _set(granted, "updateWarehouseDeleteProfile", delete_profile=dict(profile))


def set_format_policy(granted: Granted[Warehouse], policy: FormatVersionPolicy) -> Warehouse:
    """Set the policy for tables that are created or upgraded from now on; existing tables keep their version."""
    return _set(
        granted,
        "updateWarehouseFormatVersionPolicy",
        allowed_format_versions=list(policy.allowed),
        default_format_version=policy.default,
    )


def set_managed_by(granted: Granted[Warehouse], managed_by: str) -> Warehouse:
    """Raises BadRequest for an unknown value, Forbidden if the caller is not an administrator of the server."""
    check_managed_by(granted.context, managed_by)
    # `check_managed_by` allows everybody to set self-managed, which would end the restriction
    if not is_server_administrator(granted.context):
        raise Forbidden("Not allowed: managed-by is set by administrators of the server only")
    return _set(granted, "updateWarehouseManagedBy", managed_by=managed_by)


def set_protection(granted: Granted[Warehouse], *, protected: bool, reason: str | None) -> Warehouse:
    """Protect the warehouse from deletion, or remove the protection; stores who protected it, when and why.

    Raises BadRequest for a reason of more than 1,000 characters, or one that is sent to remove the protection.
    """
    if reason is not None and len(reason) > MAX_REASON:
        raise BadRequest(f"reason: {len(reason)} characters, at most {MAX_REASON} are allowed")
    if reason is not None and not protected:
        raise BadRequest("reason: it is only allowed with a protection; omit it to remove the protection")

    def alteration(before: Warehouse) -> Alteration:
        kept = before.protection
        payload: dict[str, Any] = {"protected": protected, "before": kept} | ({"reason": reason} if reason else {})
        if protected and (kept is None or (reason is not None and kept["reason"] != reason)):
            kept = {"by": granted.context.caller.id, "at": timezone.now().isoformat(), "reason": reason}
        return Alteration("updateWarehouseProtection", {"protection": kept if protected else None}, payload)

    return apply(granted, alteration)


def ensure_unprotected(warehouse: Warehouse) -> None:
    """Raises Protected, whose message says how to remove the protection."""
    kept = warehouse.protection
    if kept is not None:
        why = f" ({kept['reason']})" if kept["reason"] else ""
        since = kept["at"].replace("+00:00", "Z")  # as the answers write it
        raise Protected(
            f"The warehouse {warehouse.name!r} is protected from deletion by {kept['by']} since {since}{why}. "
            f'Remove the protection first: POST {{"protected": false}} to '
            f"/management/v1/warehouse/{warehouse.id}/protection"
        )


def locked(granted: Granted[Warehouse]) -> Warehouse:
    """The current row, locked until the transaction ends.

    Raises NoSuchWarehouse if it was deleted meanwhile, Forbidden if `managed-by` reserves it and the caller may not
    change it.
    """
    found = Warehouse.objects.select_for_update(of=("self",)).select_related("project")
    warehouse = found.filter(id=granted.target.id).first()
    if warehouse is None:
        raise NoSuchWarehouse(f"Warehouse does not exist: {granted.target.id}")
    check_spec_mutable(warehouse, granted.context)
    return warehouse


def apply(granted: Granted[Warehouse], alteration: Callable[[Warehouse], Alteration]) -> Warehouse:
    """Apply the values that `alteration` computes from the locked row, in one transaction with audit and event.

    Raises what `locked` and the alteration raise.
    """
    with changing():
        warehouse = locked(granted)
        wanted = alteration(warehouse)
        if all(getattr(warehouse, name) == value for name, value in wanted.values.items()):
            return warehouse
        for name, value in wanted.values.items():
            setattr(warehouse, name, value)
        warehouse.version += 1
        warehouse.updated_at = timezone.now()
        warehouse.save(update_fields=[*wanted.values, "version", "updated_at"])
        if wanted.voids_decisions or not _ACCESS.isdisjoint(wanted.values):
            projects.bump_epoch(warehouse.project_id)
        payload = {"name": warehouse.name, **wanted.payload}
        change = Change(wanted.event, "warehouse", str(warehouse.id), warehouse.project_id, payload)
        record(change, granted.context)
        return warehouse


def _set(granted: Granted[Warehouse], event: str, **values: Any) -> Warehouse:  # noqa: ANN401 whatever the fields hold
    """Set fields that have the same names in the event's payload."""
    payload = {name.replace("_", "-"): value for name, value in values.items()}
    return apply(granted, lambda _: Alteration(event, values, payload))
