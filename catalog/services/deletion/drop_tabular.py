"""Removes an object of a namespace from the catalog: permanently, so that it can be restored, or without its files."""

from collections.abc import Sequence
from datetime import datetime

from catalog.models import Tabular, occupied_locations
from catalog.services import locations, pointer
from catalog.services.deletion.drop import DropOptions, Dropped, begin, payload_of
from catalog.services.pointer import Stored, gone, record_change
from catalog.services.protection import ensure_unprotected
from catalog.tabular_types import type_of
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants as ledger
from lakewarden.db_transaction import changing
from lakewarden.storage.places import outermost
from lakewarden.tasks import purge
from lakewarden.tasks.scope import Entity, Scope


def drop(granted: Granted[Tabular], options: DropOptions) -> None:
    """Remove it from the catalog: permanently, or restorably in a warehouse with soft deletion.

    The removal of its files is queued now, or when the deletion expires. Raises Protected (not with `force`), and the
    kind's own 404 when it has been dropped meanwhile.
    """
    tabular = granted.target
    with changing():
        if is_soft := options.is_soft(tabular.namespace.warehouse):
            payload = _set_aside(granted, options)
        else:
            removed, places = remove(tabular, force=options.force)
            if not removed:
                raise gone(tabular)
            if options.with_files:
                _request_purges(tabular, places, not_before=options.purge_not_before())
            payload = {"purge": options.with_files, "force": options.force}
        record_change(f"drop{type_of(tabular).event}", tabular, granted.context, **payload)
        if not is_soft:  # grants on an object that can be restored stay
            ledger.forget_object(granted.ref)


def _set_aside(granted: Granted[Tabular], options: DropOptions) -> dict[str, object]:
    """Soft deletion: free the name and keep everything else until it expires; returns the payload of the event."""
    tabular, namespace = granted.target, granted.target.namespace
    pointer.lock_row(tabular)  # the row before its document, in the same order as commits, so that both never deadlock
    ensure_unprotected(tabular)
    dropped = Dropped(tabular.kind, tabular.uuid, (*namespace.path, tabular.name))
    if not Tabular.objects.filter(id=tabular.id).exists():
        raise gone(tabular)
    by = granted.context.caller.id
    deletion = begin(dropped, namespace.warehouse, by=by, with_files=options.with_files)
    Tabular.objects.filter(id=tabular.id).update(deleted_at=deletion.deleted_at, deletion=deletion)
    return payload_of(deletion)


def _request_purges(tabular: Tabular, places: Sequence[str], *, not_before: datetime | None) -> None:
    warehouse, path = tabular.namespace.warehouse, tabular.namespace.path
    for location in outermost(places):
        purge.request(
            warehouse.storage_profile,
            location,
            scope=Scope(warehouse.project_id, warehouse.id),
            entity=Entity(tabular.kind, str(tabular.uuid), (*path, tabular.name)),
            owner=str(tabular.id),
            not_before=not_before,
            within=locations.folder_that_stays(warehouse, tabular.namespace, location),
        )


def unregister(granted: Granted[Tabular]) -> Stored:
    """Remove it from the catalog and leave its files; returns its last state.

    Commits that wait for its row find that it no longer exists. Raises the kind's own 404 when it has been dropped.
    """
    tabular = granted.target
    with changing():
        pointer.lock_row(tabular)
        last = pointer.load(granted)
        remove(tabular)
        record_change(f"unregister{type_of(tabular).event}", last.tabular, granted.context)
        ledger.forget_object(granted.ref)
    return last


def remove(tabular: Tabular, *, force: bool = False) -> tuple[bool, list[str]]:
    """Whether it existed, and all its locations.

    Raises Protected; checked with the row locked, because it may be protected meanwhile.
    """
    pointer.lock_row(tabular)  # the row before its document, in the same order as commits, so that both never deadlock
    if not force:
        ensure_unprotected(tabular)
    owned_by = ledger.owners_of([str(tabular.id)])
    access = tabular.namespace.warehouse.last_access
    released = occupied_locations.release([tabular.id], owned_by=owned_by, access=access)
    return Tabular.objects.remove(tabular.id), [each.location for each in released]
