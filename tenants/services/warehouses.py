"""Creates and lists warehouses. Changes are in `warehouse_states`, the checks in `warehouse_validation`."""

from collections.abc import Collection, Mapping
from typing import Any

from django.db import IntegrityError, connection

from lakewarden import quotas
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants as ledger
from lakewarden.db_transaction import changing
from lakewarden.errors import AlreadyExists, NoSuchProject
from lakewarden.events.change_recording import Change, record
from lakewarden.ids import new_id
from lakewarden.names import match_key
from lakewarden.paging import Page
from lakewarden.storage.profile import StorageProfile
from tenants import access
from tenants.access import warehouse_chain
from tenants.models import Project, Warehouse
from tenants.models.warehouse import SELF_MANAGED
from tenants.services import left_locations, projects, warehouse_secrets, warehouse_validation
from tenants.services.warehouse_secrets import Kept
from tenants.services.warehouse_validation import StorageSpec, WarehouseSpec

_CREATION_LOCK = 0x6C6B7768  # advisory lock: no constraint can express overlap, so locations are checked one at a time


def create_validated(granted: Granted[Project], spec: WarehouseSpec, *, delete_profile: dict[str, Any]) -> Warehouse:
    """Create the warehouse if all checks pass; the caller becomes its owner.

    Raises what the first failed check raises, with the others in its message: InvalidArgument for an invalid name or a
    directory outside `storage.local_roots`, BadRequest if the storage cannot be written and read, AlreadyExists if the
    name or an overlapping location is taken, Forbidden for a `managed_by` that the caller may not set.
    """
    project_id = granted.target.id
    quotas.ensure_room("warehouses_in_project", Warehouse.objects.filter(project_id=project_id), within=project_id)
    plan = warehouse_validation.of_creation(granted, spec, dry=False)
    plan.report.ensure_valid()
    assert plan.storage is not None  # noqa: S101 a valid report has both
    assert plan.policy is not None  # noqa: S101
    profile, credential = plan.storage.profile, plan.storage.credential
    warehouse = Warehouse(
        id=new_id(),
        project=granted.target,
        name=spec.name,
        name_key=match_key(spec.name),
        storage_profile=profile.dump(),
        storage_credential_type=credential.KIND if credential else "",
        location=profile.location,
        delete_profile=delete_profile,
        allowed_format_versions=list(plan.policy.allowed),
        default_format_version=plan.policy.default,
        managed_by=spec.managed_by or SELF_MANAGED,
    )
    with warehouse_secrets.kept(credential) as kept:
        _insert(granted, warehouse, profile, kept, left=plan.left)
    return warehouse


def create(
    granted: Granted[Project],
    name: str,
    *,
    profile: StorageProfile,
    credential: Mapping[str, Any] | None = None,
    delete_profile: dict[str, Any],
) -> Warehouse:
    """Like `create_validated`, with a parsed profile and defaults for everything else."""
    spec = WarehouseSpec(name, StorageSpec(profile.dump(), credential))
    return create_validated(granted, spec, delete_profile=delete_profile)


def visible(granted: Granted[Project], page: Page, *, statuses: Collection[str]) -> tuple[list[Warehouse], str | None]:
    """A page of the project's warehouses that the caller may see, sorted by name, and the key of the next page."""
    found = access.visible_warehouses(granted).filter(status__in=statuses)
    if page.after is not None:
        found = found.filter(name_key__gt=page.after)
    return page.cut([(each, each.name_key) for each in found[: page.limit]])


def lock_creations() -> None:
    """Until the transaction ends, no other transaction can take a location."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_xact_lock(%s)", [_CREATION_LOCK])


def _insert(
    granted: Granted[Project], warehouse: Warehouse, profile: StorageProfile, kept: Kept, *, left: frozenset[str]
) -> None:
    project, context = granted.target, granted.context
    try:
        with changing():
            lock_creations()
            projects.bump_epoch(project.id)
            warehouse_validation.ensure_exclusive(profile, but=None)
            left_locations.take(profile, checked=left)
            warehouse.storage_secret = kept.reference
            warehouse.save(force_insert=True)
            ledger.give_creator(warehouse_chain(warehouse), context.caller)
            data = {"name": warehouse.name, "location": warehouse.location}
            record(Change("createWarehouse", "warehouse", str(warehouse.id), project.id, data), context)
    except IntegrityError as error:
        if "foreign key" in str(error):
            raise NoSuchProject(f"Project does not exist: {project.id}") from error
        raise AlreadyExists(f"A warehouse with the name {warehouse.name!r} exists already in this project") from error
