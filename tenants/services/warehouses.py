"""Warehouses: created with their storage proven, never sharing a location."""

from pathlib import Path
from typing import Any

from django.db import IntegrityError, connection
from django.db.models import Q

from lakewarden import backends, config
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.errors import AlreadyExists, BadRequest, InvalidArgument
from lakewarden.events.changes import Change, record
from lakewarden.ids import new_id
from lakewarden.names import check_name, match_key
from lakewarden.storage.interface import StorageError
from lakewarden.storage.profiles import StorageProfile
from lakewarden.transactions import changing
from tenants.access import warehouse_chain
from tenants.models import Project, Warehouse
from tenants.services import projects

_CREATION_LOCK = 0x6C6B7768  # advisory lock: two creations never check locations at once


def create(
    granted: Granted[Project], name: str, *, profile: StorageProfile, delete_profile: dict[str, Any]
) -> Warehouse:
    """Prove the storage, then create the warehouse; the creator owns it.

    Raises InvalidArgument for a bad name or a directory outside `storage.local_roots`, BadRequest when the storage
    cannot be written and read, AlreadyExists when the name or the location (or one inside it or around it) is taken.
    """
    project, context = granted.target, granted.context
    check_name(name, what="warehouse")
    if "/" in name:
        raise InvalidArgument(f"Invalid warehouse name {name!r}: it must not hold '/'")
    _ensure_allowed(profile)
    # before anything is written: the place may be another tenant's; and again under the lock
    _ensure_exclusive(profile.location)
    _prove(profile)
    warehouse = Warehouse(
        id=new_id(),
        project=project,
        name=name,
        name_key=match_key(name),
        storage_profile=profile.dump(),
        location=profile.location,
        delete_profile=delete_profile,
    )
    try:
        with changing():
            with connection.cursor() as cursor:
                cursor.execute("select pg_advisory_xact_lock(%s)", [_CREATION_LOCK])
            _ensure_exclusive(profile.location)
            warehouse.save(force_insert=True)
            ledger.give(
                warehouse_chain(warehouse), [(context.actor.id, Privilege.OWNERSHIP)], granted_by=context.actor.id
            )
            projects.bump_epoch(project.id)
            data = {"name": name, "location": profile.location}
            record(Change("createWarehouse", "warehouse", str(warehouse.id), project.id, data), context)
    except IntegrityError as error:
        raise AlreadyExists(f"A warehouse with the name {name!r} exists already in this project") from error
    return warehouse


def in_project(granted: Granted[Project]) -> list[Warehouse]:
    return list(Warehouse.objects.filter(project=granted.target).order_by("name_key"))


def _ensure_exclusive(location: str) -> None:
    """No other warehouse of the server lies at, in or around `location`; the message does not say whose it is."""
    parts = location.split("/")
    around = ["/".join(parts[:count]) for count in range(3, len(parts) + 1)]
    inside = Q(location__startswith=location + "/")
    if Warehouse.objects.filter(inside | Q(location__in=around)).exists():
        raise AlreadyExists(f"The location {location} overlaps another warehouse's: each needs a location of its own")


def _ensure_allowed(profile: StorageProfile) -> None:
    """The directory lies below one of the operator's roots."""
    roots = config.current().storage.local_roots
    # a link below a root may lead out of it
    meant = Path(profile.base_path).resolve()
    if not any(meant.is_relative_to(root.resolve()) for root in roots):
        allowed = ", ".join(str(root) for root in roots) or "none: the setting is empty"
        raise InvalidArgument(
            f"base-path {profile.base_path!r} is not below one of the server's storage.local_roots ({allowed})"
        )


def _prove(profile: StorageProfile) -> None:
    """Write, read and remove a file where the warehouse shall lie."""
    store = backends.storage(profile)
    probe = f"{profile.location}/.lakewarden-probe-{new_id()}"
    try:
        store.write_new(probe, b"probe")
        try:
            store.read(probe, limit=16)
        finally:
            store.delete(probe)
    except StorageError as error:
        raise BadRequest(f"The storage cannot be used: {error}") from error
