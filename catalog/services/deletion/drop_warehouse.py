"""Deletes a warehouse: refused while anything is in it, or files of dropped tables are still being removed."""

from collections.abc import Callable

from django.db import IntegrityError
from django.db.models import ProtectedError

from catalog.models import Deletion, Namespace
from catalog.services import locations
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants as ledger
from lakewarden.db_transaction import changing
from lakewarden.errors import WarehouseHasUnfinishedTasks, WarehouseNotEmpty
from lakewarden.events.change_recording import Change, record
from lakewarden.tasks import waiting_purges
from tenants.access import warehouse_chain
from tenants.models import Warehouse
from tenants.services import left_locations, warehouse_secrets, warehouse_states


def delete(
    granted: Granted[Warehouse], *, force: bool = False, ensure_empty: Callable[[Warehouse], None] | None = None
) -> None:
    """Delete an empty warehouse (with `force` also a protected one); its files stay where they are.

    `ensure_empty` is asked in the transaction, without `force`, about what other apps have in it. Raises Protected,
    WarehouseNotEmpty, WarehouseHasUnfinishedTasks, NoSuchWarehouse when it has been deleted meanwhile.
    """
    not_empty = WarehouseNotEmpty(f"The warehouse {granted.target.name!r} is not empty: drop its namespaces first")
    has_files = locations.may_hold_files(granted.target)
    try:
        with changing():
            warehouse = warehouse_states.locked(granted)
            if not force:
                warehouse_states.ensure_unprotected(warehouse)
                if ensure_empty is not None:
                    ensure_empty(warehouse)
            if Namespace.objects.filter(warehouse=warehouse).exists():
                raise not_empty
            _ensure_nothing_dropped(warehouse)
            ensure_nothing_pending(warehouse)
            ledger.forget_object(warehouse_chain(warehouse)[-1])
            payload = {"name": warehouse.name, "location": warehouse.location, "force": force}
            change = Change("deleteWarehouse", "warehouse", str(warehouse.id), warehouse.project_id, payload)
            record(change, granted.context)
            if has_files:
                left_locations.leave(warehouse)
            warehouse_secrets.release(warehouse.storage_secret)
            warehouse.delete()
    except (ProtectedError, IntegrityError) as error:
        raise not_empty from error


def _ensure_nothing_dropped(warehouse: Warehouse) -> None:
    """Raises WarehouseNotEmpty while dropped namespaces can be restored, or are not removed yet."""
    last = Deletion.objects.filter(warehouse=warehouse).order_by("-expires_at").first()
    if last is not None:
        raise WarehouseNotEmpty(
            f"The warehouse {warehouse.name!r} holds dropped namespaces that are not removed yet: the last time at "
            f"which one of them expires is {last.expires_at.isoformat()}"
        )


def ensure_nothing_pending(warehouse: Warehouse) -> None:
    """Raises WarehouseHasUnfinishedTasks while files of dropped tables wait for removal, or the removal has failed."""
    found = waiting_purges.count_below(warehouse.location)
    if found:
        raise WarehouseHasUnfinishedTasks(
            f"The files of {found} dropped tables or views of the warehouse {warehouse.name!r} are still to be "
            "removed: wait for these tasks, or cancel the failed ones"
        )
